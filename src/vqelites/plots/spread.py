"""Diverse examples from a set of points."""

import numpy as np


def spread(points: np.ndarray, count: int) -> np.ndarray:
    """Indices of at most `count` points (n, d) far from each other: first the most central one, then always the one
    farthest from those chosen."""
    if not len(points):
        return np.zeros(0, int)
    chosen = [int(np.linalg.norm(points - np.mean(points, axis=0), axis=1).argmin())]
    distance = np.linalg.norm(points - points[chosen[0]], axis=1)
    while len(chosen) < count and distance.max() > 0:
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return np.array(chosen[:count])
