"""Numbers and names in sentences."""

import difflib
from collections.abc import Iterable, Sequence


def counted(count: int, noun: str) -> str:
    """How many there are: 1 run, 2 runs."""
    return f"{count} {noun if count == 1 else noun + 's'}"


def did_you_mean(name: object, known: Iterable[str], most: int = 2, cutoff: float = 0.6) -> str:
    """After an error about a name that is not known: a question with the nearest ones, or nothing."""
    near = difflib.get_close_matches(str(name), list(known), most, cutoff)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def listed(names: Sequence[str]) -> str:
    """a, b and c"""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
