"""How many solutions make one message: enough that sending them costs little, few enough that nobody waits for them."""

import collections
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vqelites.evaluation.base import Job
from vqelites.evaluation.pace import Pace


def queue_of(alone):
    """Jobs of which some are to be alone."""
    return collections.deque(Job(i, np.zeros(1), i, alone=one) for i, one in enumerate(alone))


@given(
    seconds=st.floats(1e-6, 10),
    alone=st.lists(st.booleans(), min_size=1, max_size=300),
    workers=st.integers(1, 20),
    timeout=st.none() | st.floats(0.1, 100),
)
def test_a_chunk_is_short_is_a_fair_share_and_keeps_the_order(seconds, alone, workers, timeout):
    pace, queue = Pace(0.05, timeout, batch=False), queue_of(alone)
    pace.took(seconds)
    taken = []
    while queue:
        waiting = len(queue)
        chunk = pace.chunk(queue, workers)
        taken += chunk
        longest = 0.05 if timeout is None else min(0.05, timeout / 10)
        assert len(chunk) == 1 or len(chunk) * seconds <= longest * (1 + 1e-9)
        assert len(chunk) <= max(1, math.ceil(waiting / (2 * workers)))
        assert len(chunk) == 1 or not any(job.alone for job in chunk)
    assert [job.id for job in taken] == list(range(len(alone)))


@pytest.mark.parametrize(("seconds", "messages"), [(0.02, 500), (0.001, 20), (0.06, 1000)])
def test_sending_cheap_evaluations_takes_few_messages(seconds, messages):
    """The last ones of a queue are divided further, so that all workers finish together."""
    pace, queue, sent = Pace(0.05, None, batch=False), queue_of([False] * 1000), 0
    pace.took(seconds)
    while queue:
        pace.chunk(queue, workers=2)
        sent += 1
    assert messages <= sent <= messages + 15


def test_nothing_is_sent_in_chunks_before_it_is_known_how_long_it_takes_or_after_it_took_too_long():
    pace, queue = Pace(0.05, 2.0, batch=False), queue_of([False] * 9)
    assert len(pace.chunk(queue, 1)) == 1
    pace.took(0.001)
    assert len(pace.chunk(queue, 1)) == 4
    pace.too_slow()
    assert len(pace.chunk(queue, 1)) == 1


def test_a_batch_simulator_gets_its_share_of_all():
    pace, queue = Pace(0.05, None, batch=True), queue_of([False] * 10)
    assert [len(pace.chunk(queue, workers)) for workers in (4, 3, 2, 1)] == [3, 3, 2, 2]
