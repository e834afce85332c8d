"""The compiled shell: tasks in JAX, all iterations between two trainings in one program, for all seeds."""

import functools
import itertools
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt32

from vqelites.archives import InsertInfo
from vqelites.drive.devices import Shared, bare, each, grouped, leading
from vqelites.drive.shelf import AbstractWorkshop, Program, Workshop
from vqelites.drive.steps import Measure, StepInfo, no_measure
from vqelites.keys import evaluation_keys
from vqelites.loop import QD, Assignment, State, TellInfo, UpdateInfo
from vqelites.schedule import Moment
from vqelites.tasks.base import AbstractTask
from vqelites.types import Evaluation, Trials

_WORKSHOP = Workshop()

Span = tuple[Int[Array, ""], Int[Array, ""]]  # the first of some iterations, and how many


class Compiled(eqx.Module):
    """Runs a JAX task: iterations are a compiled loop, for all seeds together, on all devices.

    Trainings are a program of their own, outside of this loop. Most of the time to compile goes into them, and so it is
    spent once: the training at the end of the bootstrap and all later ones are the same program.
    """

    qd: QD
    task: AbstractTask
    measure: Measure = eqx.field(static=True, default=no_measure)
    workshop: AbstractWorkshop = eqx.field(static=True, default=_WORKSHOP)

    def begin(self, seeds: Int[Array, "runs"] | np.ndarray, then: int = 0) -> tuple[State, StepInfo]:
        """Bootstrap one run per seed; every leaf of the result has a leading axis of runs.

        Its training, and the `then` iterations that come next, are compiled meanwhile; later calls wait for them.
        """
        tracing = Lock()  # one after the other, first the training, which takes longest to compile
        with ThreadPoolExecutor(2) as beside:
            beside.submit(self._prepare_training, len(seeds), tracing)
            if then:
                beside.submit(self._prepare_iterations, len(seeds), then, tracing)
            started = jax.device_put(np.asarray(seeds).astype(np.uint32).reshape(leading(len(seeds))))
            state, info, assignment = self.workshop.run(_begin, (self.qd, self.task), started, self.measure)
            if assignment is None:
                return grouped((state, info))
            state, updated, measures, tell = grouped((*self._learned(state, assignment), info.tell))
            return state, StepInfo(tell, updated, measures)

    def _prepare_training(self, runs: int, tracing: Lock) -> None:
        """Compile the training at the end of the bootstrap, if there is one."""
        with tracing:
            state, assignment = eqx.filter_eval_shape(after_bootstrap, self.qd)
            if assignment is None:
                return
            others, archive = _parted(_blank(state, runs))
            fixed = self.qd, self.task, _blank(assignment, runs), archive
            learn = self.workshop.prepare(_learn, fixed, others, self.measure)
        learn()

    def _prepare_iterations(self, runs: int, count: int, tracing: Lock) -> None:
        """Compile the iterations of `advance`, and what its trainings are given."""
        with tracing:
            state = _blank(eqx.filter_eval_shape(after_bootstrap, self.qd)[0], runs)
            fixed = self.qd, self.task, (_whole(0), _whole(0))
            iterate = self.workshop.prepare(_iterate, fixed, state, count, self.measure)
        iterate()
        if self.qd.schedule.learns:
            self.workshop.prepare(_assign, (self.qd, self.task, _whole(0)), state)()

    def advance(self, state: State, first: int, count: int) -> tuple[State, StepInfo]:
        """`count` iterations of all runs, from iteration `first` on; info leaves are (runs, count, ...).

        The given state is consumed: its memory is reused.
        """
        trained = self.qd.schedule.trainings(first, count)
        ends = sorted({first, first + count, *(iteration + 1 for iteration in trained)})
        infos, state = [], bare(state)
        for begin, end in itertools.pairwise(ends):
            fixed = self.qd, self.task, (_whole(begin), _whole(end - begin))
            state, info = self.workshop.run(_iterate, fixed, state, count, self.measure)
            changed = None
            if end - 1 in trained:
                assignment = self.workshop.run(_assign, (self.qd, self.task, _whole(end - 1)), state)
                state, *changed = self._learned(state, assignment)
            infos.append((info, changed, end - begin))
        return grouped(state), _joined(infos, alone=not state.seed.ndim)

    def _learned(self, state: State, assignment: Assignment) -> tuple[State, UpdateInfo, dict[str, Array]]:
        """A training. The archive's memory is not reused, since all of it is read while the new one is written."""
        others, archive = _parted(state)
        return self.workshop.run(_learn, (self.qd, self.task, assignment, archive), others, self.measure)


def begin(
    qd: QD, task: AbstractTask | Shared, seed: Int[Array, ""], measure: Measure
) -> tuple[State, StepInfo, Assignment | None]:
    """The state after the bootstrap, before the first iteration; before its training, if one is due."""
    state, told, updated = qd.init(seed), TellInfo.nothing(), UpdateInfo.nothing()
    assignment = None
    if state.bootstrapping:
        state, trials = qd.ask(state, qd.bootstrap)
        state, told = qd.tell(state, trials, evaluate(task, state, trials), qd.schedule.at(0))
        told = TellInfo(InsertInfo.nothing(), told.rejected)  # that archive is gone
        if qd.schedule.learns:
            assignment, state = qd.assign(state, qd.schedule.at(0)), qd.emptied(state)
        else:
            state, updated = qd.start(state)
    return state, StepInfo(told, updated, {} if assignment else measure(qd.archive.elites(state.archive))), assignment


