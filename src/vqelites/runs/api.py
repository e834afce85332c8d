"""Runs from Python."""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from vqelites.experiments.config import Settings
from vqelites.experiments.presets import wanted
from vqelites.inputs import numbers
from vqelites.runs import runner
from vqelites.runs.config import Config, Evaluating, Mode, Saving
from vqelites.runs.events import Observe
from vqelites.runs.folder import open_folder
from vqelites.runs.run import Run
from vqelites.runs.runner import never
from vqelites.runs.start import read_solutions
from vqelites.runs.taskfiles import given_again, make_task
from vqelites.runs.tracking import tracked
from vqelites.tasks import AbstractTask, Interface, SimulatorTask, own_interface, registry, simulator_task


def run(
    task: str | AbstractTask | SimulatorTask | Callable[[Any, Any], Any] | Any,
    algorithm: str = "vq-elites",
    *,
    preset: str = "paper",
    seed: int = 0,
    out: Path | str | None = None,
    settings: Settings | None = None,
    batch: bool = False,
    start: np.ndarray | Path | str | None = None,
    workers: int | None = None,
    timeout: float | None = None,
    retries: int = 0,
    cluster: str | None = None,
    num_cpus: float = 1,
    num_gpus: float = 0,
    mode: Mode = "step",
    minutes: float | None = None,
    track: str | Sequence[str] = (),
    saving: Saving | None = None,
    overwrite: bool = False,
    draw: bool = True,
    observe: Observe | None = None,
    stop: Callable[[], bool] = never,
    **values: Any,
) -> Run:
    """Run an algorithm on a task into a folder, and return that run.

    Args:
        task: a name (`vqelites tasks` lists them), a task, or your simulator: a function
            `(solution, seed) -> fitness, behavior[, truth]`, or an object with such a method `simulate`.
        algorithm: vq-elites, map-elites, cvt-map-elites, aurora or aurora-plus.
        preset: default hyperparameters: paper (full size), quick (minutes on two cores), literal (the paper's text).
        seed: all randomness comes from it.
        out: the run folder; `runs/TASK-ALGORITHM-SEED` if not given.
        settings: a record that replaces all hyperparameters, see `vqelites.experiments.presets.settings`.
        batch: the simulator takes solutions (n, s) and seeds (n,), and returns arrays of n rows.
        start: solutions (n, s) to start from, or the path of a .npy or .csv file or a run folder that has them.
        workers: processes that evaluate solutions; this process if not given.
        timeout: seconds after which an evaluation has failed.
        retries: times a failed evaluation is repeated.
        cluster: address of a Ray cluster whose nodes evaluate solutions, or "auto".
        num_cpus: CPUs of a node that each worker of the cluster takes.
        num_gpus: GPUs of a node that each worker of the cluster takes.
        mode: "step" evaluates batch by batch and is exactly repeatable; "async" waits neither for the slowest
            evaluation nor for training.
        minutes: time budget, after which the run is saved; `resume` continues it.
        track: experiment trackers that follow the run: "tensorboard", "wandb".
        saving: when checkpoints are written.
        overwrite: replace the run in the folder, if there is one.
        draw: put pictures into the folder at the end.
        observe: receives what the run reports, instead of the progress display (`vqelites.runs.events.silent`).
        stop: asked after every chunk of iterations; the run is saved and ends when it returns True.
        values: hyperparameters by name (`iterations=300, cells=500, latent_dim=3`), and of a simulator the fields of
            `Interface`: `solution_dim` (required), `low`, `high`, `bounded`, `truth_low`, `truth_high`, `bins`, ...
    """
    known = {field.name: values.pop(field.name) for field in fields(Interface) if field.name in values}
    if isinstance(task, AbstractTask):
        task = _named(task)
    elif not known and not batch:  # a function or class that a decorator has made known
        task = registry.name_of(task) or task
    simulator = _simulator(task, known, batch)
    name = task if isinstance(task, str) else name_of(simulator)
    config = Config(
        name,
        algorithm,
        preset,
        wanted(name, algorithm, preset, settings, values),
        saving=Saving() if saving is None else saving,
        evaluating=Evaluating(workers, timeout, retries, cluster, num_cpus, num_gpus, mode),
    )
    folder = default_folder(name, algorithm, seed) if out is None else Path(out)
    given = read_solutions(Path(start)) if isinstance(start, str | Path) else start
    with shown(observe) as watched, tracked(watched, track, folder) as followed:
        runner.execute(
            config,
            {seed: folder},
            simulator=simulator,
            start=None if given is None else numbers("start", given),
            overwrite=overwrite,
            draw=draw,
            minutes=minutes,
            observe=followed,
            stop=stop,
        )
    return Run(open_folder(folder), simulator)


