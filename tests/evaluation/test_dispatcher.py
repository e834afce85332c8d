"""The driver's side of a cluster, with workers that are made up: no Ray."""

import queue
import threading
import time

import numpy as np
from growth import MadeUpCrew

from vqelites.evaluation.base import Job
from vqelites.evaluation.dispatcher import Dispatcher


def test_thousands_of_workers_are_known_within_seconds():
    crew = MadeUpCrew(4_000)
    dispatcher = Dispatcher(crew, workers=None, timeout=None, batch=False)
    thread = threading.Thread(target=dispatcher.run)
    began = time.monotonic()
    thread.start()
    try:
        while dispatcher.activity.workers < 4_000 and time.monotonic() - began < 10:
            time.sleep(0.01)
        assert dispatcher.activity.workers == 4_000  # each was greeted in time that grew with their number
        assert dispatcher.activity.nodes == 1
        dispatcher.submit([Job(i, np.zeros(2, np.float32), i) for i in range(9_000)])
        assert sorted(_taken(dispatcher.outbox, 9_000)) == list(range(9_000))
    finally:
        dispatcher.submit(None)
        thread.join()


def _taken(outbox: queue.SimpleQueue, count: int) -> list[int]:
    return [outbox.get(timeout=20).id for _ in range(count)]
