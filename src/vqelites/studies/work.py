"""What is left to do of a study: runs that are computed together, begun once and continued where they stopped."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from vqelites.runs import checkpoints, runner
from vqelites.runs.events import Note, Observe, Status
from vqelites.runs.files import DamagedError, RunError
from vqelites.runs.folder import open_folder
from vqelites.runs.programs import state_bytes
from vqelites.runs.run import Run
from vqelites.studies import memory
from vqelites.studies.study import Group, asked, differing


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


def left(group: Group, root: Path, together: int | None) -> Iterator[Work]:
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
        work = begun(group, root, path)
        seen |= set(work.seeds)
        yield work
    fresh = [seed for seed in fresh if seed not in seen]
    if fresh:
        most = together or memory.fitting(state_bytes(group.config), memory.limit())
        for seeds in memory.divided(fresh, most):
            yield Work(group, seeds, "start")


def begun(group: Group, root: Path, path: Path) -> Work:
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


def compute(work: Work, root: Path, observe: Observe, stop: Callable[[], bool]) -> bool:
    """Whether these runs reached their end."""
    folders = {seed: work.group.folder(root, seed) for seed in work.seeds}
    if work.kind == "resume":
        workers = work.group.config.evaluating.workers
        outcome = runner.resume(
            folders[work.seeds[0]],
            evaluating={} if workers is None else {"workers": workers},
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
