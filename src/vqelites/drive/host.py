"""The host shell: the loop driven evaluation by evaluation, wherever they happen."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from vqelites.loop import QD, State, TellInfo, UpdateInfo
from vqelites.schedule import Moment, Schedule
from vqelites.types import Evaluation, Trials


class Rows(NamedTuple):
    """Evaluated solutions in NumPy, one row each."""

    ids: np.ndarray  # (n,)
    solutions: np.ndarray  # (n, s)
    fitness: np.ndarray  # (n,)
    behavior: np.ndarray  # (n, *shape)
    truth: np.ndarray  # (n, t)

    def part(self, start: int, stop: int) -> "Rows":
        """The rows from start to stop."""
        return Rows(*(column[start:stop] for column in self))

    def within(self, size: int, first: int) -> tuple[Trials, Evaluation, Bool[Array, "size"]]:
        """These rows from place `first` of a batch of this size, the rest zeros; and which places they take."""

        def placed(column: np.ndarray, dtype: type) -> Array:
            whole = np.zeros((size, *column.shape[1:]), dtype)
            whole[first : first + len(column)] = column
            return jnp.asarray(whole)

        trials = Trials(placed(self.ids, np.int32), placed(self.solutions, np.float32))
        evaluation = Evaluation(*(placed(column, np.float32) for column in self[2:]))
        place = jnp.arange(size)
        return trials, evaluation, (place >= first) & (place < first + len(self.ids))


class Host:
    """One run whose solutions are tried outside: takes evaluations in pieces of any size and does what is due.

    An iteration is over after every `qd.batch_size` completed evaluations, however they were grouped. `state` changes
    only when a call is complete: whatever interrupts one, it can be made again.
    """

    def __init__(self, qd: QD, state: State):
        self.qd, self.state = qd, state
        self._moment: tuple[int, Moment] | None = None

    @classmethod
    def begin(cls, qd: QD, seed: int) -> "Host":
        """At the very beginning."""
        return cls(qd, _init(qd, jnp.asarray(seed, jnp.uint32)))

    @property
    def evaluations(self) -> int:
        """How many were told."""
        before = 0 if self.state.bootstrapping else self.qd.bootstrap
        return before + int(self.state.iteration) * self.qd.batch_size + int(self.state.told)

    def ask(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids (count,) and solutions (count, s)."""
        state, trials = _ask(self.qd, self.state, count)
        asked = np.array(trials.id), np.array(trials.solution)
        self.state = state
        return asked

    def claim(self, count: int) -> np.ndarray:
        """Ids (count,) for solutions that come from elsewhere."""
        first = int(self.state.next_id)
        self.state = eqx.tree_at(lambda s: s.next_id, self.state, self.state.next_id + count)
        return np.arange(first, first + count)

    def tell(self, rows: Rows) -> list[tuple[TellInfo, UpdateInfo]]:
        """Take in evaluated solutions, doing every update that falls due on the way; what each piece did."""
        state, infos, done = self.state, [], 0
        while done < len(rows.ids):
            size = min(len(rows.ids) - done, self._until_boundary(state))
            state, info = self._take(state, rows.part(done, done + size))
            infos.append(info)
            done += size
        self.state = state
        return infos

    def pretrain(self, behavior: np.ndarray) -> UpdateInfo:
        """Train the model on behavior that was brought along, before anything is told."""
        self.state, info = _pretrain(self.qd, self.state, jnp.asarray(behavior))
        return info

    def _until_boundary(self, state: State) -> int:
        """How many evaluations are missing until something may be due; pieces have the size of a batch at most."""
        told = int(state.told)
        return min((self.qd.bootstrap if state.bootstrapping else self.qd.batch_size) - told, self.qd.batch_size)

    def _take(self, state: State, rows: Rows) -> tuple[State, tuple[TellInfo, UpdateInfo]]:
        """One piece, within a whole batch, so that pieces of every size run the same compiled code."""
        told, moment = int(state.told), self._at(int(state.iteration))
        batch = rows.within(self.qd.batch_size, 0 if state.bootstrapping else told)
        complete = told + len(rows.ids) == (self.qd.bootstrap if state.bootstrapping else self.qd.batch_size)
        trials, evaluation, present = batch
        state, info = _tell(self.qd, state, trials, evaluation, moment, present)
        if not complete:
            return state, (info, UpdateInfo.nothing())
        state, updated = _start(self.qd, state) if state.bootstrapping else _update(self.qd, state, moment)
        return state, (info, updated)

    def _at(self, iteration: int) -> Moment:
        """What is due in this iteration; asked for by every piece of it."""
        if self._moment is None or self._moment[0] != iteration:
            self._moment = iteration, _at(self.qd.schedule, jnp.asarray(iteration, jnp.int32))
        return self._moment[1]


_init, _ask, _tell = eqx.filter_jit(QD.init), eqx.filter_jit(QD.ask), eqx.filter_jit(QD.tell)
_start, _update, _pretrain = eqx.filter_jit(QD.start), eqx.filter_jit(QD.update), eqx.filter_jit(QD.pretrain)
_at = eqx.filter_jit(Schedule.at)
