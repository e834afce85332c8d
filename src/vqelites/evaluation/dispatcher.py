"""Gives chunks of solutions to the workers of a cluster, starts workers where there is room, repeats what gets lost."""

import collections
import functools
import queue
import time

from vqelites.evaluation.base import Activity, EvaluatorError, Job
from vqelites.evaluation.crew import Crew, Hand, LostError, Said
from vqelites.evaluation.managed import AbstractManager
from vqelites.evaluation.pace import Pace
from vqelites.evaluation.station import Greeting, check_versions, versions

_LOOK = 2.0  # seconds between looks at the nodes
_CHUNK_SECONDS = 0.05  # what one chunk should take: long next to a message through the cluster
_STARTS = 30  # lost in a row before one was up

Event = list[Job] | None | tuple[Hand, list[Job] | None, Said]


class Dispatcher(AbstractManager):
    """Manages the workers of a cluster.

    Everything that happens arrives in one queue; messages of a worker that was given up are ignored. So nothing is
    lost, and nothing counts twice.
    """

    def __init__(self, crew: Crew, *, workers: int | None, timeout: float | None, batch: bool):
        if workers is None:
            crew.check_room()
        super().__init__()
        self._crew, self._size = crew, workers
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._pace = Pace(_CHUNK_SECONDS, timeout, batch)
        self._hands: set[Hand] = set()
        self._nodes: collections.Counter[str] = collections.Counter()  # workers that are up, by node
        self._looked = float("-inf")
        self._stillborn = 0

    def submit(self, jobs: list[Job] | None) -> None:
        self._events.put(jobs)

    def _serve(self) -> None:
        self._recruit()
        while self._listen():
            self._recruit()
            self._hand_out()

    def _leave(self) -> None:
        for hand in self._hands:
            hand.dismiss()

    def _listen(self) -> bool:
        """Wait for an event, then handle all that are queued; False if told to stop."""
        patience: float | None = _LOOK
        while True:
            try:
                event = self._events.get(timeout=patience) if patience else self._events.get_nowait()
            except queue.Empty:
                return True
            if event is None:
                return False
            if isinstance(event, list):
                self._queue.extend(event)
            elif event[0] in self._hands:
                self._hear(*event)
            patience = None

    def _hear(self, hand: Hand, chunk: list[Job] | None, said: Said) -> None:
        if isinstance(said, LostError):
            self._bury(hand, said)
        elif isinstance(said, Exception):
            raise said
        elif isinstance(said, Greeting):
            check_versions(said.host, said.versions, versions())
            hand.greeting, self._stillborn = said, 0
            self._count(said.node, 1)
        else:
            assert chunk is not None
            hand.chunks = [other for other in hand.chunks if other is not chunk]
            self._pace.took(said.seconds / len(chunk))
            self.activity.running -= len(chunk)
            self.activity.working -= not hand.chunks
            self._add_up(hand, said.activity)
            for job, result in zip(chunk, said.results, strict=True):
                self._settle(job, result)

    def _add_up(self, hand: Hand, told: Activity) -> None:
        """Add a worker's counts since its last report."""
        busy, repeated, replaced = hand.reported
        self.activity.busy += told.busy - busy
        self.activity.repeated += told.repeated - repeated
        self.activity.replaced += told.replaced - replaced
        hand.reported = told.busy, told.repeated, told.replaced

    def _bury(self, hand: Hand, why: LostError) -> None:
        """Requeue the jobs of a lost worker; one that was alone in several lost workers has failed."""
        self._hands.remove(hand)
        hand.dismiss()
        self._looked = float("-inf")  # nodes may have changed
        self.activity.replaced += 1
        self.activity.running -= sum(map(len, hand.chunks))
        self.activity.working -= bool(hand.chunks)
        if hand.greeting is not None:
            self._count(hand.greeting.node, -1)
        else:
            self._stillborn += 1
            if self._stillborn >= _STARTS:
                raise EvaluatorError(f"{_STARTS} workers in a row ended before they were up; the last one: {why}.")
        begun = self._taken_back(hand.chunks)
        for job in begun:
            job.alone = True
            self._settle(job, job.killed(str(why)) if len(begun) == 1 else None)

    def _recruit(self) -> None:
        """Start workers: as many as were asked for, or as there is room for."""
        if time.monotonic() - self._looked < _LOOK:
            return
        self._looked = time.monotonic()
        wanted = self._crew.room() if self._size is None else self._size
        waiting = [hand for hand in self._hands if hand.greeting is None]
        for hand in waiting[: max(0, len(self._hands) - wanted)]:
            self._hands.remove(hand)
            hand.dismiss()
        while len(self._hands) < wanted:
            hand = self._crew.hire()
            self._hands.add(hand)
            hand.welcome(functools.partial(self._said, hand, None))

    def _hand_out(self) -> None:
        """Give every worker that is up something to do, as long as jobs wait."""
        up = [hand for hand in self._hands if hand.greeting is not None]
        for hand in up:
            if self._queue and not hand.chunks:
                self._give(hand, len(up))
        for hand in up:
            # A second chunk hides the way to and fro. Slow ones and the last are left to whoever is free first.
            if len(hand.chunks) == 1 and len(self._queue) > len(up) and self._pace.short:
                self._give(hand, len(up))
        self.activity.queued = len(self._queue)

    def _give(self, hand: Hand, workers: int) -> None:
        chunk = self._pace.chunk(self._queue, workers)
        self.activity.running += len(chunk)
        self.activity.working += not hand.chunks
        hand.give(chunk, functools.partial(self._said, hand, chunk))

    def _said(self, hand: Hand, chunk: list[Job] | None, said: Said) -> None:
        """Queue an event; called from other threads."""
        self._events.put((hand, chunk, said))

    def _count(self, node: str, change: int) -> None:
        """A worker of this node came or went."""
        self._nodes[node] += change
        if not self._nodes[node]:
            del self._nodes[node]
        self.activity.workers += change
        self.activity.nodes = len(self._nodes)
