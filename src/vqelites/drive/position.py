"""Where a run driven from the host stands, and what is told to it."""

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array

from vqelites.archives import InsertInfo
from vqelites.drive.bundle import Bundle
from vqelites.drive.steps import StepInfo
from vqelites.loop import State, TellInfo


class Rows(NamedTuple):
    """Evaluated solutions in NumPy, one row each."""

    ids: np.ndarray  # (n,)
    solutions: np.ndarray  # (n, s)
    fitness: np.ndarray  # (n,)
    behavior: np.ndarray  # (n, *shape), floats or 8-bit levels
    truth: np.ndarray  # (n, t)

    def part(self, start: int, stop: int) -> "Rows":
        """The rows from start to stop."""
        return Rows(*(column[start:stop] for column in self))

    def within(self, size: int, first: int) -> tuple[Any, ...]:
        """What `QD.tell` takes: these rows from place `first` of a batch of this size, the rest absent."""

        def placed(column: np.ndarray, dtype: type) -> np.ndarray:
            whole = np.zeros((size, *column.shape[1:]), dtype)
            whole[first : first + len(column)] = column
            return whole

        held = np.uint8 if self.behavior.dtype == np.uint8 else np.float32
        kinds = np.int32, np.float32, np.float32, held, np.float32
        columns = (placed(column, kind) for column, kind in zip(self, kinds, strict=True))
        return *columns, placed(np.ones(len(self.ids), bool), bool)


@dataclass(frozen=True)
class Position:
    """Where a run stands: its state, and what of it the host counts itself, so that it need not ask the device.

    The state is held as its leaves: taking apart and putting together its tree would cost as much as an insert.
    """

    leaves: tuple[Array, ...]
    structure: Any
    bootstrapping: bool
    iteration: int
    told: int
    next_id: int

    @classmethod
    def of(cls, state: State) -> "Position":
        """The position of a state."""
        leaves, structure = jax.tree.flatten(state)
        counts = map(int, (state.iteration, state.told, state.next_id))
        return cls(tuple(leaves), structure, state.bootstrapping, *counts)

    @functools.cached_property
    def state(self) -> State:
        """The whole of it."""
        return jax.tree.unflatten(self.structure, self.leaves)

    def after(self, changed: dict[int, Array], **counts: Any) -> "Position":
        """With other leaves at these places, and other counts."""
        leaves = list(self.leaves)
        for place, leaf in changed.items():
            leaves[place] = leaf
        return replace(self, leaves=tuple(leaves), **counts)


@dataclass(frozen=True)
class Piece:
    """What some evaluations did. It may still be computed: whoever reads it waits."""

    numbers: Bundle  # a `StepInfo` without the outcome of every row
    rows: Bundle  # which is here
    places: slice  # of the evaluations in their batch
    done: Position | None  # after the bootstrap or an iteration that they completed

    @functools.cached_property
    def info(self) -> StepInfo:
        """As the other shells tell it."""
        step = self.numbers.tree()
        insert = step.tell.insert
        insert = InsertInfo(insert.added, insert.replaced, insert.evicted, self.rows.tree())
        return StepInfo(TellInfo(insert, step.tell.rejected), step.update, step.measures)
