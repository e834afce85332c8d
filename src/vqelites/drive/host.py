"""The host shell: the loop driven evaluation by evaluation, wherever they happen."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from vqelites.drive.steps import Measure, StepInfo, no_measure
from vqelites.loop import QD, State, TellInfo, UpdateInfo
from vqelites.schedule import Moment, Schedule
from vqelites.types import Elites, Evaluation, Trials


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

    def within(self, size: int, first: int, moment: Moment) -> tuple[Trials, Evaluation, Moment, Bool[Array, "size"]]:
        """What `QD.tell` takes: these rows from place `first` of a batch of this size, the rest absent."""

        def placed(column: np.ndarray, dtype: type) -> Array:
            whole = np.zeros((size, *column.shape[1:]), dtype)
            whole[first : first + len(column)] = column
            return jnp.asarray(whole)

        trials = Trials(placed(self.ids, np.int32), placed(self.solutions, np.float32))
        evaluation = Evaluation(*(placed(column, np.float32) for column in self[2:]))
        return trials, evaluation, moment, placed(np.ones(len(self.ids), bool), bool)


class Piece(NamedTuple):
    """What some evaluations did."""

    tell: TellInfo
    update: UpdateInfo
    places: slice  # of the evaluations in their batch
    done: State | None  # after the bootstrap or an iteration that they completed


class Host:
    """Runs whose solutions are tried outside: takes evaluations in pieces of any size and does what is due.

    An iteration is over after every `qd.batch_size` completed evaluations, however they were grouped. Nothing is kept
    here but what is compiled: a call returns the next state, so one that is interrupted has changed nothing.
    """

    def __init__(self, qd: QD, measure: Measure = no_measure):
        self.qd, self._measure = qd, measure
        self._moment: tuple[int, Moment] | None = None

    def begin(self, seed: int) -> State:
        """The state before anything was tried."""
        return _init(self.qd, jnp.asarray(seed, jnp.uint32))

    def evaluations(self, state: State) -> int:
        """How many were told."""
        before = 0 if state.bootstrapping else self.qd.bootstrap
        return before + int(state.iteration) * self.qd.batch_size + int(state.told)

    def missing(self, state: State) -> int:
        """How many evaluations complete the bootstrap or the present iteration."""
        return (self.qd.bootstrap if state.bootstrapping else self.qd.batch_size) - int(state.told)

    def ask(self, state: State, count: int) -> tuple[State, np.ndarray, np.ndarray]:
        """Ids (count,) and solutions (count, s) to try."""
        state, trials = _ask(self.qd, state, count)
        return state, np.array(trials.id), np.array(trials.solution)

    def claim(self, state: State, count: int) -> tuple[State, np.ndarray]:
        """Ids (count,) for solutions that come from elsewhere."""
        state, ids = _claim(self.qd, state, count)
        return state, np.array(ids)

    def tell(self, state: State, rows: Rows) -> tuple[State, list[Piece]]:
        """Take in evaluated solutions, doing every update that falls due on the way."""
        pieces, done = [], 0
        while done < len(rows.ids):
            size = min(len(rows.ids) - done, self.missing(state), self.qd.batch_size)
            state, piece = self._take(state, rows.part(done, done + size))
            pieces.append(piece)
            done += size
        return state, pieces

    def learns_at(self, iteration: int) -> bool:
        """Whether the model is trained after this iteration."""
        return self.qd.schedule.learns and bool(self._at(iteration).learn)

    def info(self, told: TellInfo, updated: UpdateInfo, state: State) -> StepInfo:
        """What happened in an iteration that ended in this state, with what is measured of the elites."""
        return StepInfo(told, updated, _measured(self._measure, self.qd.archive.elites(state.archive)))

    def pretrain(self, state: State, behavior: np.ndarray) -> State:
        """Train the model on behavior (n, *shape) that was brought along, before anything is told."""
        return _pretrain(self.qd, state, jnp.asarray(behavior))[0]

    def _take(self, state: State, rows: Rows) -> tuple[State, Piece]:
        """One piece, within a whole batch, so that pieces of every size run the same compiled code."""
        moment, complete = self._at(int(state.iteration)), len(rows.ids) == self.missing(state)
        first = 0 if state.bootstrapping else int(state.told)
        places = slice(first, first + len(rows.ids))
        state, info = _tell(self.qd, state, *rows.within(self.qd.batch_size, first, moment))
        if not complete:
            return state, Piece(info, UpdateInfo.nothing(), places, None)
        state, updated = _start(self.qd, state) if state.bootstrapping else _update(self.qd, state, moment)
        return state, Piece(info, updated, places, state)

    def _at(self, iteration: int) -> Moment:
        """What is due in this iteration; asked for by every piece of it."""
        if self._moment is None or self._moment[0] != iteration:
            self._moment = iteration, _at(self.qd.schedule, jnp.asarray(iteration, jnp.int32))
        return self._moment[1]


@eqx.filter_jit
def _measured(measure: Measure, elites: Elites) -> dict[str, Array]:
    return measure(elites)


_init = eqx.filter_jit(QD.init)
_ask = eqx.filter_jit(QD.ask)
_claim = eqx.filter_jit(QD.claim)
_tell = eqx.filter_jit(QD.tell)
_start = eqx.filter_jit(QD.start)
_update = eqx.filter_jit(QD.update)
_pretrain = eqx.filter_jit(QD.pretrain)
_at = eqx.filter_jit(Schedule.at)
