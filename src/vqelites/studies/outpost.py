"""What computes runs of a study on a node of a cluster, whose disk nobody else sees."""

import io
import platform
import shutil
import sys
import tarfile
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

from vqelites.evaluation.packing import not_installed
from vqelites.evaluation.station import check_versions, versions
from vqelites.runs.events import Note, Status
from vqelites.runs.files import RunError
from vqelites.runs.taskfiles import load_task_file
from vqelites.studies.work import Work, compute

Folders = dict[int, bytes]  # run folders by their seed, as archives
Sources = dict[str, str]  # modules as text, by their places below the task file's folder; the task file first


class News(NamedTuple):
    """What runs told last, and their folders if they were saved since."""

    event: Status | Note | None
    folders: Folders


class Outpost:
    """Computes runs in a folder of its own. While `compute` goes on, others ask for `news`.

    `sources` are those of the user's task file; `wanted` are the versions of packages that the study has elsewhere.
    """

    def __init__(self, sources: Sources, wanted: dict[str, str]):
        self._root = Path(tempfile.mkdtemp(prefix="vqelites-study-"))
        self._sources, self._wanted = sources, wanted
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._news, self._seen = News(None, {}), set[str]()

    def compute(self, work: Work, folders: Folders) -> tuple[bool, Folders]:
        """Whether the runs reached their end, and their folders."""
        check_versions(platform.node(), versions(), self._wanted)
        places = places_of(work, self._root)
        try:
            self._load_task_file()
            for seed, packed in folders.items():
                unpack(packed, places[seed])
            finished = compute(work, self._root, lambda event: self._heard(event, places), self._stop.is_set)
            return finished, {seed: pack(place) for seed, place in places.items()}
        finally:
            shutil.rmtree(self._root, ignore_errors=True)

    def _load_task_file(self) -> None:
        places = [self._root / "modules" / name for name in self._sources]
        for place, text in zip(places, self._sources.values(), strict=True):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        try:
            if places:
                load_task_file(places[0])
        except RunError as error:
            raise RunError(f"On the node {platform.node()} of the cluster: {error}") from error

    def news(self) -> News:
        """What there is since this was last asked."""
        with self._lock:
            news, self._news = self._news, News(None, {})
        return news

    def stop(self) -> None:
        """Have all saved and `compute` return."""
        self._stop.set()

    def _heard(self, event: Status | Note, places: dict[int, Path]) -> None:
        """Called between chunks, when the folders are in order."""
        saved = {str(path) for place in places.values() for path in place.glob("checkpoints/[0-9]*")}
        folders = {} if saved <= self._seen else {seed: pack(place) for seed, place in places.items()}
        self._seen |= saved
        with self._lock:
            self._news = News(event, folders or self._news.folders)


def sources(task_file: Path | None) -> Sources:
    """A task file that is loaded here, and the modules next to it that it imports: other nodes have neither."""
    if task_file is None:
        return {}
    own = task_file.resolve()
    files = [getattr(module, "__file__", None) for name, module in [*sys.modules.items()] if not_installed(name)]
    beside = {path for path in map(Path, filter(None, files)) if own.parent in path.parents and path.suffix == ".py"}
    return {path.relative_to(own.parent).as_posix(): path.read_text() for path in (own, *sorted(beside - {own}))}


def places_of(work: Work, root: Path) -> dict[int, Path]:
    """The folders of some runs of a study, by seed."""
    return {seed: work.group.folder(root, seed) for seed in work.seeds}


def pack(place: Path) -> bytes:
    """A folder as an archive."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(place, ".")
    return buffer.getvalue()


def unpack(packed: bytes, place: Path) -> None:
    """Put a folder in its place, whole, where another version of it may be."""
    fresh, old = (place.with_name(f".{place.name}.{kind}") for kind in ("tmp", "old"))
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(fresh, filter="data")
    if place.exists():
        place.rename(old)
    fresh.rename(place)
    shutil.rmtree(old, ignore_errors=True)
