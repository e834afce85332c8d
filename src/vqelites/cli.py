"""The command line: `vqelites run`, `resume`, `show`, `verify`, `study`, `report` and others."""

import argparse
import atexit
import dataclasses
import gc
import importlib.metadata
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Union

import tyro
from tyro.conf import Positional, arg, subcommand

from vqelites.experiments.config import PresetName
from vqelites.experiments.presets import algorithms, settings
from vqelites.runs import commands
from vqelites.runs.api import default_folder
from vqelites.runs.config import CHUNK, Config, Evaluating, Saving
from vqelites.runs.files import RunError
from vqelites.runs.taskfiles import load_task_file
from vqelites.studies.commands import ExploreCommand, ReportCommand, StudyCommand
from vqelites.tasks import registry
from vqelites.track import TrackerName

AlgorithmName = Annotated[str, arg(metavar=f"{{{','.join(algorithms())}}}")]
Folder = Annotated[Path, arg(metavar="FOLDER")]
TaskFile = Annotated[Path | None, arg(metavar="FILE.py")]


@dataclass
class _Run:
    """Run an algorithm on a task. The hyperparameters below are those of the task, algorithm and preset given."""

    task: Positional[Annotated[str, arg(metavar="TASK")]]
    """name of a task; `vqelites tasks` lists them"""
    algorithm: AlgorithmName = "vq-elites"
    """`vqelites algorithms` explains them"""
    preset: PresetName = "paper"
    """paper: full size; quick: minutes on two cores; literal: the paper without any departure"""
    iterations: Annotated[int | None, arg(metavar="N")] = None
    """the same as --search.iterations"""
    seed: int = 0
    """all randomness comes from it"""
    out: Annotated[Path | None, arg(metavar="FOLDER")] = None
    """folder for the run; None: runs/TASK-ALGORITHM-SEED"""
    overwrite: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """replace a run that is in that folder"""
    task_file: TaskFile = None
    """file with a task of your own"""
    start: Annotated[Path | None, arg(metavar="FILE")] = None
    """solutions to start from: a .npy or .csv file with one per row, or a run folder"""
    evaluating: Annotated[Evaluating, arg(name="")] = field(default_factory=Evaluating)
    minutes: Annotated[float | None, arg(metavar="M")] = None
    """time budget, after which the run is saved, to be resumed"""
    track: tuple[TrackerName, ...] = ()
    """experiment trackers that follow the run; see docs/runs.md"""
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """print nothing but errors"""
    draw: bool = True
    """draw pictures at the end"""
    explore: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """follow the run on a page in the browser, which stays until Ctrl-C"""
    chunk: int = CHUNK
    """iterations of a task in JAX computed in one go; a run stops and saves only between them"""
    saving: Saving = field(default_factory=Saving)

    def __call__(self) -> int:
        chosen = self.settings  # type: ignore[attr-defined]
        if self.iterations is not None:
            chosen = dataclasses.replace(chosen, search=dataclasses.replace(chosen.search, iterations=self.iterations))
        options = getattr(self, "options", None)
        task = self.task if options is None else registry.with_options(self.task, options)
        config = Config(task, self.algorithm, self.preset, chosen, self.chunk, self.saving, evaluating=self.evaluating)
        return commands.run(
            config,
            self.seed,
            default_folder(task, self.algorithm, self.seed) if self.out is None else self.out,
            start=self.start,
            overwrite=self.overwrite,
            draw=self.draw,
            minutes=self.minutes,
            track=self.track,
            quiet=self.quiet,
            explore=self.explore,
        )


@dataclass
class _Resume:
    """Continue an interrupted run exactly as if it had never stopped."""

    folder: Positional[Folder]
    """folder of the run"""
    task_file: TaskFile = None
    """file with a task of your own"""
    iterations: Annotated[int | None, arg(metavar="N")] = None
    """extend the run to this number of iterations"""
    workers: Annotated[int | None, arg(metavar="N")] = None
    """processes that evaluate the solutions of a simulator; None: as before"""
    timeout: Annotated[float | None, arg(metavar="SECONDS")] = None
    """after which an evaluation has failed; None: as before"""
    retries: Annotated[int | None, arg(metavar="N")] = None
    """times a failed evaluation is tried again; None: as before"""
    cluster: Annotated[str | None, arg(metavar="auto|ADDRESS")] = None
    """Ray cluster whose nodes evaluate the solutions; None: as before"""
    minutes: Annotated[float | None, arg(metavar="M")] = None
    """time budget, after which the run is saved again"""
    track: tuple[TrackerName, ...] | None = None
    """experiment trackers that follow the run; None: as before"""
    restart: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """begin from the first iteration if nothing good is left to continue from"""
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """print nothing but errors"""
    draw: bool = True
    """draw pictures at the end"""

    def __call__(self) -> int:
        changes = {name: getattr(self, name) for name in ("workers", "timeout", "retries", "cluster")}
        return commands.resume(
            self.folder,
            iterations=self.iterations,
            evaluating={name: value for name, value in changes.items() if value is not None},
            restart=self.restart,
            draw=self.draw,
            minutes=self.minutes,
            track=self.track,
            quiet=self.quiet,
        )


