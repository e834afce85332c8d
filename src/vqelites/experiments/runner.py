"""From a configuration to run folders: all seeds of a group advance together, each writes a folder of its own."""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vqelites.drive import Compiled, StepInfo
from vqelites.experiments import checkpoints, contents, metrics_file, pictures, plan
from vqelites.experiments.build import build
from vqelites.experiments.checkpoints import Moment
from vqelites.experiments.environment import environment
from vqelites.experiments.events import Note, Observe, Phase, Status, silent
from vqelites.experiments.files import RunError, write_sealed
from vqelites.experiments.folder import Config, RunFolder, check_free, create, locked, open_folder, siblings
from vqelites.experiments.metrics_file import MetricsFile
from vqelites.experiments.recovery import Recovery, compare_environment, recover
from vqelites.experiments.run import Run, make_task
from vqelites.metrics import measure
from vqelites.tasks.base import AbstractTask

ENVIRONMENT_FORMAT = 1


@dataclass(frozen=True)
class Outcome:
    """How a group of runs ended."""

    folders: tuple[Path, ...]
    iteration: int
    finished: bool


def never() -> bool:
    """Go on to the end."""
    return False


def execute(
    config: Config,
    folders: Mapping[int, Path],
    *,
    overwrite: bool = False,
    draw: bool = True,
    observe: Observe = silent,
    stop: Callable[[], bool] = never,
) -> Outcome:
    """Run one configuration for all these seeds together, each in its folder.

    Folders of several seeds must lie beside each other. `stop` is asked after every chunk; when it says yes, all is
    saved, to be resumed. Everything that can go wrong with names, settings and folders does so before any work.
    """
    paths = _beside(folders)
    machine = _Machine.of(config)
    for path in paths.values():
        check_free(path, overwrite=overwrite, needed=(config.saving.keep + 1) * machine.bytes)
    group = {seed: path.name for seed, path in paths.items()} if len(paths) > 1 else {}
    made = [create(path, config, seed, group) for seed, path in paths.items()]
    with locked(made):
        for folder in made:
            write_sealed(folder.environment, {"format": ENVIRONMENT_FORMAT, **environment()})
            folder.log(f"started: {config.named}, seed {folder.seed}, {config.iterations} iterations")
        return _Group(machine, made, observe).go(stop, draw)


def resume(
    folder: Path,
    *,
    restart: bool = False,
    draw: bool = True,
    observe: Observe = silent,
    stop: Callable[[], bool] = never,
) -> Outcome:
    """Continue a run, with all runs computed together with it, from the newest checkpoint that is good in each.

    The result is the same as if it had never been interrupted. `restart` allows to begin anew where nothing good is
    left to continue from.
    """
    members = siblings(open_folder(folder))
    machine = _Machine.of(members[0].config)
    with locked(members):
        for note in compare_environment(members[0], environment()):
            observe(Note(note))
        found = recover(members, restart=restart)
        for note in found.notes:
            observe(Note(note))
        return _Group(machine, members, observe).go(stop, draw, found)


class _Machine:
    """The compiled programs of a configuration."""

    def __init__(self, config: Config, task: AbstractTask):
        self.config, self.task = config, task
        self.qd = build(task, config.settings)
        self.runs = Compiled(self.qd, task, functools.partial(measure, task.bins))
        self.like = jax.eval_shape(self.qd.init, jax.ShapeDtypeStruct((), jnp.uint32))
        self.bytes = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(self.like))

    @classmethod
    def of(cls, config: Config) -> "_Machine":
        task = make_task(config.task)
        _check_task(config.task, task)
        return cls(config, task)


