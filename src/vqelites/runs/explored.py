"""A run folder as the explorer sees it: only read, while its run may go on, be resumed or vanish."""

import contextlib
import functools
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from vqelites.archives.cells import CellArchive
from vqelites.experiments.build import build
from vqelites.experiments.config import CVTMapElitesSettings, MapElitesSettings
from vqelites.explore.source import NotShownError, Record, Scene
from vqelites.frames import ArchiveFrame
from vqelites.runs import contents, metrics_file
from vqelites.runs.checkpoints import SavePoint
from vqelites.runs.contents import Snapshot
from vqelites.runs.files import RunError, needs
from vqelites.runs.folder import RunFolder, open_folder
from vqelites.runs.run import Run
from vqelites.runs.taskfiles import MissingSimulator, make_task
from vqelites.tasks import Film, SimulatorTask
from vqelites.words import counted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WATCHED = ("config.json", "extensions.json", "archive.npz", "metrics.csv")
_IN_MEMORY = 4  # archives, which may be large
_SNAPSHOTS_IN_MEMORY = 64


class ExploredRun:
    """A run in a folder inside `root`, or in a folder of its own. What does not change is read once.

    Its simulator may be given; else it is found by its name, if it is known here.
    """

    def __init__(
        self, path: Path, name: str | None = None, root: Path | None = None, simulator: SimulatorTask | None = None
    ):
        self.path, self.root, self._simulator = path, path if root is None else root, simulator
        self._name = str(path) if name is None else name

    @property
    def name(self) -> str:
        """What it is called in lists."""
        return self._name

    def stamp(self) -> Hashable:
        """Sizes and times of what it is read from."""
        snapshots = sorted(file.name for file in self.path.glob("snapshots/*.npz"))
        return (*(_mark(self.path / name) for name in _WATCHED), *snapshots)

    def read(self) -> Record:
        """What is known of the run now."""
        with _said():
            folder = self._folder()
            archive, moment = self._saved(folder)
            table = metrics_file.read(folder.metrics, moment.metrics if moment else None)
            done = int(table["iteration"].iloc[-1]) if len(table) else 0
            moments = self._snapshots(folder, done)
            if moment is not None and len(table) and (not moments or moment.iteration > moments[-1]):
                moments.append(moment.iteration)
            return Record(
                title=f"{folder.config.named}, {folder.config.preset}, seed {folder.seed}",
                task=folder.config.task,
                progress=_progress(done, folder.iterations, moment),
                archive=archive,
                moments=tuple(moments),
                metrics=table,
                no_replay=self._no_replay(folder),
            )

    def scene(self, iteration: int) -> Scene:
        """The map after this iteration, as a snapshot or the archive has it."""
        with _said():
            folder = self._folder()
            evaluations = self._evaluations(folder, iteration)
            kept = self._snapshots(folder, iteration)
            last = _snapshot(folder, kept[-1], _mark(folder.snapshot(kept[-1]))) if kept else None
            if last is not None and last.iteration == iteration:
                centres = self._hand_coded(folder) if last.codes is None else last.codes
                return Scene(iteration, evaluations, last.ids, last.fitness, last.descriptors, centres)
            archive, moment = self._saved(folder)
            if archive is None or moment is None or moment.iteration != iteration:
                raise NotShownError(f"{self.name} has no snapshot of iteration {iteration} any more.")
            centres = self._hand_coded(folder) if last is None or last.codes is None else last.codes
            earlier = last.iteration if last is not None and last.codes is not None else None
            return Scene(iteration, evaluations, archive.ids, archive.fitness, archive.descriptors, centres, earlier)

    def replay(self, id: int) -> Union["Figure", np.ndarray]:
        """What the simulator renders of an elite or, if it cannot, the task's drawing of it."""
        from vqelites.runs import pictures  # only for those who look: what draws takes a second to import

        with _said():
            run = Run(self._folder(), self._simulator)
            reason = self._no_replay(run.folder)
            if reason:
                raise NotShownError(reason)
            task, rows = run.task, np.flatnonzero(run.archive.ids == id)
            if not rows.size:
                raise NotShownError(f"Elite {id} is no longer in the archive.")
            try:
                if isinstance(task, SimulatorTask) and hasattr(task.source, "render"):
                    return _frames(run.render(int(rows[0])))
                return pictures.at_work(task, run.archive.solutions[rows])
            except (NotShownError, RunError):
                raise
            except Exception as error:  # the user's own code
                raise NotShownError(f"{run.config.task} fails to show it: {type(error).__name__}: {error}") from error

    def _folder(self) -> RunFolder:
        """The folder, opened anew; nothing outside of what was asked for is looked at."""
        inside = self.path.resolve().is_relative_to(self.root.resolve())
        if not inside or (self.path / "snapshots").is_symlink():
            raise NotShownError(f"{self.path} is or holds a link that leads out of {self.root}; it is not followed.")
        return open_folder(self.path)

    def _saved(self, folder: RunFolder) -> tuple[ArchiveFrame, SavePoint] | tuple[None, None]:
        mark = _mark(folder.archive)
        return (None, None) if mark is None else _archive(folder.path, folder.identity, mark)

    def _snapshots(self, folder: RunFolder, done: int) -> list[int]:
        """Iterations of the snapshots, without those that a resumed run has not reached again."""
        found = [int(file.stem) for file in folder.snapshots.glob("*.npz") if file.stem.isdecimal()]
        return sorted(iteration for iteration in found if iteration <= done)

    def _evaluations(self, folder: RunFolder, iteration: int) -> int:
        table = metrics_file.read(folder.metrics)
        return int(table["evaluations"].iloc[iteration]) if iteration < len(table) else 0

    def _no_replay(self, folder: RunFolder) -> str:
        """Why its elites cannot be replayed, in a sentence; empty if they can."""
        try:
            task = Run(folder, self._simulator).task
        except RunError as error:  # not known here: the run can be looked at all the same
            return str(error)
        source = task.source if isinstance(task, SimulatorTask) else None
        if isinstance(source, MissingSimulator):
            return source.why
        shown = task.drawable or hasattr(source, "render")
        return "" if shown else f"{folder.config.task} can neither render nor draw an elite."

    def _hand_coded(self, folder: RunFolder) -> np.ndarray | None:
        """The cells (k, t) of an algorithm with hand-coded descriptors, if the task is known here."""
        if not isinstance(folder.config.settings, MapElitesSettings | CVTMapElitesSettings):
            return None
        with contextlib.suppress(RunError):
            return _given_cells(folder.path, folder.identity)
        return None


