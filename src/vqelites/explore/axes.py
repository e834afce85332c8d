"""The two axes along which a scene is laid out: the learned map itself if it has two dimensions, else a projection."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from vqelites.explore import columns
from vqelites.explore.source import Record, Scene
from vqelites.plots.latent import cells, frame
from vqelites.words import counted

MOST_CELLS = 5000  # of more, each is smaller than the dot of its elite


@dataclass(frozen=True)
class Axes2D:
    """Names of the columns across and up."""

    across: str
    up: str

    @property
    def is_map(self) -> bool:
        """Whether these are the first two descriptors."""
        return (self.across, self.up) == ("descriptor 1", "descriptor 2")


@dataclass(frozen=True, eq=False)
class Layout:
    """A scene laid out on two axes."""

    points: np.ndarray  # (n, 2)
    centres: np.ndarray  # (k, 2), those that are drawn as crosses
    outlines: list[np.ndarray]  # of cells, (corners, 2) each; none in a projection, where they mean nothing
    holders: np.ndarray  # for each outline the row of the fittest elite in it, -1: empty
    middles: np.ndarray  # for each outline its centre (2,)
    low: np.ndarray  # (2,) corner of a frame around all
    high: np.ndarray  # (2,)
    caption: str


def choices(record: Record, scene: Scene) -> list[str]:
    """What can be an axis."""
    d = scene.descriptors.shape[1]
    projected = ["component 1", "component 2"] if d > 2 else []
    others = [name for name in columns.names(record, scene) if name.startswith(("descriptor", "truth"))]
    return [*projected, *others, "fitness"]


def default(scene: Scene) -> Axes2D:
    """The map itself, where it can be drawn."""
    d = scene.descriptors.shape[1]
    if d > 2:
        return Axes2D("component 1", "component 2")
    return Axes2D("descriptor 1", "descriptor 2" if d == 2 else "fitness")


def lay_out(record: Record, scene: Scene, chosen: Axes2D) -> Layout:
    """Where everything of a scene is drawn."""
    names = (chosen.across, chosen.up)
    points = np.stack([columns.values(record, scene, name) for name in names], axis=1).astype(float)
    centres = _centres(scene, names)
    known = points[np.isfinite(points).all(axis=1)]
    outlines: list[np.ndarray] = []
    holders, middles = np.zeros(0, int), np.zeros((0, 2))
    if chosen.is_map and scene.descriptors.shape[1] == 2 and 0 < len(centres) <= MOST_CELLS:
        low, high = frame(known, centres)
        middles, centres = np.unique(centres, axis=0), centres[:0]
        outlines, holders = cells(middles, low, high), _holders(scene, middles)
    else:
        low, high = _box(np.concatenate([known, centres]), square=not {"fitness"} & set(names))
    return Layout(points, centres, outlines, holders, middles, low, high, _caption(scene, chosen, len(outlines)))


def _centres(scene: Scene, names: tuple[str, str]) -> np.ndarray:
    """Centres of cells on the same axes, where these are of descriptors."""
    if scene.centres is None or not all(name.startswith(("descriptor", "component")) for name in names):
        return np.zeros((0, 2))
    sides = []
    for name in names:
        kind, _, number = name.rpartition(" ")
        table = scene.centres if kind == "descriptor" else columns.components(scene)[1]
        sides.append(table[:, int(number) - 1])
    return np.stack(sides, axis=1).astype(float)


def _holders(scene: Scene, centres: np.ndarray) -> np.ndarray:
    """The fittest elite whose descriptor is nearest to each centre."""
    holders = np.full(len(centres), -1)
    if len(scene.ids):
        cell = KDTree(centres).query(scene.descriptors)[1]
        order = np.argsort(scene.fitness, kind="stable")
        holders[cell[order]] = order  # the last written, the fittest, stays
    return holders


def _box(points: np.ndarray, *, square: bool) -> tuple[np.ndarray, np.ndarray]:
    """Corners of a frame around points, with a margin."""
    low, high = (points.min(axis=0), points.max(axis=0)) if len(points) else (np.zeros(2), np.ones(2))
    sides = high - low
    half = np.maximum(0.52 * (sides.max() if square else sides), 1e-6)
    return (low + high) / 2 - half, (low + high) / 2 + half


def _caption(scene: Scene, chosen: Axes2D, drawn: int) -> str:
    """What is seen, in words."""
    d = scene.descriptors.shape[1]
    parts = [f"{counted(len(scene.ids), 'elite')} after iteration {scene.iteration}"]
    if chosen.across.startswith("component") and chosen.up.startswith("component"):
        share = 100 * sum(columns.components(scene)[2])
        parts.append(f"projected from {d} dimensions onto two components with {share:.0f} % of the variance")
    elif d > 2:
        parts.append(f"two of {d} dimensions")
    if scene.centres is not None and not drawn and len(scene.centres) > MOST_CELLS:
        parts.append(f"{len(scene.centres)} cells, too small to be drawn")
    if scene.centres_iteration is not None and drawn:
        parts.append(f"cells as of iteration {scene.centres_iteration}")
    return "; ".join(parts)