class _Group:
    """Runs of one configuration while they advance together; every leaf of `state` has a leading axis of runs."""

    def __init__(self, machine: _Machine, folders: Sequence[RunFolder], observe: Observe):
        self.machine, self.folders, self.observe = machine, folders, observe
        self.config = folders[0].config
        self.state: Any = None
        self.iteration = 0
        self.rejected = np.zeros(len(folders), np.int64)
        self.latest = {name: np.full(len(folders), np.nan) for name in metrics_file.COLUMNS}
        self.seconds, self.saved_at, self.saved_time = 0.0, -1, time.monotonic()

    def go(self, stop: Callable[[], bool], draw: bool, found: Recovery | None = None) -> Outcome:
        """To the end, or until told to stop; all is saved then."""
        if found is None or found.moments is None or found.moments[0].iteration < self.config.iterations:
            self._tell("starting")
        else:
            self.observe(Note(f"{self.folders[0].path} is finished: there is nothing left to compute."))
        if found is None or found.moments is None:
            self._begin()
        else:
            self._continue(found.moments)
        iterations = self.config.iterations
        for first, count in plan.chunks(iterations, self.config.chunk, self.iteration):
            if stop():
                break
            self._advance(first, count)
            self._tell("running")
            if self._due() or self.iteration == iterations:
                self._save()
        finished = self.iteration == iterations
        self._save()
        for folder in self.folders:
            folder.log("finished" if finished else f"interrupted after iteration {self.iteration}")
        self._report_rejected()
        if finished and draw:
            self._draw()
        self._tell("finished" if finished else "interrupted")
        return Outcome(tuple(folder.path for folder in self.folders), self.iteration, finished)

    def _begin(self) -> None:
        began = time.monotonic()
        self.metrics = [MetricsFile(folder.metrics) for folder in self.folders]
        state, info = self.machine.runs.begin(jnp.array([folder.seed for folder in self.folders]))
        # Through the host, as after a restore: what is compiled for it must be the same in both cases.
        self.state = jax.tree.map(jnp.asarray, jax.device_get(state))
        self._record(jax.tree.map(lambda x: x[:, None], jax.device_get(info)), np.array([0]), began)

    def _continue(self, moments: Sequence[Moment]) -> None:
        self.iteration = moments[0].iteration
        states = [checkpoints.restore(folder, self.iteration, self.machine.like) for folder in self.folders]
        self.state = jax.tree.map(lambda *x: jnp.asarray(np.stack([np.asarray(leaf) for leaf in x])), *states)
        self.seconds = max(moment.seconds for moment in moments)
        self.rejected = np.array([moment.rejected for moment in moments])
        for index, (folder, moment) in enumerate(zip(self.folders, moments, strict=True)):
            # The archive first: its mark of metrics.csv must never lie past the end of that file.
            contents.save_archive(folder, self.machine.qd, self._one(index), moment)
            checkpoints.forget_after(folder, self.iteration)
            folder.log(f"resumed after iteration {self.iteration}")
        pairs = zip(self.folders, moments, strict=True)
        self.metrics = [MetricsFile(folder.metrics, moment.metrics) for folder, moment in pairs]
        self.saved_at = self.iteration

    def _advance(self, first: int, count: int) -> None:
        began = time.monotonic()
        self.state, info = self.machine.runs.advance(self.state, first, count)
        self._record(jax.device_get(info), np.arange(first + 1, first + count + 1), began)
        if contents.has_codebook(self.machine.qd) and self.iteration in plan.snapshots(
            self.config.iterations, self.config.chunk
        ):
            for index, folder in enumerate(self.folders):
                contents.save_codebook(folder, self.machine.qd, self._one(index), self.iteration)

    def _record(self, info: StepInfo, iteration: np.ndarray, began: float) -> None:
        """Append the rows of a chunk; its seconds are spread evenly over its iterations."""
        spent = time.monotonic() - began
        seconds = self.seconds + spent * np.arange(1, len(iteration) + 1) / len(iteration)
        evaluations = self.machine.qd.bootstrap + iteration * self.machine.qd.batch
        for index, folder in enumerate(self.folders):
            one = jax.tree.map(lambda x, i=index: x[i], info)
            rows = metrics_file.columns(one, iteration, evaluations, seconds)
            self.metrics[index].append(metrics_file.lines(rows))
            for name, values in rows.items():
                known = values[~np.isnan(values)]
                self.latest[name][index] = known[-1] if known.size else self.latest[name][index]
            rejected = int(np.sum(one.tell.rejected))
            if rejected:
                folder.log(f"iterations {iteration[0]} to {iteration[-1]}: {rejected} non-finite evaluations kept out")
            self.rejected[index] += rejected
        self.iteration, self.seconds = int(iteration[-1]), self.seconds + spent

    def _due(self) -> bool:
        """Whether a checkpoint is; the answer may depend on the clock, what it decides does not change results."""
        saving = self.config.saving
        late = time.monotonic() - self.saved_time >= 60 * saving.minutes
        return late or (saving.every is not None and self.iteration - max(self.saved_at, 0) >= saving.every)

    def _save(self) -> None:
        if self.saved_at == self.iteration:
            return
        for index, folder in enumerate(self.folders):
            mark = self.metrics[index].mark()
            moment = Moment(self.iteration, round(self.seconds, 3), int(self.rejected[index]), mark)
            state = self._one(index)
            contents.save_archive(folder, self.machine.qd, state, moment)
            checkpoints.save(folder, state, moment)
            folder.log(f"saved after iteration {self.iteration}")
        self.saved_at, self.saved_time = self.iteration, time.monotonic()

    def _one(self, index: int) -> Any:
        """The state of one run, as a copy in host memory: the group's own is consumed by the next chunk."""
        return jax.tree.map(lambda x: np.array(x[index]), self.state)

    def _report_rejected(self) -> None:
        for folder, rejected in zip(self.folders, self.rejected, strict=True):
            if rejected:
                text = f"{rejected} evaluations with a non-finite number were kept out of {folder.path}."
                folder.log(text)
                self.observe(Note(text))

    def _draw(self) -> None:
        for folder in self.folders:
            try:
                pictures.draw(Run(folder))
            except Exception as error:  # a picture that fails must not fail the run
                folder.log(f"pictures could not be drawn: {error!r}")
                self.observe(Note(f"The run is complete, but its pictures could not be drawn: {error!r}"))

    def _tell(self, phase: Phase) -> None:
        seeds = tuple(folder.seed for folder in self.folders)
        latest = {name: values.copy() for name, values in self.latest.items()}
        self.observe(Status(self.config, seeds, phase, self.iteration, self.seconds, latest))


