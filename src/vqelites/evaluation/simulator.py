"""What is evaluated: a function of solution and seed, and the checks on what it returns."""

import dataclasses
import re
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from vqelites.evaluation.base import Failure, Ids, Kind, Value
from vqelites.levels import as_levels


def evaluation_seeds(seed: int, ids: Ids, repeat: int = 0) -> list[int]:
    """One seed per id, from the run's seed and the id alone: any elite can be evaluated again, anywhere.

    Re-evaluations of the same solutions have `repeat` 1, 2, ... Seeds have 31 bits, which every generator takes.
    """
    return [int(np.random.SeedSequence(seed, spawn_key=(int(name), repeat)).generate_state(1)[0]) >> 1 for name in ids]


@dataclasses.dataclass(frozen=True)
class Simulator:
    """A user's function `simulate(solution, seed) -> fitness, behavior[, truth]`, or a method of an object.

    A `batch` simulator gets solutions (n, s) and seeds (n,), and returns fitness (n,), behavior (n, ...)[, truth
    (n, t)]; what it says of a solution may not depend on the others. Shapes that are given are checked, and that all
    behavior is `eight_bit`; `like` takes these from one evaluation. To be sent to other processes, the function must be
    one that can be pickled, or be defined in a script or notebook.
    """

    simulate: Callable[[Any, Any], Any]
    batch: bool = False
    behavior_shape: tuple[int, ...] | None = None
    truth_dim: int | None = None
    eight_bit: bool = False

    def __post_init__(self) -> None:
        if not callable(self.simulate):
            raise TypeError(f"A simulator is a function (solution, seed) -> fitness, behavior; got {self.simulate!r}.")

    def like(self, value: Value) -> Self:
        """The same simulator, which from now on must return what this value is shaped like."""
        eight_bit = value.behavior.dtype == np.uint8
        return dataclasses.replace(
            self, behavior_shape=value.behavior.shape, truth_dim=len(value.truth), eight_bit=eight_bit
        )

    def evaluate(self, solutions: np.ndarray, seeds: Sequence[int]) -> list[Value | Failure]:
        """Evaluate n solutions (n, s); one that fails does not affect the others."""
        if self.batch and len(seeds) > 1:
            try:
                return [self._checked(row) for row in self._batch(solutions, seeds)]
            except (Exception, SystemExit):
                pass  # each alone shows whose fault it is
        return [self._alone(solution, seed) for solution, seed in zip(solutions, seeds, strict=True)]

    def _alone(self, solution: np.ndarray, seed: int) -> Value | Failure:
        """Evaluate one."""
        try:
            if self.batch:
                [returned] = self._batch(solution[None], [seed])
            else:
                returned = self.simulate(solution.copy(), seed)
        except _NonsenseError as error:
            return Failure(Kind.NONSENSE, str(error))
        except (Exception, SystemExit) as error:
            return Failure(Kind.RAISED, _told(error))
        return self._checked(returned)

    def _batch(self, solutions: np.ndarray, seeds: Sequence[int]) -> list[tuple[Any, ...]]:
        """What a batch simulator returns, row by row."""
        parts = _parts(self.simulate(solutions.copy(), np.array(seeds)))
        arrays = [_array(name, part) for name, part in zip(_PARTS, parts, strict=False)]
        for name, array in zip(_PARTS, arrays, strict=False):
            if array.shape[:1] != (len(seeds),):
                raise _NonsenseError(f"{name} must have {len(seeds)} rows, one per solution, but has {array.shape}")
        return list(zip(*arrays, strict=True))

    def _checked(self, returned: Any) -> Value | Failure:
        """What was returned for one solution, if it makes sense."""
        try:
            parts = _parts(returned)
            fitness = _numbers("fitness", parts[0], ())
            behavior = _seen(parts[1], self.behavior_shape, self.eight_bit)
            if behavior.ndim == 0:
                raise _NonsenseError("behavior must be an array, but is a single number")
            truth_shape = None if self.truth_dim is None else (self.truth_dim,)
            truth = _numbers("truth", parts[2] if len(parts) == 3 else np.zeros(0), truth_shape)
            if truth.ndim != 1:
                raise _NonsenseError(f"truth must be a vector, but has shape {truth.shape}")
        except _NonsenseError as error:
            return Failure(Kind.NONSENSE, str(error))
        return Value(float(fitness), behavior, truth)


@dataclasses.dataclass(frozen=True)
class Packed:
    """A simulator as bytes, for another process."""

    pickled: bytes
    batch: bool


class _NonsenseError(Exception):
    """What a simulator returned cannot be used."""


_PARTS = ("fitness", "behavior", "truth")


def _parts(returned: Any) -> Sequence[Any]:
    """Two or three parts; a truth of None is none."""
    if not isinstance(returned, tuple | list) or len(returned) not in (2, 3):
        what = f"{len(returned)} values" if isinstance(returned, tuple | list) else f"{type(returned).__name__}"
        raise _NonsenseError(f"a simulator returns (fitness, behavior) or (fitness, behavior, truth), but gave {what}")
    return returned[:2] if len(returned) == 3 and returned[2] is None else returned


def _array(name: str, values: Any) -> np.ndarray:
    """The values as an array of real numbers."""
    try:
        array = np.asarray(values)
    except Exception as error:  # ragged lists, objects with odd conversions of their own
        raise _NonsenseError(f"{name} cannot be made an array: {str(error).rstrip('.')}") from None
    if array.dtype.kind not in "fiub":
        raise _NonsenseError(f"{name} must be real numbers, but is {type(values).__name__} of dtype {array.dtype}")
    return array


def _shaped(name: str, values: Any, shape: tuple[int, ...] | None) -> np.ndarray:
    """The values as an array of this shape, if one is given."""
    array = _array(name, values)
    if shape is not None and array.shape != shape:
        raise _NonsenseError(f"{name} must have shape {shape}, but has {array.shape}")
    return array


def _numbers(name: str, values: Any, shape: tuple[int, ...] | None) -> np.ndarray:
    """Finite float32 of this shape, if one is given."""
    array = _shaped(name, values, shape)
    with np.errstate(over="ignore"):
        single = array.astype(np.float32)
    bad = np.count_nonzero(~np.isfinite(single))
    if bad:
        raise _NonsenseError(f"{name} is not finite (in single precision): {bad} of {array.size} numbers")
    return single


def _seen(values: Any, shape: tuple[int, ...] | None, eight_bit: bool) -> np.ndarray:
    """Behavior of this shape: 8-bit levels as they are, others as finite float32 where not all are `eight_bit`."""
    array = _shaped("behavior", values, shape)
    if array.dtype == np.uint8:
        return array
    floats = _numbers("behavior", array, shape)
    if not eight_bit:
        return floats
    levels = as_levels(floats)
    if levels is None:
        raise _NonsenseError(
            f"behavior must be 8-bit levels as it was at first, but is {array.dtype} with other numbers; return uint8 "
            "always, or say eight_bit=False"
        )
    return levels


def _told(error: BaseException) -> str:
    """The error and the user's line that raised it, in one line."""
    said = " ".join(str(error).split())
    told = f"{type(error).__name__}: {said}" if said else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _FOREIGN.search(frame.filename) and frame.filename != __file__]
    if not own:
        return f"{told} (it is called as simulate(solution, seed), or with arrays of both in a batch)"
    return f"{told} ({Path(own[-1].filename).name}, line {own[-1].lineno})"


_FOREIGN = re.compile(r"[/\\]site-packages[/\\]|^<")  # libraries, and what they generate
