"""Many outcomes together: as arrays for the loop, and failures as sentences for a log."""

import collections
import re
from collections.abc import Mapping, Sequence

import numpy as np

from vqelites.evaluation.base import Failure, Kind, Result, Value

_NAMED = 3  # ids in a sentence


def arrays(
    results: Sequence[Result], behavior_shape: tuple[int, ...], truth_dim: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fitness (n,), behavior (n, *shape) and truth (n, t) as float32, in the order of the results.

    A failure has fitness NaN and zeros elsewhere: the loop keeps such rows out and counts them.
    """
    nothing = Value(np.nan, np.zeros(behavior_shape, np.float32), np.zeros(truth_dim, np.float32))
    values = [result.outcome if isinstance(result.outcome, Value) else nothing for result in results]
    fitness = np.array([value.fitness for value in values], np.float32)
    # With one row too many there is always something to stack, and a value of another shape is an error.
    behavior, truth = (
        np.stack([getattr(value, part) for value in (*values, nothing)])[:-1] for part in ("behavior", "truth")
    )
    return fitness, behavior, truth


def summary(failures: Mapping[int, Failure]) -> list[str]:
    """What went wrong, by the ids of the evaluations: a sentence for each reason, the most frequent first.

    Reasons that differ in numbers only are one, told by its first.
    """
    alike: dict[tuple[Kind, str], list[int]] = collections.defaultdict(list)
    for name in sorted(failures):
        alike[failures[name].kind, _NUMBER.sub("0", failures[name].reason)].append(name)
    return [_told(failures[ids[0]], ids) for ids in sorted(alike.values(), key=lambda ids: -len(ids))]


_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")


def _told(failure: Failure, ids: Sequence[int]) -> str:
    """One reason and whose it is."""
    several = "s" if len(ids) > 1 else ""
    did = "returned nonsense" if failure.kind is Kind.NONSENSE else failure.kind
    which = f"first ids {_listed(ids[:_NAMED])}" if len(ids) > _NAMED else f"id{several} {_listed(ids)}"
    return f"{len(ids)} evaluation{several} {did}: {failure.reason}; {which}"


def _listed(ids: Sequence[int]) -> str:
    return ", ".join(map(str, ids))
