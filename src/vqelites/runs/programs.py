"""The programs of a configuration: compiled for a task in JAX, with an evaluator for a simulator in Python."""

import functools
from collections.abc import Iterator
from dataclasses import replace
from threading import Thread
from typing import Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vqelites import checkpoint, inputs
from vqelites.drive import AbstractSimulated, Asynchronous, Compiled, InStep, StepInfo
from vqelites.drive.compiled import after_bootstrap
from vqelites.drive.shelf import Shelf
from vqelites.drive.simulated import Watch
from vqelites.evaluation import (
    AbstractEvaluator,
    Activity,
    ClusterEvaluator,
    EvaluatorError,
    LocalEvaluator,
    PoolEvaluator,
    Simulator,
    Value,
    evaluation_seeds,
    probe,
)
from vqelites.experiments.build import build, measure_of
from vqelites.experiments.config import Settings
from vqelites.loop import QD, State
from vqelites.metrics import measure
from vqelites.runs.checkpoints import state_like
from vqelites.runs.config import Config, Evaluating
from vqelites.runs.files import RunError
from vqelites.runs.kept_programs import kept_whole
from vqelites.runs.taskfiles import MissingSimulator, make_task
from vqelites.tasks import AbstractTask, SimulatorTask, Task

_PROBES = 8  # random solutions evaluated to find out the shapes of a simulator, until one can be evaluated


class Programs:
    """An algorithm on a task, ready to run, and the size of its state. Closing it ends its workers."""

    def __init__(self, task: Task, qd: QD, runs: Compiled | AbstractSimulated):
        self.task, self.qd, self.runs = task, qd, runs
        self._simulated = runs if isinstance(runs, AbstractSimulated) else None
        self.bytes = _bytes(state_like(qd))

    @property
    def activity(self) -> Activity | None:
        """What the evaluator is doing; None where all is compiled."""
        return self._simulated.evaluator.activity if self._simulated else None

    def begin(self, seeds: np.ndarray, then: int) -> Iterator[tuple[State, StepInfo | None]]:
        """The bootstrap of a run per seed, in as many pieces as it can be saved in; at last with what it did.

        Where all is compiled, `then` iterations are compiled beside it, and what saving needs is imported.
        """
        if isinstance(self.runs, Compiled):
            Thread(target=checkpoint.prepare, daemon=True).start()
            yield self.runs.begin(seeds, then)
        else:
            yield from self.runs.bootstrap(self.runs.init(seeds))

    def bootstrap(self, state: State) -> Iterator[tuple[State, StepInfo | None]]:
        """The rest of a bootstrap."""
        assert self._simulated
        return self._simulated.bootstrap(state)

    def under_way(self, run: int) -> dict[str, np.ndarray] | None:
        """What a checkpoint of a run that does not wait holds besides the state."""
        return self._simulated.under_way(run) if self._simulated else None

    def restore(self, state: State, under_way: list[dict[str, np.ndarray]]) -> None:
        """Before going on from a saved state: have what was under way then evaluated again."""
        if self._simulated:
            self._simulated.restore(state, under_way)

    def watch(self, watch: Watch) -> None:
        """Have every result of an evaluator looked at."""
        if self._simulated:
            self._simulated.watch = watch

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._simulated:
            self._simulated.close()


def programs(config: Config, simulator: SimulatorTask | None, start: np.ndarray | None) -> Programs:
    """What runs this configuration, of a simulator or of a task in JAX, which is made by its name.

    Raises before any work if they do not fit together.
    """
    if simulator is not None:
        qd, evaluator = build(simulator, config.settings, given=start), make_evaluator(simulator, config.evaluating)
        shell = Asynchronous if config.evaluating.mode == "async" else InStep
        return Programs(simulator, qd, shell(qd, evaluator, measure_of(simulator.interface)))
    if config.evaluating != Evaluating():
        raise RunError(
            f"{config.task} is a task in JAX, which is compiled: it takes no workers, timeout, cluster or mode."
        )
    return _compiled(config.task, config.settings) if start is None else _made(config.task, config.settings, start)


