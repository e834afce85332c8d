"""The host shell: the loop driven evaluation by evaluation, wherever they happen."""

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from vqelites.drive.steps import Measure, StepInfo, no_measure
from vqelites.loop import QD, Lesson, State, TellInfo, UpdateInfo
from vqelites.schedule import Due, Moment, Schedule
from vqelites.types import Elites, Evaluation, Trials

_AHEAD = 256  # iterations whose moments are worked out together


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

    def within(self, size: int, first: int) -> tuple[Any, ...]:
        """What `QD.tell` takes: these rows from place `first` of a batch of this size, the rest absent."""

        def placed(column: np.ndarray, dtype: type) -> np.ndarray:
            whole = np.zeros((size, *column.shape[1:]), dtype)
            whole[first : first + len(column)] = column
            return whole

        columns = (placed(self.ids, np.int32), *(placed(column, np.float32) for column in self[1:]))
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

    @classmethod
    def of(cls, state: State) -> "Position":
        """The position of a state."""
        leaves, structure = jax.tree.flatten(state)
        return cls(tuple(leaves), structure, state.bootstrapping, int(state.iteration), int(state.told))

    @functools.cached_property
    def state(self) -> State:
        """The whole of it."""
        return jax.tree.unflatten(self.structure, self.leaves)

    def with_leaves(self, changed: dict[int, Array]) -> "Position":
        """With other leaves at these places."""
        leaves = list(self.leaves)
        for place, leaf in changed.items():
            leaves[place] = leaf
        return replace(self, leaves=tuple(leaves))


class Piece(NamedTuple):
    """What some evaluations did."""

    tell: TellInfo
    update: UpdateInfo
    measures: dict[str, Array]
    places: slice  # of the evaluations in their batch
    done: Position | None  # after the bootstrap or an iteration that they completed

    @property
    def info(self) -> StepInfo:
        """As the other shells tell it."""
        return StepInfo(self.tell, self.update, self.measures)


class Host:
    """Runs whose solutions are evaluated elsewhere: takes results in pieces of any size and does what is due.

    An iteration is over after every `qd.batch_size` completed evaluations, however they were grouped. Nothing is kept
    here but what is compiled: a call returns the next position, so one that is interrupted has changed nothing.

    Where training goes on `beside`, telling leaves it out: whoever drives calls `train`, perhaps in another thread, and
    `adopt`. A bootstrap that is complete then waits for its training, and nothing more can be told until that.
    """

    def __init__(self, qd: QD, measure: Measure = no_measure, *, beside: bool = False):
        self.qd, self.measure, self._beside = qd, measure, beside and qd.schedule.learns
        numbers, fixed = (jax.tree.flatten(part) for part in eqx.partition(qd, eqx.is_array))
        self._numbers = tuple(numbers[0])
        self._algorithm = numbers[1], tuple(fixed[0]), fixed[1]
        self._programs: dict[tuple[Any, ...], tuple[Any, Callable[..., Any]]] = {}
        self._moments: dict[int, Moment] = {}

    def begin(self, seed: int) -> Position:
        """Before any evaluation."""
        return Position.of(_init(self.qd, jnp.asarray(seed, jnp.uint32)))

    def evaluations(self, at: Position) -> int:
        """How many were told."""
        return at.told if at.bootstrapping else self.qd.bootstrap + at.iteration * self.qd.batch_size + at.told

    def missing(self, at: Position) -> int:
        """How many evaluations complete the bootstrap or the present iteration."""
        return (self.qd.bootstrap if at.bootstrapping else self.qd.batch_size) - at.told

    def ask(self, at: Position, count: int) -> tuple[Position, np.ndarray, np.ndarray]:
        """Ids (count,) and solutions (count, s) to evaluate."""
        changed, trials = self._compiled(_ask, at, count)(self._numbers, at.leaves)
        return at.with_leaves(changed), np.array(trials.id), np.array(trials.solution)

    def claim(self, at: Position, count: int) -> tuple[Position, np.ndarray]:
        """Ids (count,) for solutions that come from elsewhere."""
        changed, ids = self._compiled(_claim, at, count)(self._numbers, at.leaves)
        return at.with_leaves(changed), np.array(ids)

    def tell(self, at: Position, rows: Rows) -> tuple[Position, list[Piece]]:
        """Take in evaluated solutions, doing every update that falls due on the way."""
        pieces, done = [], 0
        while done < len(rows.ids):
            size = min(len(rows.ids) - done, self.missing(at), self.qd.batch_size)
            at, piece = self._take(at, rows.part(done, done + size))
            pieces.append(piece)
            done += size
        return at, pieces

    def learns_at(self, iteration: int) -> bool:
        """Whether the model is trained after this iteration."""
        return self.qd.schedule.learns and bool(self._at(iteration).learn)

    def train(self, at: Position) -> Lesson:
        """What the model learns from what is known at this position."""
        program = self._compiled(_train, at)
        return jax.block_until_ready(program(self._numbers, at.leaves, self._at(max(0, at.iteration - 1))))

    def adopt(self, at: Position, lesson: Lesson) -> tuple[Position, UpdateInfo]:
        """Go on with what was learned, at this or an earlier position since the last lesson."""
        state, updated = self._compiled(_adopt, at)(self._numbers, at.leaves, lesson)
        return Position.of(state), jax.device_get(updated)

    def measured(self, state: State) -> dict[str, Array]:
        """What is measured of the elites of a state."""
        return jax.device_get(_measured(self.measure, self.qd.archive.elites(state.archive)))

    def pretrain(self, at: Position, behavior: np.ndarray) -> Position:
        """Train the model on behavior (n, *shape) that was brought along, before anything is told."""
        return Position.of(_pretrain(self.qd, at.state, jnp.asarray(behavior))[0])

    def _take(self, at: Position, rows: Rows) -> tuple[Position, Piece]:
        """One piece, within a whole batch, so that pieces of every size run the same compiled code."""
        first, complete = 0 if at.bootstrapping else at.told, len(rows.ids) == self.missing(at)
        moment, batch = self._at(at.iteration), rows.within(self.qd.batch_size, first)
        due = Due(int(moment.due)) if complete and not at.bootstrapping else None
        due = Due.NOTHING if self._beside and due is Due.LEARN else due
        program = self._compiled(_tell, at, due, self.measure)
        changed, *infos = program(self._numbers, at.leaves, batch, moment)
        at = replace(at.with_leaves(changed), told=at.told + len(rows.ids))
        if complete and at.bootstrapping and not self._beside:
            state, *started = self._compiled(_start, at, self.measure)(self._numbers, at.leaves)
            at, infos[1:] = Position.of(state), started
        elif complete and not at.bootstrapping:
            at = replace(at, iteration=at.iteration + 1, told=0)
        told, updated, measures = jax.tree.map(np.asarray, infos)
        places = slice(first, first + len(rows.ids))
        return at, Piece(told, updated or _nothing(), measures, places, at if complete else None)

    def _compiled(self, method: Callable[..., Any], at: Position, *static: Any) -> Callable[..., Any]:
        """The method as a function of leaves, compiled once for all algorithms and states that look alike.

        Comparing their structures takes long, so what was found is remembered by identity.
        """
        key = (method, id(at.structure), *static)
        if key not in self._programs:
            self._programs[key] = at.structure, _program(method, self._algorithm, at.structure, static)
        return self._programs[key][1]

    def _at(self, iteration: int) -> Moment:
        """What is due in this iteration; many are worked out at a time."""
        if iteration not in self._moments:
            table = jax.device_get(_moments(self.qd.schedule, jnp.int32(iteration)))
            rows = (jax.tree.map(operator.itemgetter(row), table) for row in range(_AHEAD))
            self._moments = dict(enumerate(rows, iteration))
        return self._moments[iteration]