def resume(
    folder: Path | str,
    simulate: Callable[[Any, Any], Any] | Any = None,
    *,
    batch: bool = False,
    iterations: int | None = None,
    workers: int | None = None,
    timeout: float | None = None,
    retries: int | None = None,
    cluster: str | None = None,
    minutes: float | None = None,
    track: str | Sequence[str] | None = None,
    restart: bool = False,
    draw: bool = True,
    observe: Observe | None = None,
    stop: Callable[[], bool] = never,
) -> Run:
    """Continue a run exactly where it was saved, and return it. What is not given stays as it was.

    Args:
        folder: the run folder.
        simulate: the simulator, if it is not registered by name.
        batch: it takes solutions (n, s) and seeds (n,), and returns arrays of n rows.
        iterations: extend the run to this number of iterations.
        workers: processes that evaluate solutions.
        timeout: seconds after which an evaluation has failed.
        retries: times a failed evaluation is repeated.
        cluster: address of a Ray cluster whose nodes evaluate solutions, or "auto".
        minutes: time budget, after which the run is saved again.
        track: experiment trackers that follow the run: "tensorboard", "wandb".
        restart: begin from the first iteration if nothing good is left to continue from.
        draw: put pictures into the folder at the end.
        observe: receives what the run reports, instead of the progress display.
        stop: asked after every chunk of iterations; the run is saved and ends when it returns True.
    """
    changes = {"workers": workers, "timeout": timeout, "retries": retries, "cluster": cluster}
    simulator = given_again(simulate, batch)
    with shown(observe) as watched, tracked(watched, track, Path(folder)) as followed:
        runner.resume(
            Path(folder),
            simulator=simulator,
            iterations=iterations,
            evaluating={name: value for name, value in changes.items() if value is not None},
            restart=restart,
            draw=draw,
            minutes=minutes,
            observe=followed,
            stop=stop,
        )
    return Run(open_folder(Path(folder)), simulator)


@contextlib.contextmanager
def shown(observe: Observe | None) -> Iterator[Observe]:
    """What watches a run: a progress display, if nothing else is given."""
    if observe is not None:
        yield observe
        return
    from vqelites.runs.progress import Display

    with Display() as display:
        yield display


def _named(task: AbstractTask) -> str:
    """The name by which a task in JAX can be made again, if it knows it."""
    name = getattr(task, "name", None)
    if not isinstance(name, str):
        raise ValueError("A task in JAX is run by its name: register it (`vqelites.tasks.registry.register`) first.")
    return name


def _simulator(task: Any, known: dict[str, Any], batch: bool) -> SimulatorTask | None:
    """The simulator that was given, if it was one and not a name."""
    if isinstance(task, str | SimulatorTask):
        if known or batch:
            if isinstance(task, str):
                make_task(task)  # raises if nobody knows the name
            given = ", ".join([*known, *["batch"] * batch])
            raise ValueError(f"{task!r} has an interface of its own; {given} can be given only with a simulator.")
        return None if isinstance(task, str) else task
    return simulator_task(task, batch, **known)


def name_of(simulator: SimulatorTask | None) -> str:
    """A name for a simulator: its own, by which it can be made again, or that of its function or class."""
    assert simulator is not None
    source = simulator.source
    if own_interface(source):
        return source.name
    name = getattr(source, "__name__", type(source).__name__)
    return re.sub(r"[^A-Za-z0-9_. -]", "", name) or "simulator"


def default_folder(task: str, algorithm: str, seed: int) -> Path:
    """Where a run goes if nothing else is said."""
    return Path("runs") / f"{re.sub(r'[^A-Za-z0-9_. -]+', '-', task)}-{algorithm}-{seed}"
