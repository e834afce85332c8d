"""Many outcomes together: as arrays for the loop, and failures as sentences for a log."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vqelites.evaluation.base import Failure, Kind, Result, Value
from vqelites.levels import as_floats

_NAMED = 3  # ids in a sentence


def arrays(
    results: Sequence[Result], behavior_shape: tuple[int, ...], truth_dim: int, eight_bit: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fitness (n,), behavior (n, *shape) and truth (n, t), in the order of the results: float32, or 8-bit behavior.

    A failure has fitness NaN and zeros elsewhere: the loop keeps such rows out and counts them.
    """
    blank = np.zeros(behavior_shape, np.uint8 if eight_bit else np.float32)
    nothing = Value(np.nan, blank, np.zeros(truth_dim, np.float32))
    values = [result.outcome if isinstance(result.outcome, Value) else nothing for result in results]
    fitness = np.array([value.fitness for value in values], np.float32)
    # With one row too many there is always something to stack, and a value of another shape is an error.
    behavior = [value.behavior if eight_bit else as_floats(value.behavior) for value in (*values, nothing)]
    truth = [value.truth for value in (*values, nothing)]
    return fitness, np.stack(behavior)[:-1], np.stack(truth)[:-1]


class Reasons:
    """Why evaluations failed. Reasons that differ in numbers only are one, told by that of the first id."""

    def __init__(self) -> None:
        self._alike: dict[tuple[Kind, str], _Alike] = {}

    def add(self, name: int, failure: Failure) -> None:
        """One evaluation more, by its id."""
        key = failure.kind, _NUMBER.sub("0", failure.reason)
        known = self._alike.get(key, _Alike(0, ()))
        first = sorted([*known.first, (name, failure.reason)])[:_NAMED]
        self._alike[key] = _Alike(known.times + 1, tuple(first))

    def sentences(self) -> list[str]:
        """One for each reason, the most frequent first."""
        most = sorted(self._alike.items(), key=lambda item: (-item[1].times, item[1].first))
        return [_told(kind, alike) for (kind, _), alike in most]


class _Alike(NamedTuple):
    """Evaluations that failed for one reason: how many times, and the first ids with what was said of them."""

    times: int
    first: tuple[tuple[int, str], ...]


_NUMBER = re.compile(r"0x[0-9a-f]+|[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")


def _told(kind: Kind, alike: _Alike) -> str:
    """One reason and whose it is."""
    several = "s" if alike.times > 1 else ""
    did = "returned nonsense" if kind is Kind.NONSENSE else kind
    ids = ", ".join(str(name) for name, _ in alike.first)
    which = f"first ids {ids}" if alike.times > _NAMED else f"id{several} {ids}"
    return f"{alike.times} evaluation{several} {did}: {alike.first[0][1]}; {which}"
