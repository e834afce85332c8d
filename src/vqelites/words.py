"""Numbers and names in sentences."""

from collections.abc import Sequence


def counted(count: int, noun: str) -> str:
    """How many there are: 1 run, 2 runs."""
    return f"{count} {noun if count == 1 else noun + 's'}"


def listed(names: Sequence[str]) -> str:
    """a, b and c"""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