def _beside(folders: Mapping[int, Path]) -> dict[int, Path]:
    """The folders, once it is sure that they can be a group."""
    paths = {int(seed): Path(path) for seed, path in folders.items()}
    if not paths:
        raise RunError("A run needs at least one seed.")
    wrong = [seed for seed in paths if not 0 <= seed < 2**32]
    if wrong:
        raise RunError(f"A seed lies between 0 and {2**32 - 1}, but got {wrong[0]}.")
    places = [path.absolute() for path in paths.values()]
    if len(set(places)) < len(places) or len({place.parent for place in places}) > 1:
        raise RunError("Runs computed together need folders of their own, all in the same parent folder.")
    return paths


def _check_task(name: str, task: AbstractTask) -> None:
    """Raise if what the task returns does not have the shapes it declares."""
    solutions = jax.ShapeDtypeStruct((2, task.space.dim), jnp.float32)
    result = jax.eval_shape(task.evaluate, jax.random.key(0), solutions)
    wanted = {"fitness": (2,), "behavior": (2, *task.behavior_shape), "truth": (2, len(task.truth_low))}
    for part, shape in wanted.items():
        if getattr(result, part).shape != shape:
            raise RunError(
                f"The task {name!r} returns {part} of shape {getattr(result, part).shape} for 2 solutions, but by its "
                f"sizes it should be {shape}."
            )
