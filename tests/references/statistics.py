"""What many seeds say together."""

import itertools
from collections import Counter


def midranks(values: list[float]) -> list[float]:
    """Rank of each value from 1 on; equal values share the mean of theirs."""
    return [sum(v < x for v in values) + (1 + sum(v == x for v in values)) / 2 for x in values]


def mann_whitney(first: list[float], second: list[float]) -> tuple[float, float]:
    """U of the first group, and twice the smaller tail of the rank sums over all splits of the pooled values."""
    u = sum((x > y) + (x == y) / 2 for x in first for y in second)
    return u, min(1.0, 2 * min(rank_tails(first, second)))


def rank_tails(first: list[float], second: list[float]) -> tuple[float, float]:
    """The shares of all splits of the pooled values whose rank sum is at most, and at least, that of the first."""
    ranks = midranks([*first, *second])
    observed = sum(ranks[: len(first)])
    sums = Counter(sum(split) for split in itertools.combinations(ranks, len(first)))
    below, above = (sum(n for s, n in sums.items() if keep(s)) for keep in (observed.__ge__, observed.__le__))
    return below / sums.total(), above / sums.total()


def holm(values: list[float]) -> list[float]:
    """Holm's step-down correction, straight from its definition."""
    ordered = sorted(range(len(values)), key=lambda i: values[i])
    adjusted = [0.0] * len(values)
    for place, i in enumerate(ordered):
        adjusted[i] = min(1.0, max((len(values) - k) * values[ordered[k]] for k in range(place + 1)))
    return adjusted
