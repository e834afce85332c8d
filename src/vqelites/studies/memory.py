"""How many runs fit into memory together."""

import itertools
import math
from collections.abc import Sequence

from vqelites.runs.environment import memory_bytes

# A group keeps its states up to three times while it advances, and copies them to write them down, but most memory goes
# into intermediate results of networks, which grow with the behavior's size as the state does. Measured on a CPU: 32
# state sizes for a run on images that the networks see in full (mobile-l: 57 MB of state, 1.8 GB more at the peak than
# an idle process); those that see few pixels need less. Runs that take turns need these once for all of them.
FACTOR = 40
SHARE = 0.5  # of all memory that a study takes for itself


def limit() -> int:
    """Bytes that runs of a group may take."""
    return int(SHARE * memory_bytes())


def fitting(state_bytes: int, bytes_limit: int) -> int:
    """How many runs with a state of this size fit; one is always tried."""
    return max(1, bytes_limit // (FACTOR * max(state_bytes, 1)))


def divided(seeds: Sequence[int], most: int) -> list[tuple[int, ...]]:
    """The seeds in as few parts as possible, none larger than `most`, all of nearly the same size."""
    if most < 1:
        raise ValueError(f"At least 1 run has to be computed at a time, but got {most}.")
    parts = math.ceil(len(seeds) / most)
    size, larger = divmod(len(seeds), max(parts, 1))
    ends = [size * i + min(i, larger) for i in range(parts + 1)]
    return [tuple(seeds[a:b]) for a, b in itertools.pairwise(ends)]