def step(qd: QD, task: AbstractTask | Shared, state: State, moment: Moment, measure: Measure) -> tuple[State, StepInfo]:
    """One iteration: ask, evaluate, tell, and a rebuild if it is due. A training is left to the caller."""
    state, trials = qd.ask(state, qd.batch_size)
    state, told = qd.tell(state, trials, evaluate(task, state, trials), moment)
    state, updated = qd.update(state, moment)
    return state, StepInfo(told, updated, measure(qd.archive.elites(state.archive)))


def evaluate(task: AbstractTask | Shared, state: State, trials: Trials) -> Evaluation:
    """What the solutions do, each with a key of its own."""
    return task.evaluate(evaluation_keys(state.seed, trials.id), trials.solution)


def learn(qd: QD, state: State, assignment: Assignment, measure: Measure) -> tuple[State, UpdateInfo, dict[str, Array]]:
    """A training and what follows from it."""
    state, updated = qd.adopt(state, assignment, qd.train(state, assignment))
    return state, updated, measure(qd.archive.elites(state.archive))


def steps(
    qd: QD,
    task: AbstractTask | Shared,
    state: State,
    span: Span,
    most: int,
    measure: Measure,
) -> tuple[State, StepInfo]:
    """Run the `count` iterations of a span; the first `count` of the info's `most` rows are filled.

    The state has the number of its iteration too, but batched where many runs advance side by side: what is due must
    not be.
    """
    first, count = span
    one = eqx.filter_jit(step)  # traced once, though called twice
    _, shapes = eqx.filter_eval_shape(one, qd, task, state, qd.schedule.at(first), measure)
    infos = jax.tree.map(lambda x: jnp.zeros((most, *x.shape), x.dtype), shapes)

    def body(i: Int[Array, ""], carry: tuple[State, StepInfo]) -> tuple[State, StepInfo]:
        state, infos = carry
        state, info = one(qd, task, state, qd.schedule.at(first + i), measure)
        return state, jax.tree.map(lambda rows, row: rows.at[i].set(row), infos, info)

    return jax.lax.fori_loop(0, count, body, (state, infos))


def _joined(infos: list[tuple[StepInfo, Any, int]], *, alone: bool) -> StepInfo:
    """The filled rows of all infos; the last row of each has what a training after it changed.

    Those of a run `alone` have no leading axis of runs yet.
    """
    parts = []
    for info, changed, count in jax.device_get(infos):
        if alone:
            info, changed = jax.tree.map(lambda x: x[None], (info, changed))
        part = jax.tree.map(lambda x, n=count: np.array(x[:, :n]), info)
        if changed is not None:
            for rows, last in zip(jax.tree.leaves((part.update, part.measures)), jax.tree.leaves(changed), strict=True):
                rows[:, -1] = last
        parts.append(part)
    return jax.tree.map(lambda *x: np.concatenate(x, axis=1), *parts)


def after_bootstrap(qd: QD) -> tuple[State, Assignment | None]:
    """A state after the bootstrap, and what is trained on then: for their shapes."""
    state = qd.init(0)
    if not state.bootstrapping:
        return state, None
    return qd.emptied(state), qd.assign(state, qd.schedule.at(0)) if qd.schedule.learns else None


def _blank(shapes: Any, runs: int) -> Any:
    """Zeros of these shapes for so many runs."""
    return jax.device_put(jax.tree.map(lambda x: np.zeros((*leading(runs), *x.shape), x.dtype), shapes))


def _whole(number: int) -> Int[Array, ""]:
    """A number as an array, which JAX itself would compile a program for."""
    return jax.device_put(np.int32(number))


def _parted(state: State) -> tuple[State, Any]:
    """The state without its archive, and the archive."""
    return eqx.tree_at(lambda s: s.archive, state, None), state.archive


@Program
def _begin(fixed: tuple[QD, AbstractTask], seeds: UInt32[Array, "*runs"], measure: Measure) -> Any:
    qd, task = fixed
    return each(lambda task, seed: begin(qd, task, seed, measure), qd, task, seeds)


@functools.partial(Program, donated=True)
def _iterate(fixed: tuple[QD, AbstractTask, Span], state: State, most: int, measure: Measure) -> tuple[State, StepInfo]:
    qd, task, span = fixed
    return each(lambda task, state: steps(qd, task, state, span, most, measure), qd, task, state)


@Program
def _assign(fixed: tuple[QD, AbstractTask, Int[Array, ""]], state: State) -> Assignment:
    qd, task, iteration = fixed
    return each(lambda _, state: qd.assign(state, qd.schedule.at(iteration)), qd, task, state)


@functools.partial(Program, donated=True)
def _learn(
    fixed: tuple[QD, AbstractTask, Assignment, Any], others: State, measure: Measure
) -> tuple[State, UpdateInfo, dict[str, Array]]:
    qd, task, assignment, archive = fixed

    def one(_: AbstractTask | Shared, run: tuple[State, Any, Assignment]) -> Any:
        others, archive, assignment = run
        state = eqx.tree_at(lambda s: s.archive, others, archive, is_leaf=lambda x: x is None)
        return learn(qd, state, assignment, measure)

    return each(one, qd, task, (others, archive, assignment))
