"""The host shell: the loop driven evaluation by evaluation, wherever they happen."""

import concurrent.futures
import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from vqelites.archives.base import InsertOutcome
from vqelites.drive.bundle import Bundle
from vqelites.drive.compiling import OPTIONS
from vqelites.drive.leafwise import Waiting, awaited, changed, nothing_said, program
from vqelites.drive.position import Piece, Position, Rows
from vqelites.drive.steps import Measure, StepInfo, no_measure
from vqelites.loop import QD, Assignment, Lesson, State, UpdateInfo
from vqelites.schedule import Due, Moment, Schedule
from vqelites.types import Elites, Evaluation, Trials

Learned = tuple[Assignment, Lesson]  # what was trained on, and the result

_AHEAD = 256  # iterations whose moments are worked out together


class Host:
    """Runs whose solutions are evaluated elsewhere: takes results in pieces of any size and does what is due.

    An iteration is over after every `qd.batch_size` completed evaluations, however they were grouped. Nothing is kept
    here but what is compiled: a call returns the next position, so one that is interrupted has changed nothing.

    Where training goes on `beside`, telling leaves it out: whoever drives calls `train`, perhaps in another thread, and
    `adopt`. A bootstrap that is complete then waits for its training, and nothing more can be told until that.
    """

    def __init__(self, qd: QD, measure: Measure = no_measure, *, beside: bool = False):
        self.qd, self.measure, self._beside = qd, measure, beside and qd.schedule.learns
        # Looked up in every call, and slow to find in a Module.
        self.batch_size, self.bootstrap, self.sizes = qd.batch_size, qd.bootstrap, qd.sizes
        self.iterations, self.learns = qd.schedule.iterations, qd.schedule.learns
        numbers, fixed = (jax.tree.flatten(part) for part in eqx.partition(qd, eqx.is_array))
        self._numbers = tuple(numbers[0])
        self._algorithm = numbers[1], tuple(fixed[0]), fixed[1]
        self._programs: dict[tuple[Any, ...], tuple[Any, Callable[..., Any]]] = {}
        self._moments: dict[int, tuple[Due, tuple[np.generic, ...]]] = {}
        self._ahead: concurrent.futures.Future[None] | None = None  # the training is compiled beside the bootstrap

    def begin(self, seed: int) -> Position:
        """Before any evaluation."""
        return Position.of(_init(self.qd, jnp.asarray(seed, jnp.uint32)))

    def evaluations(self, at: Position) -> int:
        """How many were told."""
        return at.told if at.bootstrapping else self.bootstrap + at.iteration * self.batch_size + at.told

    def missing(self, at: Position) -> int:
        """How many evaluations complete the bootstrap or the present iteration."""
        return (self.bootstrap if at.bootstrapping else self.batch_size) - at.told

    def ask(self, at: Position, count: int) -> tuple[Position, np.ndarray, np.ndarray]:
        """Ids (count,) and solutions (count, s) to evaluate."""
        leaves, solutions = self._compiled(_ask, at, count)(self._numbers, at.leaves)
        return at.after(leaves, next_id=at.next_id + count), _ids(at, count), np.array(solutions)

    def claim(self, at: Position, count: int) -> tuple[Position, np.ndarray]:
        """Ids (count,) for solutions that come from elsewhere."""
        leaves = self._compiled(_claim, at, count)(self._numbers, at.leaves)
        return at.after(leaves, next_id=at.next_id + count), _ids(at, count)

    def tell(
        self, at: Position, rows: Rows, *, in_place: bool = False, waiting: Waiting = nothing_said
    ) -> tuple[Position, list[Piece]]:
        """Take in evaluated solutions, doing every update that falls due on the way.

        `in_place` writes over the archive of the position, which is then used up, instead of copying all of it.
        `waiting` hears of every training how long it has taken so far.
        """
        pieces, done = [], 0
        while done < len(rows.ids):
            size = min(len(rows.ids) - done, self.missing(at), self.batch_size)
            at, piece = self._take(at, rows.part(done, done + size), in_place, waiting)
            pieces.append(piece)
            done += size
        return at, pieces

    def learns_at(self, iteration: int) -> bool:
        """Whether the model is trained after this iteration."""
        return self.learns and self._at(iteration)[0] is Due.LEARN

    def train(self, at: Position, waiting: Waiting = nothing_said) -> Learned:
        """What the model learns from what is known at this position."""
        if self._ahead is not None:
            concurrent.futures.wait([self._ahead])
        moment = self._at(max(0, at.iteration - 1))[1]
        assignment = self._compiled(_assign, at)(self._numbers, at.leaves, moment)
        at = self._emptied(at)
        return awaited((assignment, self._compiled(_train, at)(self._numbers, at.leaves, assignment)), waiting)

    def adopt(self, at: Position, learned: Learned) -> tuple[Position, UpdateInfo, dict[str, Array]]:
        """Go on with what was learned, at this or an earlier position since the last lesson; and what is measured."""
        at = self._emptied(at)
        adopted = self._adopted(at, learned, mend=False)
        updated = adopted[1]
        # What begins a map anew is a third of all there is to compile, and hardly ever needed.
        return self._adopted(at, learned, mend=True) if awaited(updated.map.restarted) else adopted

    def _adopted(self, at: Position, learned: Learned, mend: bool) -> tuple[Position, UpdateInfo, dict[str, Array]]:
        leaves, *found = self._compiled(_adopt, at, self.measure, mend)(self._numbers, at.leaves, *learned)
        return at.after(leaves), *found

    def measured(self, state: State) -> dict[str, Array]:
        """What is measured of the elites of a state."""
        return jax.device_get(_measured(self.measure, self.qd.archive.elites(state.archive)))

    def pretrain(
        self, at: Position, behavior: np.ndarray, waiting: Waiting = nothing_said
    ) -> tuple[Position, UpdateInfo]:
        """Train the model on behavior (n, *shape) that was brought along, before anything is told."""
        state, updated = awaited(_pretrain(self.qd, at.state, jnp.asarray(behavior)), waiting)
        return Position.of(state), jax.device_get(updated)

    def _take(self, at: Position, rows: Rows, in_place: bool, waiting: Waiting) -> tuple[Position, Piece]:
        """One piece, within a whole batch, so that pieces of every size run the same compiled code."""
        count, first = len(rows.ids), 0 if at.bootstrapping else at.told
        complete = count == self.missing(at)
        due, moment = self._at(at.iteration)
        ends: Due | None = due if complete and not at.bootstrapping else None
        trains = complete and self.learns and not self._beside and (at.bootstrapping or due is Due.LEARN)
        ending = Due.NOTHING if ends is Due.LEARN else ends
        tell = self._compiled(_tell, at, ending, self.measure, in_place=in_place)
        leaves, numbers, outcomes = tell(self._numbers, at.leaves, rows.within(self.batch_size, first), moment)
        counts = {"told": at.told + count} if ends is None else {"iteration": at.iteration + 1, "told": 0}
        at = at.after(leaves, **counts)
        if trains:
            at, updated, measures = self.adopt(at, self.train(at, waiting))
            numbers = _updated(numbers, updated, measures)
        elif complete and at.bootstrapping and not self.learns:
            state, numbers = self._compiled(_start, at, self.measure)(self._numbers, at.leaves, numbers)
            at = Position.of(state)
        if trains or ends:  # an update takes long: whoever is interrupted then has told nothing
            awaited(numbers)
        elif at.bootstrapping and self.learns and self._ahead is None:
            shapes = replace(at, leaves=jax.eval_shape(lambda leaves: leaves, at.leaves))  # telling uses up the arrays
            self._ahead = _compiler().submit(self._compile_training, shapes)
        return at, Piece(numbers, outcomes, slice(first, first + count), at if complete else None)

    def _compile_training(self, at: Position) -> None:
        """Compile the training that will end a bootstrap, from its shapes: calls that need it then find it done."""
        moment = self._at(0)[1]
        assign, empty = self._compiled(_assign, at), self._compiled(_empty, at)
        assignment = jax.eval_shape(assign, self._numbers, at.leaves, moment)
        leaves, structure = jax.tree.flatten(jax.eval_shape(empty, self._numbers, at.leaves))
        emptied = replace(at, leaves=tuple(leaves), structure=structure, bootstrapping=False)
        train, adopt = self._compiled(_train, emptied), self._compiled(_adopt, emptied, self.measure, False)
        lesson = jax.eval_shape(train, self._numbers, emptied.leaves, assignment)
        with concurrent.futures.ThreadPoolExecutor(1) as beside:  # one program alone does not keep two cores busy
            learnt = beside.submit(train.lower(self._numbers, emptied.leaves, assignment).compile)
            adopt.lower(self._numbers, emptied.leaves, assignment, lesson).compile()
            assign.lower(self._numbers, at.leaves, moment).compile()
            empty.lower(self._numbers, at.leaves).compile()
            learnt.result()

    def _emptied(self, at: Position) -> Position:
        """The position after the bootstrap, its archive emptied for re-insertion; any other position as it is."""
        return Position.of(self._compiled(_empty, at)(self._numbers, at.leaves)) if at.bootstrapping else at

    def _compiled(self, method: Callable[..., Any], at: Position, *static: Any, in_place: bool = False) -> Any:
        """The method as a function of leaves, compiled once for all algorithms and states that look alike.

        Comparing their structures takes long, so what was found is remembered by identity.
        """
        key = (method, id(at.structure), in_place, *static)
        if key not in self._programs:
            self._programs[key] = at.structure, program(method, self._algorithm, at.structure, static, in_place)
        return self._programs[key][1]

    def _at(self, iteration: int) -> tuple[Due, tuple[np.generic, ...]]:
        """What is due in this iteration, and the fields of its moment; many are worked out at a time."""
        known = self._moments  # two threads may look, and work out others
        if iteration not in known:
            table = jax.device_get(_moments(self.qd.schedule, jnp.int32(iteration)))
            rows = zip(map(Due, table.due.tolist()), zip(*jax.tree.leaves(table), strict=True), strict=True)
            known = self._moments = dict(enumerate(rows, iteration))
        return known[iteration]