def serve_run(path: Path) -> str:
    """Serve a page on one run, begun or not, as long as this process lives; returns its URL."""
    with needs("explore"):
        from vqelites.explore.server import serve_beside
    return serve_beside([ExploredRun(path)])


def in_notebook(run: Run) -> Any:
    """A page on one run as the last value of a notebook's cell."""
    with needs("explore"):
        import panel as pn

        from vqelites.explore.page import live
    pn.extension(inline=True)
    return live([ExploredRun(run.folder.path, simulator=run.simulator)])


@contextlib.contextmanager
def _said() -> Iterator[None]:
    """Turn what may go wrong with a folder into a sentence."""
    try:
        yield
    except (RunError, OSError, ValueError) as error:
        raise NotShownError(str(error)) from error


def _mark(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


@functools.lru_cache(maxsize=_IN_MEMORY)
def _archive(path: Path, identity: str, mark: Hashable) -> tuple[ArchiveFrame, SavePoint]:
    return contents.load_archive(open_folder(path))


@functools.lru_cache(maxsize=_SNAPSHOTS_IN_MEMORY)
def _loaded(path: Path, identity: str, iteration: int, mark: Hashable) -> Snapshot:
    found = contents.load_snapshot(open_folder(path), iteration)
    return Snapshot(found.iteration, found.ids, found.fitness, found.descriptors, found.codes)


@functools.lru_cache(maxsize=_IN_MEMORY)
def _given_cells(path: Path, identity: str) -> np.ndarray:
    """Those of the algorithm as it is built, since files of a run do not repeat what never changes."""
    config = open_folder(path).config
    built = build(make_task(config.task, config.interface), config.settings).archive
    assert isinstance(built, CellArchive)
    return np.asarray(built.cells)


def _snapshot(folder: RunFolder, iteration: int, mark: Hashable) -> Snapshot:
    return _loaded(folder.path, folder.identity, iteration, mark)


def _progress(done: int, planned: int, moment: SavePoint | None) -> str:
    if moment is not None and moment.iteration == planned:
        return f"finished, {counted(planned, 'iteration')}"
    saved = "nothing saved yet" if moment is None else f"saved up to {moment.iteration}"
    return f"iteration {done} of {planned}, {saved}"


def _frames(rendered: object) -> np.ndarray:
    """What `render` returned as frames (t, h, w, c) with values from 0 to 1."""
    frames = np.asarray(rendered.frames if isinstance(rendered, Film) else rendered)
    if frames.dtype.kind not in "uif" or not 2 <= frames.ndim <= 4:
        raise NotShownError(
            "A page can show frames (t, h, w, c) or an image (h, w, c), but `render` returned "
            f"{type(rendered).__name__}{f' of shape {frames.shape}' if frames.ndim else ''}."
        )
    frames = frames / 255 if frames.dtype == np.uint8 else frames.astype(float)
    frames = frames[..., None] if frames.ndim == 2 else frames
    return frames[None] if frames.ndim == 3 else frames