def _ask(qd: QD, state: State, count: int) -> Any:
    after, trials = qd.ask(state, count)
    return _changed(state, after), trials


def _claim(qd: QD, state: State, count: int) -> Any:
    after, ids = qd.claim(state, count)
    return _changed(state, after), ids


def _tell(qd: QD, state: State, rows: tuple[Array, ...], moment: Moment, due: Due | None, measure: Measure) -> Any:
    """Tell a piece and, where it completes an iteration, update; what is due is known then."""
    ids, solutions, fitness, behavior, truth, present = rows
    trials, evaluation = Trials(ids, solutions), Evaluation(fitness, behavior, truth)
    after, told = qd.tell(state, trials, evaluation, moment, present)
    if due is None:
        return _changed(state, after), told, None, {}
    after, updated = qd.update(_rounded(state, after), moment, due)
    measures = measure(qd.archive.elites(after.archive))
    return _changed(state, after), told, None if due is Due.NOTHING else updated, measures


def _train(qd: QD, state: State, moment: Moment) -> Lesson:
    return qd.train(state, moment)


def _adopt(qd: QD, state: State, lesson: Lesson) -> Any:
    return qd.start(state, lesson) if state.bootstrapping else qd.adopt(state, lesson)


def _start(qd: QD, state: State, measure: Measure) -> Any:
    state, updated = qd.start(state)
    return state, updated, measure(qd.archive.elites(state.archive))


def _changed(before: State, after: State) -> dict[int, Array]:
    """The leaves that a program changes, by their place. To hand back the others too would copy them."""
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    return {place: new for place, (old, new) in enumerate(pairs) if new is not old}


def _rounded(before: State, after: State) -> State:
    """After, its changed leaves kept apart from what is computed with them next.

    Pieces that complete nothing are told by a program of their own, and both must round alike.
    """
    leaves, structure = jax.tree.flatten(after)
    kept = jax.lax.optimization_barrier(_changed(before, after))
    return jax.tree.unflatten(structure, [kept.get(place, leaf) for place, leaf in enumerate(leaves)])


@functools.lru_cache(maxsize=256)
def _program(
    method: Callable[..., Any], algorithm: tuple[Any, ...], structure: Any, static: tuple[Any, ...]
) -> Callable[..., Any]:
    """A method of the loop as a function of leaves."""
    variable, fixed_leaves, fixed = algorithm

    def call(numbers: tuple[Array, ...], leaves: tuple[Array, ...], *arguments: Any) -> Any:
        qd = eqx.combine(jax.tree.unflatten(variable, numbers), jax.tree.unflatten(fixed, fixed_leaves))
        return method(qd, jax.tree.unflatten(structure, leaves), *arguments, *static)

    return jax.jit(call)


@functools.cache
def _nothing() -> UpdateInfo:
    """The info of no update, in NumPy, made once: making it each time would take longer than an insert."""
    return jax.device_get(UpdateInfo.nothing())


@eqx.filter_jit
def _moments(schedule: Schedule, first: Array) -> Moment:
    return jax.vmap(schedule.at)(first + jnp.arange(_AHEAD, dtype=jnp.int32))


@eqx.filter_jit
def _measured(measure: Measure, elites: Elites) -> dict[str, Array]:
    return measure(elites)


_init = eqx.filter_jit(QD.init)
_pretrain = eqx.filter_jit(QD.pretrain)