@functools.cache
def _compiler() -> concurrent.futures.Executor:
    """One thread for all runs of this process: compiling has threads of its own."""
    return concurrent.futures.ThreadPoolExecutor(1, "vqelites-compiling")


def _ids(at: Position, count: int) -> np.ndarray:
    return np.arange(at.next_id, at.next_id + count, dtype=np.int32)


def _ask(qd: QD, state: State, count: int) -> Any:
    after, trials = qd.ask(state, count)
    return changed(state, after), trials.solution


def _claim(qd: QD, state: State, count: int) -> Any:
    return changed(state, qd.claim(state, count)[0])


def _tell(
    qd: QD, state: State, rows: tuple[Array, ...], moment: tuple[Array, ...], due: Due | None, measure: Measure
) -> Any:
    """Tell a piece and, where it completes an iteration, update; what is due is known then."""
    ids, solutions, fitness, behavior, truth, present = rows
    trials, evaluation, now = Trials(ids, solutions), Evaluation(fitness, behavior, truth), Moment(*moment)
    after, told = qd.tell(state, trials, evaluation, now, present)
    updated, measures = UpdateInfo.nothing(), {}
    if due is not None:
        after, updated = qd.update(_rounded(state, after), now, due)
        measures = measure(qd.archive.elites(after.archive))
    outcome = told.insert.rows
    told = eqx.tree_at(lambda info: info.insert.rows, told, InsertOutcome.nothing())
    return changed(state, after), Bundle.of(StepInfo(told, updated, measures)), Bundle.of(outcome)