def state_bytes(config: Config) -> int:
    """The size of a state of this configuration, its 8-bit behavior counted as the floats that networks make of it.

    Raises if its settings do not fit its task.
    """
    if config.interface is None:
        qd = _compiled(config.task, config.settings).qd
    else:
        qd = build(make_task(config.task, config.interface), config.settings)
    return sum(4 * x.size for x in jax.tree.leaves(state_like(qd)))


def _bytes(state: State) -> int:
    return sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state))


@functools.lru_cache(maxsize=2)
def _compiled(name: str, settings: Settings) -> Programs:
    """The same object for the same names and numbers: whoever runs them twice compiles once."""
    return _made(name, settings, None)


def _made(name: str, settings: Settings, start: np.ndarray | None) -> Programs:
    task = make_task(name)
    assert isinstance(task, AbstractTask)
    _check_task(name, task)
    qd = build(task, settings, given=start)
    measured = functools.partial(measure, task.bins)
    kept = kept_whole(name, settings) if start is None else None
    if kept is None:
        return Programs(task, qd, Compiled(qd, task, measured))
    shelf = Shelf(kept, lambda: eqx.filter_eval_shape(after_bootstrap, qd)[0])
    return Programs(task, qd, Compiled(qd, task, measured, shelf))


def _check_task(name: str, task: AbstractTask) -> None:
    """Raise if what the task returns does not have the shapes it declares, or if its behavior is not in 8 bits."""
    solutions = jax.ShapeDtypeStruct((2, task.space.dim), jnp.float32)
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0)))
    result = jax.eval_shape(task.evaluate, keys, solutions)
    wanted = {"fitness": (2,), "behavior": (2, *task.behavior_shape), "truth": (2, len(task.truth_low))}
    for part, shape in wanted.items():
        if getattr(result, part).shape != shape:
            raise RunError(
                f"The task {name!r} returns {part} of shape {getattr(result, part).shape} for 2 solutions, but by its "
                f"sizes it should be {shape}."
            )
    if task.eight_bit and result.behavior.dtype != jnp.uint8:
        raise RunError(f"The task {name!r} has eight_bit, so behavior must be uint8, but is {result.behavior.dtype}.")
    _check_channels(task.behavior_shape)


def _check_channels(shape: tuple[int, ...]) -> None:
    """Raise if behavior of this shape seems to be images with their channels first."""
    try:
        inputs.channels_last(shape)
    except ValueError as error:
        raise RunError(str(error)) from error


def make_evaluator(task: SimulatorTask, options: Evaluating) -> AbstractEvaluator:
    """What evaluates the solutions of a simulator."""
    if isinstance(task.source, MissingSimulator):
        task.source.simulate(None, None)
    known = task.interface
    simulator = Simulator(task.simulate, task.batch, known.behavior_shape, known.truth_dim, task.eight_bit)
    try:
        if options.cluster is not None:
            return ClusterEvaluator(
                simulator,
                options.cluster,
                workers=options.workers,
                timeout=options.timeout,
                retries=options.retries,
                num_cpus=options.num_cpus,
                num_gpus=options.num_gpus,
            )
        if options.workers is not None:
            return PoolEvaluator(simulator, options.workers, timeout=options.timeout, retries=options.retries)
        return LocalEvaluator(simulator, retries=options.retries)
    except EvaluatorError as error:
        raise RunError(str(error)) from error


def with_shapes(task: SimulatorTask, options: Evaluating, seed: int) -> SimulatorTask:
    """The task with what one evaluation of a random solution shows of its behavior, if that is not all known."""
    known = task.interface
    if not known.complete:
        value = check_works(task, options, seed)
        task = task.with_interface(known.shown(value.behavior, len(value.truth)))
    _check_channels(task.behavior_shape)
    return task


def check_works(task: SimulatorTask, options: Evaluating, seed: int) -> Value:
    """What the first random solution that can be evaluated does; raises if none of some can be."""
    solutions = np.asarray(jax.vmap(task.space.random)(jax.random.split(jax.random.key(seed), _PROBES)))
    one = replace(options, workers=1) if options.by_workers else options
    with make_evaluator(task, one) as evaluator:
        try:
            return probe(evaluator, solutions, evaluation_seeds(seed, range(_PROBES)))
        except EvaluatorError as error:
            raise RunError(f"The simulator does not work: {error}") from error