@dataclass
class _Show:
    """Summarise a run: how far it is, its metrics, and where its pictures are."""

    folder: Positional[Folder]
    """folder of the run"""

    def __call__(self) -> int:
        return commands.show(self.folder)


@dataclass
class _Verify:
    """Check every file of a run, and evaluate all its elites again: do they still do what is stored of them?"""

    folder: Positional[Folder]
    """folder of the run"""
    task_file: TaskFile = None
    """file with a task of your own"""

    def __call__(self) -> int:
        return commands.verify(self.folder)


@dataclass
class _Reevaluate:
    """Evaluate the elites of a noisy task some more times: how good are they without the luck of their first try?"""

    folder: Positional[Folder]
    """folder of the run; what is found is kept in its evaluated.npz, and its archive stays as it is"""
    times: int = 10
    """evaluations of each elite"""
    task_file: TaskFile = None
    """file with a task of your own"""

    def __call__(self) -> int:
        return commands.reevaluate(self.folder, self.times)


@dataclass
class _Replay:
    """Evaluate an elite again with the randomness it had, and show it: in a window, or as a film in a file."""

    folder: Positional[Folder]
    """folder of the run"""
    elite: Positional[Annotated[int | None, arg(metavar="ELITE")]] = None
    """row of the archive, as in `Run.elite`; None: the best"""
    out: Annotated[Path | None, arg(metavar="FILE")] = None
    """film to write, .gif or .mp4; None: a window"""
    task_file: TaskFile = None
    """file with a task of your own"""

    def __call__(self) -> int:
        return commands.replay(self.folder, self.elite, self.out)


@dataclass
class _Tasks:
    """List all tasks with their sizes."""

    task_file: TaskFile = None
    """file with a task of your own"""

    def __call__(self) -> int:
        return commands.tasks()


@dataclass
class _Algorithms:
    """List all algorithms."""

    def __call__(self) -> int:
        return commands.algorithms()


_COMMANDS = {
    "resume": _Resume, "show": _Show, "verify": _Verify, "reevaluate": _Reevaluate, "replay": _Replay,
    "study": StudyCommand, "report": ReportCommand, "explore": ExploreCommand,
    "tasks": _Tasks, "algorithms": _Algorithms,
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command and exit."""
    argv = sys.argv[1:] if argv is None else list(argv)
    gc.freeze()  # what is imported stays
    atexit.register(gc.freeze)  # a third of a second goes into looking for garbage at the end of a process
    if argv == ["--version"]:
        print(f"vqelites {importlib.metadata.version('vqelites')}")
        return
    try:
        command = _parse(argv)
        if getattr(command, "task_file", None) is not None:
            load_task_file(command.task_file)
        code = command()
    except (RunError, ValueError) as error:
        print(f"vqelites: {error}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def _parse(argv: list[str]) -> Any:
    """The command with its options; those of `run` depend on task, algorithm and preset, which are looked up first."""
    chosen = _chosen(argv[1:] if argv[:1] == ["run"] else [])
    extra = [(name, Annotated[type(value), arg(name="")], field(default=value)) for name, value in chosen.items()]
    run = dataclasses.make_dataclass("Run", extra, bases=(_Run,))
    run.__doc__ = _Run.__doc__
    kinds = {"run": run, **_COMMANDS}
    if argv and argv[0] in kinds:  # without the others, errors name settings by their own names
        return tyro.cli(kinds[argv[0]], prog=f"vqelites {argv[0]}", args=argv[1:])
    union: Any = Union[tuple(Annotated[kind, subcommand(name)] for name, kind in kinds.items())]  # noqa: UP007
    return tyro.cli(
        union,
        prog="vqelites",
        description="Quality-Diversity without hand-designed descriptors. `vqelites COMMAND --help` tells more.",
        args=argv,
    )


def _chosen(argv: list[str]) -> dict[str, Any]:
    """What `run` is asked for: the settings of the preset, and the options of a task of a family."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--algorithm", default="vq-elites")
    parser.add_argument("--preset", default="paper")
    parser.add_argument("--task-file", type=Path)
    try:
        known, rest = parser.parse_known_args(argv)
    except argparse.ArgumentError as error:
        raise ValueError(f"{error}.") from error
    if known.task_file is not None:
        load_task_file(known.task_file)
    task = rest[0] if rest and not rest[0].startswith("-") else ""
    chosen: dict[str, Any] = {"settings": settings(task, known.algorithm, known.preset)}
    if task:
        registry.summary(task)  # an unknown name is an error here, with the nearest names
        found = registry.family(task)
        if found is not None:
            chosen["options"] = found[0].read(found[1])[1]
    return chosen
