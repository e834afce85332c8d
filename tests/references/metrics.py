"""How good an archive is."""

import itertools
import math


def measure(centres: list[float], reachable: list[bool], elites: list[tuple[float, float]]) -> dict[str, float]:
    """All metrics of elites (truth, fitness) over bins on a line."""
    found: dict[int, list[float]] = {}
    for truth, fitness in elites:
        at = min(range(len(centres)), key=lambda i: abs(centres[i] - truth))
        if reachable[at]:
            found.setdefault(at, []).append(fitness)
    coverage = len(found) / sum(reachable)
    edr = len(found) / len(elites) if elites else 0.0
    return {
        "size": len(elites),
        "coverage": coverage,
        "pqd": sum(max(inside) for inside in found.values()),
        "edr": edr,
        "cds": coverage * edr,
        "max_fitness": max((fitness for _, fitness in elites), default=math.nan),
        "qd_score": sum(fitness for _, fitness in elites),
        "entropy": entropy([len(inside) for inside in found.values()]) / math.log(sum(reachable)),
    }


def entropy(counts: list[int]) -> float:
    """Of the shares these counts stand for."""
    return -sum(c / sum(counts) * math.log(c / sum(counts)) for c in counts if c)


def expected_occupied(labels: list[int | None], size: int) -> float:
    """Mean number of distinct labels over all ways to draw `size` of them; None is no bin."""
    draws = list(itertools.combinations(labels, size))
    return sum(len(set(draw) - {None}) for draw in draws) / len(draws)
