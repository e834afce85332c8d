"""What shapes a learned map."""

import itertools
import math

import numpy as np


def unequal_stretch(views: np.ndarray, latent: np.ndarray) -> float:
    """Variance of log latent distance - log distance of views, over each row's five nearest others that differ."""
    gaps = np.linalg.norm(views[:, None] - views[None], axis=2)
    apart = [gaps[i, j] for i, j in itertools.permutations(range(len(views)), 2)]
    ratios = []
    for i, row in enumerate(gaps):
        others = [j for j in range(len(row)) if j != i and row[j] > 1e-3 * np.mean(apart)]
        for j in sorted(others, key=lambda j: row[j])[:5]:
            ratios.append(math.log(math.hypot(*(latent[i] - latent[j]), 1e-4)) - math.log(row[j]))
    return float(np.var(ratios)) if ratios else 0.0


def equal_cells(
    codebook: np.ndarray, points: np.ndarray, share: float, *, least: float = 0.0, ratio: float = 1.75, rounds: int = 2
) -> tuple[np.ndarray, int]:
    """The codebook and the number of moved codes: from the smallest cells to the farthest points of the largest.

    A cell with no more than `least` points is not large.
    """
    (k, d), moved = codebook.shape, 0
    codes = codebook.astype(float)
    for _ in range(rounds):
        members: list[list[int]] = [[] for _ in range(k)]
        for i, point in enumerate(points):
            members[int(np.square(codes - point).sum(axis=1).argmin())].append(i)
        order = sorted(range(k), key=lambda c: len(members[c]))
        falling = sorted(range(k), key=lambda c: -len(members[c]))
        moves = {}
        for small, large in list(zip(order, falling, strict=True))[: math.ceil(share * k)]:
            if len(members[large]) > max(ratio**d * len(members[small]), least):
                moves[small] = max(members[large], key=lambda i: float(np.square(points[i] - codes[large]).sum()))
        for code, point in moves.items():
            codes[code] = points[point]
        moved += len(moves)
    return codes, moved


def worth(fitness: np.ndarray, mask: np.ndarray, dim: int) -> np.ndarray:
    """1.8 to the power of (dim - 1) (rank - 1/2), ranks from 0 to 1, shared by ties; 1 where fitness is not known."""
    known = [float(x) for x, counts in zip(fitness, mask, strict=True) if counts and not math.isnan(x)]

    def rank(x: float) -> float:
        return (sum(y < x for y in known) + sum(y <= x for y in known)) / 2 / len(known)

    counted = zip(fitness, mask & ~np.isnan(fitness), strict=True)
    return np.array([1.8 ** ((dim - 1) * (rank(float(x)) - 0.5)) if there else 1.0 for x, there in counted])


def rarity(views: np.ndarray, mask: np.ndarray, compared: int = 256) -> np.ndarray:
    """Squared distance to the fifth nearest other, in that of the average row (by distance), within [1/4, 4]."""
    kept = [int(i) for i in np.flatnonzero(mask)]
    some = min(len(kept), compared)
    others = [kept[i * len(kept) // some] for i in range(some)]
    near = {}
    for i in kept:
        gaps = sorted({float(np.linalg.norm(views[i] - views[j])) for j in others if j != i})
        near[i] = gaps[:5][-1] if gaps else 0.0
    usual = sum(near.values()) / max(len(kept), 1)
    share = {i: (gap / usual) ** 2 if usual else 1.0 for i, gap in near.items()}
    return np.array([min(max(share[i], 0.25), 4.0) if i in share else 0.0 for i in range(len(views))])


def grain(images: np.ndarray, mask: np.ndarray) -> tuple[float, np.ndarray]:
    """The noise of pixels, and images (n, ..., h, w, c) without it."""
    images = images.astype(float)
    height, width = images.shape[-3:-1]
    kept = images[mask]
    mean, few = kept.mean(axis=0), kept[:64]
    across = [
        abs(x[..., i, j, :] - x[..., i + 1, j, :] - x[..., i, j + 1, :] + x[..., i + 1, j + 1, :]) / math.sqrt(8)
        for x in few[1:] - few[:-1]
        for i in range(height - 1)
        for j in range(width - 1)
    ]
    noise = float(np.median(across)) / 0.6745 if across else 0.0

    def without(image: np.ndarray) -> np.ndarray:
        found = image.copy()
        for place in np.ndindex(image.shape):
            apart = image[place] - mean[place]
            found[place] = mean[place] + (apart * (1 - (3 * noise / apart) ** 2) if abs(apart) > 3 * noise else 0)
        return found

    cleaned = np.array([without(image) for image in images])
    left = np.square(cleaned[mask][:64] - mean).sum() / np.square(few - mean).sum()
    return (noise, cleaned) if left >= 0.25 else (0.0, images)


def lighting(images: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """What the light adds to images (n, ..., h, w, c), or to every frame of a video; 0 if it does not change."""
    frames = list(np.ndindex(images.shape[1:-3]))
    rows = images.astype(float).reshape(len(images), len(frames), -1)
    kept = rows[mask][:64]
    usual = np.median(kept, axis=0)
    swing = np.median(abs(kept - usual), axis=0)
    total = kept.var(axis=0).sum()
    moves = [p for p in range(rows.shape[2]) if swing[:, p].min() > 1e-3 * np.sqrt(total / swing.size)]
    if 2 * len(moves) <= rows.shape[2]:
        return np.zeros_like(images)
    places = [moves[i * len(moves) // 256] for i in range(256)]
    light = np.zeros_like(rows)
    for i, f in np.ndindex(rows.shape[:2]):
        bright = np.median([(rows[i, f, p] - usual[f, p]) / swing[f, p] for p in places])
        light[i, f] = bright * swing[f]
    even = kept - light[mask][:64]
    rest = np.median(abs(even - usual), axis=0)
    other = np.median([rest[f, p] / swing[f, p] for f in range(len(frames)) for p in places])
    changes = other < 0.5 and even.var(axis=0).sum() >= 0.75 * total
    return light.reshape(images.shape) if changes else np.zeros_like(images)
