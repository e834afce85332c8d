"""The compiled shell: tasks in JAX, every iteration of a chunk in one program, for all seeds."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from vqelites.archives import InsertInfo
from vqelites.drive.devices import Shared, each
from vqelites.drive.steps import Measure, StepInfo, no_measure
from vqelites.keys import Stream, stream_keys
from vqelites.loop import QD, State, TellInfo, UpdateInfo
from vqelites.schedule import Moment
from vqelites.tasks.base import AbstractTask
from vqelites.types import Evaluation, Trials


class Compiled(eqx.Module):
    """Runs a JAX task: every iteration of a chunk is one compiled scan, for all seeds together, on all devices."""

    qd: QD
    task: AbstractTask
    measure: Measure = eqx.field(static=True, default=no_measure)

    def begin(self, seeds: Int[Array, "runs"]) -> tuple[State, StepInfo]:
        """Bootstrap one run per seed; every leaf of the result has a leading axis of runs."""
        return _begin(self.qd, self.task, jnp.asarray(seeds, jnp.uint32), self.measure)

    def compile_ahead(self, like: State, runs: int, count: int) -> None:
        """Compile `advance` for so many runs and iterations: a later call finds it done. One run's state is `like`."""
        state = jax.tree.map(lambda x: jnp.asarray(np.zeros((runs, *x.shape), x.dtype)), like)
        fixed = self.qd, self.task, jnp.array(0, jnp.int32)
        _advance.lower(fixed, state, count, self.measure).compile()  # type: ignore[attr-defined]

    def advance(self, state: State, first: int, count: int) -> tuple[State, StepInfo]:
        """`count` iterations of all runs, from iteration `first` on; info leaves are (runs, count, ...).

        The given state is consumed: its memory is reused.
        """
        return _advance((self.qd, self.task, jnp.asarray(first, jnp.int32)), state, count, self.measure)


def begin(qd: QD, task: AbstractTask | Shared, seed: int | Int[Array, ""], measure: Measure) -> tuple[State, StepInfo]:
    """The state after the bootstrap, before the first iteration."""
    state, told, updated = qd.init(seed), TellInfo.nothing(), UpdateInfo.nothing()
    if state.bootstrapping:
        state, trials = qd.ask(state, qd.bootstrap)
        state, told = qd.tell(state, trials, evaluate(task, state, trials), qd.schedule.at(0))
        state, updated = qd.start(state)
        told = TellInfo(InsertInfo.nothing(), told.rejected)  # that archive is gone
    return state, StepInfo(told, updated, measure(qd.archive.elites(state.archive)))


def step(qd: QD, task: AbstractTask | Shared, state: State, moment: Moment, measure: Measure) -> tuple[State, StepInfo]:
    """One iteration: ask, evaluate, tell, and whatever update is due."""
    state, trials = qd.ask(state, qd.batch_size)
    state, told = qd.tell(state, trials, evaluate(task, state, trials), moment)
    state, updated = qd.update(state, moment)
    return state, StepInfo(told, updated, measure(qd.archive.elites(state.archive)))


def evaluate(task: AbstractTask | Shared, state: State, trials: Trials) -> Evaluation:
    """What the solutions do, each with a key of its own."""
    return task.evaluate(stream_keys(state.seed, Stream.EVALUATION, trials.id), trials.solution)


def steps(
    qd: QD, task: AbstractTask | Shared, state: State, first: Int[Array, ""], count: int, measure: Measure
) -> tuple[State, StepInfo]:
    """`count` iterations from number `first` on; the info gains a leading axis of that length.

    The state has that number too, but batched where many runs advance side by side: what is due must not be.
    """

    def body(state: State, iteration: Int[Array, ""]) -> tuple[State, StepInfo]:
        return step(qd, task, state, qd.schedule.at(iteration), measure)

    return jax.lax.scan(body, state, first + jnp.arange(count, dtype=jnp.int32))


@eqx.filter_jit
def _begin(qd: QD, task: AbstractTask, seeds: Int[Array, "runs"], measure: Measure) -> tuple[State, StepInfo]:
    return each(lambda task, seed: begin(qd, task, seed, measure), qd, task, seeds)


@eqx.filter_jit(donate="all-except-first")
def _advance(
    fixed: tuple[QD, AbstractTask, Int[Array, ""]], state: State, count: int, measure: Measure
) -> tuple[State, StepInfo]:
    qd, task, first = fixed
    return each(lambda task, state: steps(qd, task, state, first, count, measure), qd, task, state)
