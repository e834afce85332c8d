"""From a study to run folders: every run is started once, continued where it stopped, and left alone when finished."""

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import jax

from vqelites.runs.events import Note, Status
from vqelites.runs.files import RunError, explained
from vqelites.runs.folder import locked
from vqelites.runs.programs import state_bytes, with_shapes
from vqelites.runs.runner import never
from vqelites.runs.taskfiles import make_task
from vqelites.studies.spread import Nodes, spread
from vqelites.studies.study import FILE, Study, joined, read, write
from vqelites.studies.work import Progress, Watch, Work, compute, left, unwatched
from vqelites.tasks import Interface, SimulatorTask


def run_study(
    study: Study,
    root: Path | str,
    *,
    together: int | None = None,
    nodes: Nodes | None = None,
    watch: Watch = unwatched,
    stop: Callable[[], bool] = never,
) -> bool:
    """Run a study into a folder, or continue it there; returns whether it is finished.

    Seeds of a group advance together, as many as fit into memory unless `together` says otherwise. `stop` is asked
    after every chunk; when it returns True, all is saved. A folder with another study, or with the same one configured
    otherwise, is an error; more seeds and groups may be added. On the `nodes` of a cluster as many runs go on at a time
    as there is room for, each by itself unless `together` says otherwise.
    """
    root = Path(root)
    with explained(str(root)):
        root.mkdir(parents=True, exist_ok=True)
    with locked([root]):
        study = _settle(study, root)
        # All folders are looked at before any work, so that what is wrong with one is said at once.
        most = together if nodes is None else together or 1
        todo = [work for group in study.groups for work in left(group, root, most)]
        finished = sum(len(work.seeds) for work in todo if work.kind == "finished")
        if nodes is not None:
            open_work = [work for work in todo if work.kind != "finished"]
            return spread(open_work, root, nodes, functools.partial(_told, watch, study.runs, finished), stop)
        before = None
        for work in (work for work in todo if work.kind != "finished"):
            if before not in (None, work.group):
                jax.clear_caches()  # programs of one group are of no use to the next, and fill memory
            before = work.group
            tell = functools.partial(_tell, watch, work, finished, study.runs)
            tell(None)
            if stop() or not compute(work, root, tell, stop):
                return False
            finished += len(work.seeds)
    return True


def _told(watch: Watch, runs: int, before: int, work: Work, finished: int, event: Status | Note | None) -> None:
    watch(Progress(work, before + finished, runs, event))


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
