"""Two drivers for the same loop: compiled for tasks in JAX, host for simulators anywhere else."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from vqelites.archives import InsertInfo
from vqelites.keys import Stream, stream_key
from vqelites.loop import QD, State, TellInfo, UpdateInfo
from vqelites.schedule import Moment
from vqelites.tasks.base import AbstractTask
from vqelites.types import Elites, Evaluation

Measure = Callable[[Elites], dict[str, Array]]
Simulate = Callable[[np.ndarray], Evaluation]


class StepInfo(eqx.Module):
    """What happened in one iteration; `measures` is whatever the caller wanted computed from the elites."""

    tell: TellInfo
    update: UpdateInfo
    measures: dict[str, Array]


def no_measure(elites: Elites) -> dict[str, Array]:
    """Measure nothing."""
    return {}


def begin(
    qd: QD, task: AbstractTask, seed: int | Int[Array, ""], measure: Measure = no_measure
) -> tuple[State, StepInfo]:
    """The state after the bootstrap, before the first iteration."""
    state, told, updated = qd.init(seed), TellInfo.nothing(), UpdateInfo.nothing()
    if qd.bootstrap:
        state, solutions = qd.ask_random(state, qd.bootstrap)
        evaluation = task.evaluate(stream_key(state.seed, Stream.EVALUATION, 0), solutions)
        seeds, rejected = qd.candidates(state, solutions, evaluation, None)
        state, updated = qd.start(state, seeds)
        told = TellInfo(InsertInfo.nothing(), rejected)
    return state, StepInfo(told, updated, measure(qd.archive.elites(state.archive)))


def step(
    qd: QD, task: AbstractTask, state: State, moment: Moment, measure: Measure = no_measure
) -> tuple[State, StepInfo]:
    """One iteration: ask, evaluate, tell, and whatever update is due."""
    key = stream_key(state.seed, Stream.EVALUATION, state.next_id)
    state, solutions = qd.ask(state, qd.batch_size)
    state, told = qd.tell(state, solutions, task.evaluate(key, solutions), moment.cooperate)
    state, updated = _update(qd, state, moment)
    return state, StepInfo(told, updated, measure(qd.archive.elites(state.archive)))


def _update(qd: QD, state: State, moment: Moment) -> tuple[State, UpdateInfo]:
    """Train or rebuild if due. The moment is never batched, so under vmap this stays a branch."""

    def idle(state: State) -> tuple[State, UpdateInfo]:
        return state, UpdateInfo.nothing()

    if not qd.schedule.learns:
        return idle(state)
    due = moment.learn.astype(jnp.int32) + 2 * (moment.rebuild & ~moment.learn)
    return jax.lax.switch(due, [idle, lambda s: qd.learn(s, moment), lambda s: qd.rebuild(s)], state)


def steps(
    qd: QD, task: AbstractTask, state: State, first: Int[Array, ""], count: int, measure: Measure = no_measure
) -> tuple[State, StepInfo]:
    """`count` iterations from number `first` on; the info gains a leading axis of that length."""

    def body(state: State, iteration: Int[Array, ""]) -> tuple[State, StepInfo]:
        return step(qd, task, state, qd.schedule.at(iteration), measure)

    return jax.lax.scan(body, state, first + jnp.arange(count, dtype=jnp.int32))


class Compiled(eqx.Module):
    """Runs a JAX task: every iteration of a chunk is one compiled scan, for all seeds in one program."""

    qd: QD
    task: AbstractTask
    measure: Measure = eqx.field(static=True, default=no_measure)

    def begin(self, seeds: Int[Array, "runs"]) -> tuple[State, StepInfo]:
        """Bootstrap one run per seed; every leaf of the result has a leading axis of runs."""
        return _begin(self.qd, self.task, jnp.asarray(seeds, jnp.uint32), self.measure)

    def advance(self, state: State, first: int, count: int) -> tuple[State, StepInfo]:
        """`count` iterations of all runs, from iteration `first` on; info leaves are (runs, count, ...).

        The given state is consumed: its memory is reused.
        """
        return _advance((self.qd, self.task, jnp.asarray(first, jnp.int32)), state, count, self.measure)


@eqx.filter_jit
def _begin(qd: QD, task: AbstractTask, seeds: Int[Array, "runs"], measure: Measure) -> tuple[State, StepInfo]:
    return _each(lambda seed: begin(qd, task, seed, measure), seeds)


@eqx.filter_jit(donate="all-except-first")
def _advance(
    fixed: tuple[QD, AbstractTask, Int[Array, ""]], state: State, count: int, measure: Measure
) -> tuple[State, StepInfo]:
    qd, task, first = fixed
    return _each(lambda state: steps(qd, task, state, first, count, measure), state)


def _each(run: Callable[[Any], Any], runs: Any) -> Any:
    """What becomes of every run: side by side on an accelerator, one after the other on a CPU.

    Side by side all branches are computed, whichever a run takes. That pays where small runs leave a device idle; on
    two CPU cores three runs of AURORA take up to half as long again, and a single one more than twice as long.
    """
    if side_by_side(jax.tree.leaves(runs)[0].shape[0]):
        return jax.vmap(run)(runs)
    return jax.lax.map(run, runs)


def side_by_side(runs: int) -> bool:
    """Whether this many runs are computed at the same time: JAX's default backend decides."""
    return runs > 1 and jax.default_backend() != "cpu"


class Host:
    """Runs any simulator: the parts are compiled one by one, evaluation happens wherever `simulate` does it."""

    def __init__(self, qd: QD, simulate: Simulate, measure: Measure = no_measure):
        self.qd, self.simulate, self.measure = qd, simulate, measure

    def begin(self, seed: int) -> tuple[State, StepInfo]:
        """The state after the bootstrap."""
        state = call(self.qd, "init", jnp.asarray(seed, jnp.uint32))
        told, updated = TellInfo.nothing(), UpdateInfo.nothing()
        if self.qd.bootstrap:
            state, solutions = call(self.qd, "ask_random", state, self.qd.bootstrap)
            evaluation = self.simulate(np.asarray(solutions))
            seeds, rejected = call(self.qd, "candidates", state, solutions, evaluation, None)
            state, updated = call(self.qd, "start", state, seeds)
            told = TellInfo(InsertInfo.nothing(), rejected)
        return state, StepInfo(told, updated, self.measure(self.qd.archive.elites(state.archive)))

    def step(self, state: State, iteration: int) -> tuple[State, StepInfo]:
        """One iteration."""
        moment = self.qd.schedule.at(iteration)
        state, solutions = call(self.qd, "ask", state, self.qd.batch_size)
        evaluation = self.simulate(np.asarray(solutions))
        state, told = call(self.qd, "tell", state, solutions, evaluation, moment.cooperate)
        updated = UpdateInfo.nothing()
        if moment.learn:
            state, updated = call(self.qd, "learn", state, moment)
        elif moment.rebuild:
            state, updated = call(self.qd, "rebuild", state)
        return state, StepInfo(told, updated, self.measure(self.qd.archive.elites(state.archive)))


@eqx.filter_jit
def call(qd: QD, method: str, *args: Any) -> Any:
    """One method of the loop, compiled; static arguments are part of what it is compiled for."""
    return getattr(qd, method)(*args)
