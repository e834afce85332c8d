"""Numbers that every elite of a scene has: to colour the map by, or to spread it out along."""

import numpy as np
from scipy.spatial import KDTree

from vqelites.explore.source import Record, Scene
from vqelites.plots.latent import principal

NEIGHBOURS = 15  # whose mean distance is an elite's novelty
SOLUTIONS = 100  # longer solutions are not offered number by number


def names(record: Record, scene: Scene) -> list[str]:
    """All columns of a scene, the most telling first."""
    widths = {"truth": 0, "descriptor": scene.descriptors.shape[1], "solution": 0}
    if record.archive is not None:
        widths["truth"] = record.archive.truth.shape[1]
        solution = record.archive.solutions.shape[1]
        widths["solution"] = solution if solution <= SOLUTIONS else 0
    numbered = [f"{name} {i + 1}" for name, width in widths.items() for i in range(width)]
    return ["fitness", "age", "novelty", *numbered]


def values(record: Record, scene: Scene, name: str) -> np.ndarray:
    """One column (n,). Truth and solution of elites that are no longer in the archive are NaN."""
    if name == "fitness":
        return scene.fitness
    if name == "age":
        # A run that does not wait has ids of solutions that were made while earlier ones are still evaluated.
        return np.maximum(scene.evaluations - scene.ids, 0)
    if name == "novelty":
        return novelty(scene.descriptors)
    kind, _, number = name.rpartition(" ")
    if kind == "descriptor":
        return scene.descriptors[:, int(number) - 1]
    if kind == "component":
        return components(scene)[0][:, int(number) - 1]
    assert record.archive is not None
    stored = {"truth": record.archive.truth, "solution": record.archive.solutions}[kind][:, int(number) - 1]
    return matched(scene.ids, record.archive.ids, stored)


def matched(ids: np.ndarray, known: np.ndarray, stored: np.ndarray) -> np.ndarray:
    """For each id its stored value, NaN where it is not known."""
    order = np.argsort(known)
    place = np.minimum(np.searchsorted(known, ids, sorter=order), max(len(known) - 1, 0))
    if not len(known):
        return np.full(len(ids), np.nan)
    rows = order[place]
    return np.where(known[rows] == ids, stored[rows], np.nan)


def novelty(descriptors: np.ndarray) -> np.ndarray:
    """The mean distance (n,) of each elite to its nearest others."""
    count = min(NEIGHBOURS, len(descriptors) - 1)
    if count < 1:
        return np.full(len(descriptors), np.nan)
    distances = KDTree(descriptors).query(descriptors, k=count + 1)[0]
    return distances[:, 1:].mean(axis=1)


def neighbours(descriptors: np.ndarray, row: int, count: int) -> np.ndarray:
    """Rows of the elites nearest to one, the nearest first."""
    distances = np.linalg.norm(descriptors - descriptors[row], axis=1)
    distances[row] = np.inf
    count = min(count, len(descriptors) - 1)
    if count < 1:
        return np.zeros(0, int)
    near = np.flatnonzero(distances <= np.partition(distances, count - 1)[count - 1])
    return near[np.argsort(distances[near], kind="stable")][:count]


def components(scene: Scene) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Elites (n, 2) and centres (k, 2) along the two directions in which they vary most, and each one's share of it."""
    centres = scene.descriptors[:0] if scene.centres is None else scene.centres
    return principal(scene.descriptors, centres)
