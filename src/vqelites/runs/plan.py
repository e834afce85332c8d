"""Which iterations are computed together, and where snapshots are kept: fixed by the configuration alone.

Nothing here depends on when a run is saved or interrupted, so a resumed run executes the same programs. `ends` are the
planned number of iterations and, where a run was extended, the numbers it was extended to.
"""

import functools
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

EARLY_SNAPSHOTS = (40, 60, 80, 100)  # the paper's
SNAPSHOTS = 20  # over each part of a run


def chunks(ends: Sequence[int], length: int, done: int = 0) -> Iterator[tuple[int, int]]:
    """First iteration and number of iterations of every chunk after the first `done` iterations.

    All have this length except, perhaps, the last before each end.
    """
    for begin, end in _parts(ends):
        for first in range(begin, end, length):
            if first >= done:
                yield first, min(length, end - first)


@functools.cache
def snapshots(ends: tuple[int, ...], length: int) -> tuple[int, ...]:
    """Iterations after which elites and codes are kept: 20 over the run and those of `decoded`, at ends of chunks."""
    return tuple(sorted({*_at_ends(_shares(ends, SNAPSHOTS), ends, length), *decoded(ends, length)}))


@functools.cache
def decoded(ends: tuple[int, ...], length: int) -> tuple[int, ...]:
    """Iterations of these after which decoded codes are kept too: 40, 60, 80, 100 and the quarters."""
    return tuple(sorted(set(_at_ends([*EARLY_SNAPSHOTS, *_shares(ends, 4)], ends, length))))


def _parts(ends: Sequence[int]) -> Iterator[tuple[int, int]]:
    return pairwise((0, *ends))


def _shares(ends: Sequence[int], count: int) -> list[int]:
    """Iterations that divide each part of a run into this many."""
    return [math.ceil(begin + (end - begin) * i / count) for begin, end in _parts(ends) for i in range(1, count + 1)]


def _at_ends(moments: Sequence[int], ends: Sequence[int], length: int) -> Iterator[int]:
    """The ends of the chunks in which these moments lie."""
    for moment in moments:
        for begin, end in _parts(ends):
            if begin < moment <= end:
                yield min(begin + math.ceil((moment - begin) / length) * length, end)