def _assign(qd: QD, state: State, moment: tuple[Array, ...]) -> Assignment:
    return qd.assign(state, Moment(*moment))


def _empty(qd: QD, state: State) -> State:
    return qd.emptied(state)


def _train(qd: QD, state: State, assignment: Assignment) -> Lesson:
    return qd.train(state, assignment)


def _adopt(qd: QD, state: State, assignment: Assignment, lesson: Lesson, measure: Measure, mend: bool) -> Any:
    after, updated = qd.adopt(state, assignment, lesson, mend)
    return changed(state, after), updated, measure(qd.archive.elites(after.archive))


def _start(qd: QD, state: State, told: Bundle, measure: Measure) -> Any:
    state, updated = qd.start(state)
    return state, _updated(told, updated, measure(qd.archive.elites(state.archive)))


@jax.jit
def _updated(told: Bundle, updated: UpdateInfo, measures: dict[str, Array]) -> Bundle:
    """What a piece did, with what an update after it did and what is measured then."""
    return Bundle.of(StepInfo(told.traced().tell, updated, measures))


def _rounded(before: State, after: State) -> State:
    """`after`, with its changed leaves kept from being fused with what follows.

    Pieces that complete no iteration are told by another program, and both must round alike.
    """
    leaves, structure = jax.tree.flatten(after)
    kept = jax.lax.optimization_barrier(changed(before, after))
    return jax.tree.unflatten(structure, [kept.get(place, leaf) for place, leaf in enumerate(leaves)])


@eqx.filter_jit
def _moments(schedule: Schedule, first: Array) -> Moment:
    return jax.vmap(schedule.at)(first + jnp.arange(_AHEAD, dtype=jnp.int32))


@eqx.filter_jit
def _measured(measure: Measure, elites: Elites) -> dict[str, Array]:
    return measure(elites)


_init = eqx.filter_jit(QD.init)
_pretrain = eqx.filter_jit(QD.pretrain, **OPTIONS)
