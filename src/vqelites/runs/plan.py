"""Which iterations are computed together, and where codebooks are kept: fixed by the configuration alone.

Nothing here depends on when a run is saved or interrupted, so a resumed run executes the same programs.
"""

import math
from collections.abc import Iterator

EARLY_SNAPSHOTS = (40, 60, 80, 100)


def chunks(iterations: int, length: int, done: int = 0) -> Iterator[tuple[int, int]]:
    """First iteration and number of iterations of every chunk after the first `done` iterations.

    All have this length except, perhaps, the last.
    """
    for first in range(0, iterations, length):
        if first >= done:
            yield first, min(length, iterations - first)


def is_boundary(iteration: int, iterations: int, length: int) -> bool:
    """Whether a chunk ends here."""
    return iteration == iterations or (0 <= iteration < iterations and iteration % length == 0)


def snapshots(iterations: int, length: int) -> list[int]:
    """Iterations after which the codebook is kept: 40, 60, 80, 100 and the quarters, each at the end of its chunk."""
    wanted = [*EARLY_SNAPSHOTS, *(math.ceil(iterations * quarter / 4) for quarter in (1, 2, 3, 4))]
    ends = (min(math.ceil(moment / length) * length, iterations) for moment in wanted if moment <= iterations)
    return sorted(set(ends))
