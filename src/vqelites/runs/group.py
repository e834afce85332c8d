"""Runs of one configuration that advance together, each writing a folder of its own."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from vqelites.descriptors import chosen
from vqelites.diagnosis import diagnoses, outpaced
from vqelites.drive import StepInfo
from vqelites.evaluation import EvaluatorError, Failure, Reasons, Result
from vqelites.loop import State
from vqelites.runs import checkpoints, contents, metrics_file, plan
from vqelites.runs.checkpoints import SavePoint
from vqelites.runs.events import Note, Observe, Phase, Status
from vqelites.runs.files import RunError
from vqelites.runs.folder import RunFolder
from vqelites.runs.metrics_file import MetricsFile
from vqelites.runs.programs import Programs
from vqelites.runs.run import Run
from vqelites.words import counted

_TELL_EVERY = 0.5  # seconds, while a simulator is busy
_REASONS = 5  # of failures told after each chunk and at the end, the most frequent ones


@dataclass(frozen=True)
class Outcome:
    """How a group of runs ended."""

    folders: tuple[Path, ...]
    iteration: int
    finished: bool


class RunGroup:
    """Runs of one configuration while they advance together; every leaf of `state` has a leading axis of runs."""

    def __init__(self, programs: Programs, folders: Sequence[RunFolder], observe: Observe):
        self.programs, self.folders, self.observe = programs, folders, observe
        self.config, self.iterations = folders[0].config, folders[0].iterations
        self.state: Any = None
        self.iteration, self.bootstrapping = 0, False
        self.rejected, self.restarts = np.zeros((2, len(folders)), np.int64)
        self.said: set[tuple[int, str]] = set()  # illnesses of the map of each run that were told
        self.latest = {name: np.full(len(folders), np.nan) for name in metrics_file.COLUMNS}
        self.seconds, self.saved_time = 0.0, time.monotonic()
        self.saved: tuple[bool, int] | None = None  # whether in the bootstrap, and after which iteration
        self.recent, self.reasons = ([Reasons() for _ in folders] for _ in range(2))  # since the last chunk, and all
        self.told_time = 0.0
        programs.watch(self._result)

    def go(self, stop: Callable[[], bool], draw: bool, moments: Sequence[SavePoint] | None = None) -> Outcome:
        """From these moments, or the beginning, to the end, or until told to stop; all is saved then."""
        try:
            self._compute(stop, moments)
        except (RunError, EvaluatorError) as error:
            self._each(lambda folder: folder.log(f"failed: {error}"))
            raise RunError(f"{error} {self._how_to_go_on()}") from error
        finished = self.iteration == self.iterations
        ended = "finished" if finished else f"interrupted after iteration {self.iteration}"
        self._each(lambda folder: folder.log(ended))
        self._report_rejected()
        self._report_map()
        if finished and draw:
            self._each(self._draw)
        self._tell("finished" if finished else "interrupted")
        return Outcome(tuple(folder.path for folder in self.folders), self.iteration, finished)

    def _compute(self, stop: Callable[[], bool], moments: Sequence[SavePoint] | None) -> None:
        if moments is not None and moments[0].iteration == self.iterations:
            self.observe(Note(f"{self.folders[0].path} is finished: there is nothing left to compute."))
        else:
            self._tell("starting")
        if moments is None:
            self._begin(stop)
        else:
            self._continue(moments, stop)
        if self.bootstrapping:
            self._save()
            return
        for first, count in plan.chunks(self.folders[0].ends, self.config.stride, self.iteration):
            if stop():
                break
            self._advance(first, count)
            self._tell("running")
            if self._due():
                self._save()
        self._save()

    def _begin(self, stop: Callable[[], bool]) -> None:
        self.metrics = [MetricsFile(folder.metrics) for folder in self.folders]
        then = next(plan.chunks(self.folders[0].ends, self.config.stride))[1]
        self._bootstrap(self.programs.begin(np.array([folder.seed for folder in self.folders]), then), stop)

    def _bootstrap(self, pieces: Iterator[tuple[State, StepInfo | None]], stop: Callable[[], bool]) -> None:
        """The bootstrap, piece by piece, to its end or until told to stop."""
        self.bootstrapping, began = True, time.monotonic()
        for state, info in pieces:
            # Through the host, as after a restore: what is compiled for it must be the same in both cases.
            self.state = jax.device_put(jax.device_get(state), may_alias=False)
            if info is not None:
                self.bootstrapping = False
                self._check_any_worked(info)
                self._record(jax.tree.map(lambda x: x[:, None], jax.device_get(info)), np.array([0]), began)
                if self.config.interface is not None:
                    self._save()  # a simulator may have taken long for it
                return
            self.seconds, began = self.seconds + time.monotonic() - began, time.monotonic()
            if stop():
                return
            if self._due():
                self._save()

    def _continue(self, moments: Sequence[SavePoint], stop: Callable[[], bool]) -> None:
        self.iteration = moments[0].iteration
        pairs = list(zip(self.folders, moments, strict=True))
        states = [checkpoints.restore(folder, moment, self.programs.qd) for folder, moment in pairs]
        self.state = jax.device_put(jax.tree.map(lambda *x: np.stack(x), *states), may_alias=False)
        self.programs.restore(self.state, [checkpoints.extra(folder, moment) for folder, moment in pairs])
        self.seconds = max(moment.seconds for moment in moments)
        self.rejected = np.array([moment.rejected for moment in moments])
        for index, (folder, moment) in enumerate(zip(self.folders, moments, strict=True)):
            # The archive first: its mark of metrics.csv must never lie past the end of that file.
            contents.save_archive(folder, self.programs.qd, self._one(index), moment)
            checkpoints.forget_after(folder, moment.save)
            folder.log(f"resumed after iteration {self.iteration}")
        self.metrics = [MetricsFile(folder.metrics, moment.metrics) for folder, moment in pairs]
        self.saved = moments[0].bootstrapping, self.iteration
        if moments[0].bootstrapping:
            self._bootstrap(self.programs.bootstrap(self.state), stop)
            return
        for index, folder in enumerate(self.folders):
            self.restarts[index], last = metrics_file.so_far(folder.metrics)
            for name, value in last.items():
                self.latest[name][index] = value

    def _advance(self, first: int, count: int) -> None:
        began = time.monotonic()
        self.state, info = self.programs.runs.advance(self.state, first, count)
        self._record(jax.device_get(info), np.arange(first + 1, first + count + 1), began)
        ends, stride = self.folders[0].ends, self.config.stride
        if self.iteration in plan.snapshots(ends, stride):
            decoded = self.iteration in plan.decoded(ends, stride)
            for index, folder in enumerate(self.folders):
                contents.save_snapshot(folder, contents.snapshot(self.programs.qd, self._one(index), decoded=decoded))

    def _record(self, info: StepInfo, iteration: np.ndarray, began: float) -> None:
        """Append the rows of a chunk; its seconds are spread evenly over its iterations."""
        spent = time.monotonic() - began
        seconds = self.seconds + spent * np.arange(1, len(iteration) + 1) / len(iteration)
        evaluations = self.programs.qd.bootstrap + iteration * self.programs.qd.batch_size
        for index, folder in enumerate(self.folders):
            one = jax.tree.map(lambda x, i=index: x[i], info)
            rows = metrics_file.columns(one, iteration, evaluations, seconds)
            self.metrics[index].append(metrics_file.lines(rows))
            for name, values in rows.items():
                known = values[~np.isnan(values)]
                self.latest[name][index] = known[-1] if known.size else self.latest[name][index]
            if rejected := int(np.sum(one.tell.rejected)):
                first, last = iteration[0], iteration[-1]
                when = f"iteration {last}" if first == last else f"iterations {first} to {last}"
                folder.log(f"{when}: {counted(rejected, 'evaluation')} kept out")
            self._log_failures(index)
            self.rejected[index] += rejected
            self.restarts[index] += np.sum(one.update.map.restarted)
            self._examine(index, one, int(evaluations[-1]))
        self.iteration, self.seconds = int(iteration[-1]), self.seconds + spent

    def _log_failures(self, index: int) -> None:
        """Write down why evaluations failed since this was last done."""
        reasons, self.recent[index] = self.recent[index].sentences(), Reasons()
        for sentence in reasons[:_REASONS]:
            self.folders[index].log(sentence)
        if len(reasons) > _REASONS:
            self.folders[index].log(f"more reasons for failures: {len(reasons) - _REASONS}")

    def _check_any_worked(self, info: StepInfo) -> None:
        """A bootstrap in which every evaluation failed is an error: nothing could come of it."""
        for index, rejected in enumerate(np.asarray(info.tell.rejected)):
            if 0 < self.programs.qd.bootstrap == rejected:
                reasons = self.reasons[index].sentences()
                self._log_failures(index)
                why = f" The most frequent reason: {reasons[0]}." if reasons else " They hold NaN or infinity."
                raise RunError(f"None of the {rejected} evaluations of the bootstrap could be used.{why}")

    def _examine(self, index: int, info: StepInfo, evaluations: int) -> None:
        """Say once what is wrong with a run's map, as it was after the last training of a chunk."""
        trained = np.flatnonzero(info.update.map.behaviors)
        if not trained.size:
            return
        last = jax.tree.map(lambda x: x[trained[-1]], info.update.map)
        found = diagnoses(
            evaluations=evaluations,
            behaviors=int(last.behaviors),
            codes_used=float(last.codes_used),
            saturated=float(last.saturated),
            restarted=bool(np.any(info.update.map.restarted)),
            unexplained=float(np.fmax.reduce(info.update.learn.unexplained)),
            latent=self.programs.qd.descriptor.dim,
            cells=getattr(self.config.settings, "cells", 0),
        )
        for kind, sentence in found.items():
            if (index, kind) not in self.said:
                self.said.add((index, kind))
                self._note(self.folders[index], f"{self.folders[index].path}: {sentence}")

    def _due(self) -> bool:
        """Whether a checkpoint is; the answer may depend on the clock, what it decides does not change results."""
        saving = self.config.saving
        late = time.monotonic() - self.saved_time >= 60 * saving.minutes
        done = self.iteration - (self.saved[1] if self.saved else 0)
        return late or (saving.every is not None and done >= saving.every)

    def _save(self) -> None:
        if self.saved == (False, self.iteration):
            return
        for index, folder in enumerate(self.folders):
            self._log_failures(index)
            state = self._one(index)
            seen = chosen(self.programs.qd.descriptor, state.descriptor)
            moment = SavePoint(
                save=checkpoints.next_save(folder, self.iteration),
                iteration=self.iteration,
                bootstrapping=self.bootstrapping,
                seconds=round(self.seconds, 3),
                rejected=int(self.rejected[index]),
                metrics=self.metrics[index].mark(),
                chosen=seen._asdict() if seen else None,
            )
            # The checkpoint first: where there is an archive, there is one.
            checkpoints.save(folder, state, moment, self.programs.under_way(index))
            contents.save_archive(folder, self.programs.qd, state, moment)
            folder.log(f"saved after iteration {self.iteration}")
        self._each(checkpoints.forget_old)  # not before: a crash must leave all runs an iteration in common
        self.saved, self.saved_time = (self.bootstrapping, self.iteration), time.monotonic()

    def _one(self, index: int) -> Any:
        """The state of one run, copied, since the next chunk consumes the group's. JAX would compile each cut."""
        return jax.tree.map(lambda x: np.array(np.asarray(x)[0] if len(x) == 1 else x[index]), self.state)

    def _report_rejected(self) -> None:
        for folder, rejected, reasons in zip(self.folders, self.rejected, self.reasons, strict=True):
            if rejected:
                text = f"{counted(int(rejected), 'evaluation')} failed or not finite, kept out of {folder.path}."
                # Reasons are those that this process has seen.
                for sentence in (text, *(f"- {reason}" for reason in reasons.sentences()[:_REASONS])):
                    self._note(folder, sentence)

    def _report_map(self) -> None:
        """Say how often it was begun anew, and where training could not keep up with evaluations."""
        planned = len(self.programs.qd.schedule.trainings(0, self.iteration))
        updates = np.maximum(np.asarray(self.state.trainings) - 1, 0).tolist()  # the first training makes the map
        for folder, count, restarts in zip(self.folders, updates, self.restarts, strict=True):
            if restarts:
                self._note(folder, f"Restarts of a collapsed map in {folder.path}: {restarts}.")
            if self.config.evaluating.mode == "async" and 2 * count < planned:
                self._note(folder, f"{folder.path}: {outpaced(count, planned)}")

    def _note(self, folder: RunFolder, text: str) -> None:
        folder.log(text)
        self.observe(Note(text))

    def _draw(self, folder: RunFolder) -> None:
        try:
            from vqelites.runs import pictures  # not at the top: it takes a second, and a run a while to get here

            pictures.draw(Run(folder), self.programs.task)
        except Exception as error:  # a picture that fails must not fail the run
            folder.log(f"pictures could not be drawn: {error!r}")
            self.observe(Note(f"The run is complete, but its pictures could not be drawn: {error!r}"))

    def _each(self, do: Callable[[RunFolder], None]) -> None:
        for folder in self.folders:
            do(folder)

    def _how_to_go_on(self) -> str:
        path = self.folders[0].path
        if self.saved is None:
            return f"Nothing was saved yet. Once this is put right, `vqelites resume {path}` begins again."
        return f"Saved up to iteration {self.saved[1]}. Once this is put right, go on with `vqelites resume {path}`."

    def _tell(self, phase: Phase) -> None:
        seeds = tuple(folder.seed for folder in self.folders)
        latest = {name: values.copy() for name, values in self.latest.items()}
        activity = self.programs.activity
        self.observe(Status(self.config, seeds, phase, self.iteration, self.iterations, self.seconds, latest, activity))
        self.told_time = time.monotonic()

    def _result(self, run: int, result: Result | None) -> None:
        """See a result of an evaluator pass, or a while without one: remember failures, and show that it is busy."""
        if result is not None and isinstance(result.outcome, Failure):
            for reasons in (self.recent[run], self.reasons[run]):
                reasons.add(result.id, result.outcome)
        if time.monotonic() - self.told_time >= _TELL_EVERY:
            self._tell("evaluating")
