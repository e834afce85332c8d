"""From a study to run folders: every run begun once, continued where it stopped, and left alone when finished."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import jax

from vqelites.runs import checkpoints, runner
from vqelites.runs.events import Note, Status
from vqelites.runs.files import DamagedError, RunError, explained
from vqelites.runs.folder import locked, open_folder
from vqelites.runs.programs import state_bytes, with_shapes
from vqelites.runs.run import Run
from vqelites.runs.runner import never
from vqelites.runs.taskfiles import make_task
from vqelites.studies import memory
from vqelites.studies.study import FILE, Group, Study, asked, differing, joined, read, write
from vqelites.tasks import Interface, SimulatorTask


@dataclass(frozen=True)
class Work:
    """Runs of one group that are computed together, and what is left to do for them."""

    group: Group
    seeds: tuple[int, ...]
    kind: Literal["finished", "start", "resume", "replace"]


@dataclass(frozen=True)
class Progress:
    """Where a study stands; `event` is what the runs at work told last, None between them."""

    work: Work
    finished: int  # runs
    runs: int
    event: Status | Note | None


Watch = Callable[[Progress], None]


def unwatched(progress: Progress) -> None:
    """Watch nothing."""


def run_study(
    study: Study,
    root: Path | str,
    *,
    together: int | None = None,
    watch: Watch = unwatched,
    stop: Callable[[], bool] = never,
) -> bool:
    """Run a study into a folder, or continue it there; whether it is finished.

    Seeds of a group advance together, as many as fit into memory if `together` says nothing else. `stop` is asked
    after every chunk; when it says yes, all is saved. A folder with another study, or with the same one configured
    otherwise, is an error; more seeds and groups may be added.
    """
    root = Path(root)
    with explained(str(root)):
        root.mkdir(parents=True, exist_ok=True)
    with locked([root]):
        study = _settle(study, root)
        # All folders are looked at before any work, so that what is wrong with one is said at once.
        todo = [work for group in study.groups for work in _left(group, root, together)]
        finished = sum(len(work.seeds) for work in todo if work.kind == "finished")
        before = None
        for work in (work for work in todo if work.kind != "finished"):
            if before not in (None, work.group):
                jax.clear_caches()  # programs of one group are of no use to the next, and fill memory
            before = work.group
            tell = functools.partial(_tell, watch, work, finished, study.runs)
            tell(None)
            if stop() or not _compute(work, root, tell, stop):
                return False
            finished += len(work.seeds)
    return True


def _tell(watch: Watch, work: Work, finished: int, runs: int, event: Status | Note | None) -> None:
    watch(Progress(work, finished, runs, event))


def _settle(study: Study, root: Path) -> Study:
    """What the folder's study.json says from now on."""
    study = _with_shapes(study)
    if (root / FILE).exists():
        study = joined(read(root), study, root)
    else:
        strangers = [path.name for path in root.iterdir() if not path.name.startswith(".")]
        if strangers:
            raise RunError(f"{root} holds {strangers[0]!r}, but no study. Choose an empty folder.")
    for group in study.groups:
        state_bytes(group.config)  # impossible settings are an error here
    write(study, root)
    return study


def _with_shapes(study: Study) -> Study:
    """The study with the interface of every simulator in it; shapes nobody said are found out by one evaluation."""
    found: dict[str, Interface | None] = {}
    for group in study.groups:
        config = group.config
        if config.task not in found:
            task = make_task(config.task, config.interface)
            shown = with_shapes(task, config.evaluating, group.seeds[0]) if isinstance(task, SimulatorTask) else None
            found[config.task] = None if shown is None else shown.interface
    groups = [
        replace(group, config=replace(group.config, interface=found[group.config.task])) for group in study.groups
    ]
    return replace(study, groups=tuple(groups))


def _left(group: Group, root: Path, together: int | None) -> Iterator[Work]:
    """What is to be done for a group: runs that were begun go on with those they were begun with."""
    fresh = []
    seen: set[int] = set()
    for seed in group.seeds:
        if seed in seen:
            continue
        path = group.folder(root, seed)
        if not (path / "config.json").exists():
            fresh.append(seed)
            continue
        work = _begun(group, root, path)
        seen |= set(work.seeds)
        yield work
    fresh = [seed for seed in fresh if seed not in seen]
    if fresh:
        most = together or memory.fitting(state_bytes(group.config), memory.limit())
        for seeds in memory.divided(fresh, most):
            yield Work(group, seeds, "start")


def _begun(group: Group, root: Path, path: Path) -> Work:
    """The runs that were begun together with the one in this folder."""
    folder = open_folder(path)
    changed = "; ".join(differing(asked(folder.config), asked(group.config)))
    if changed:
        raise RunError(f"{path} is another run than {group.named} of the study: {changed} (there -> in study.json).")
    seeds = tuple(folder.group) or (folder.seed,)
    strangers = set(seeds) - set(group.seeds)
    if path != group.folder(root, folder.seed) or strangers:
        raise RunError(f"{path} holds a run with seeds {sorted(seeds)}, which are not those of its place in the study.")
    paths = [group.folder(root, seed) for seed in seeds]
    complete = all((place / "config.json").exists() for place in paths)
    if not complete and not any((place / "checkpoints").exists() for place in paths):
        return Work(group, seeds, "replace")  # ended while the folders were made
    return Work(group, seeds, "finished" if all(_finished(place) for place in paths) else "resume")


def _finished(path: Path) -> bool:
    """Whether a run reached its end and its archive can be read; a damaged one is mended by resuming."""
    try:
        return Run.load(path).finished
    except DamagedError:
        if not checkpoints.found(open_folder(path)):
            raise
        return False


def _compute(work: Work, root: Path, observe: Callable[[Status | Note], None], stop: Callable[[], bool]) -> bool:
    """Whether these runs reached their end."""
    folders = {seed: work.group.folder(root, seed) for seed in work.seeds}
    if work.kind == "resume":
        outcome = runner.resume(
            folders[work.seeds[0]],
            workers=work.group.config.evaluating.workers,
            restart=True,
            draw=False,
            observe=observe,
            stop=stop,
        )
    else:
        again = work.kind == "replace"
        config = work.group.config
        outcome = runner.execute(config, folders, overwrite=again, draw=False, observe=observe, stop=stop)
    return outcome.finished
