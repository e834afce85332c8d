"""Runs of a study on the nodes of a cluster: as many at a time as there is room for, their folders on this disk."""

import collections
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vqelites.evaluation import EvaluatorError
from vqelites.evaluation.crew import connected, no_room, room, translated
from vqelites.evaluation.station import versions
from vqelites.runs.events import Note, Status
from vqelites.runs.files import RunError
from vqelites.studies.outpost import Folders, Outpost, pack, places_of, sources, unpack
from vqelites.studies.work import Work, begun

Tell = Callable[[Work, int, Status | Note | None], None]
_POLL = 0.5  # seconds between looks
_LOSSES = 10  # of the same runs, until which it was bad luck


@dataclass(frozen=True)
class Nodes:
    """A Ray cluster (its address, or `auto`), what of a node each part of a study takes, and the user's task file."""

    address: str
    num_cpus: float = 1.0
    num_gpus: float = 0.0
    task_file: Path | None = None


@dataclass(eq=False)
class Posting:
    """Runs that are computed somewhere."""

    work: Work
    actor: Any
    outcome: Any  # reference to what `Outpost.compute` returns
    news: Any  # reference to what it tells meanwhile


def spread(works: Sequence[Work], root: Path, nodes: Nodes, tell: Tell, stop: Callable[[], bool]) -> bool:
    """Whether all these runs reached their end. Folders come back whenever their runs are saved."""
    try:
        return _Spread(works, root, nodes, tell).go(stop)
    except EvaluatorError as error:
        raise RunError(str(error)) from error


class _Spread:
    def __init__(self, works: Sequence[Work], root: Path, nodes: Nodes, tell: Tell):
        self._ray, self._root, self._tell = connected(nodes.address), root, tell
        self._needs = {"num_cpus": nodes.num_cpus, "num_gpus": nodes.num_gpus}
        if not room(self._ray, **self._needs):
            raise EvaluatorError(f"{no_room(self._ray, 'run', **self._needs)} Ask for less.")
        # One thread computes, one tells.
        self._outpost = self._ray.remote(Outpost).options(**self._needs, max_restarts=0, max_concurrency=2)
        self._sources = sources(nodes.task_file)
        self._waiting = collections.deque(works)
        self._posted: list[Posting] = []
        self._losses: collections.Counter[tuple[str, tuple[int, ...]]] = collections.Counter()
        self._finished, self._stopped, self._idle = 0, False, False

    def go(self, stop: Callable[[], bool]) -> bool:
        try:
            while self._waiting or self._posted:
                if not self._stopped and stop():
                    self._stopped = True
                    self._waiting.clear()
                    for posting in self._posted:
                        posting.actor.stop.remote()
                while self._waiting and len(self._posted) < room(self._ray, **self._needs):
                    self._post(self._waiting.popleft())
                self._rest()
                for posting in list(self._posted):
                    self._look_after(posting)
        finally:
            for posting in self._posted:
                self._ray.kill(posting.actor)
        return not self._stopped

    def _rest(self) -> None:
        """Until something may have happened. Where runs wait and no node has room, say so once."""
        if self._posted:
            self._ray.wait([posting.outcome for posting in self._posted], timeout=_POLL)
        elif self._waiting:
            if not self._idle:
                told = no_room(self._ray, "run", **self._needs)
                self._tell(self._waiting[0], self._finished, Note(f"{told} The study waits for a node that has."))
            self._idle = True
            time.sleep(_POLL)

    def _post(self, work: Work) -> None:
        self._idle = False
        folders = {seed: pack(place) for seed, place in places_of(work, self._root).items() if place.exists()}
        actor = self._outpost.remote(self._sources, versions())
        outcome = actor.compute.remote(work, self._ray.put(folders))
        self._posted.append(Posting(work, actor, outcome, actor.news.remote()))
        self._tell(work, self._finished, None)

    def _look_after(self, posting: Posting) -> None:
        try:
            if self._ready(posting.outcome):
                finished, folders = self._ray.get(posting.outcome)
                self._put(posting.work, folders)
                self._posted.remove(posting)
                self._ray.kill(posting.actor)
                self._finished += finished * len(posting.work.seeds)
                self._stopped |= not finished
            elif self._ready(posting.news):
                news, posting.news = self._ray.get(posting.news), posting.actor.news.remote()
                self._put(posting.work, news.folders)
                if news.event is not None:
                    self._tell(posting.work, self._finished, news.event)
        except self._ray.exceptions.RayError as error:
            cause, told = getattr(error, "cause", None), translated(self._ray, error)
            if isinstance(told, EvaluatorError) or isinstance(cause, RunError):
                why = cause if isinstance(cause, RunError) else told
                raise RunError(f"{posting.work.group.named}: {why}") from error
            self._lost(posting, told)

    def _ready(self, reference: Any) -> bool:
        return bool(self._ray.wait([reference], timeout=0)[0])

    def _put(self, work: Work, folders: Folders) -> None:
        for seed, packed in folders.items():
            unpack(packed, work.group.folder(self._root, seed))

    def _lost(self, posting: Posting, error: Exception) -> None:
        """Its node, say: go on elsewhere from what came back."""
        work = posting.work
        self._posted.remove(posting)
        name = work.group.named, work.seeds
        self._losses[name] += 1
        if self._losses[name] >= _LOSSES:
            raise RunError(f"{name[0]} was lost {_LOSSES} times; the last time: {error}") from error
        place = work.group.folder(self._root, work.seeds[0])
        self._tell(work, self._finished, Note(f"{name[0]}, seeds {name[1]}: its node was lost; it goes on elsewhere."))
        if not self._stopped:
            known = (place / "config.json").exists()
            again = begun(work.group, self._root, place) if known else Work(work.group, work.seeds, "start")
            self._waiting.append(again)
