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


def nearest_other(cells: np.ndarray, counts: np.ndarray) -> list[int]:
    """The nearest other cell that counts; 0 if there is none."""
    found = []
    for i, cell in enumerate(cells):
        others = [j for j in range(len(cells)) if j != i and counts[j]]
        found.append(min(others, key=lambda j: float(np.square(cells[j] - cell).sum()), default=0))
    return found


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
    """The factor by which each image (n, ..., h, w, c), or frame of a video, is brighter than usual; 1 if none is."""
    images = images.astype(float)
    kept = images[mask]
    usual = np.median(kept, axis=0)
    mean = kept.reshape(-1, *kept.shape[-3:]).mean(axis=0).reshape(-1)
    lit = [place for place, value in enumerate(mean) if value > 0.1 * abs(mean).max()]
    places = [lit[i * len(lit) // 256] for i in range(256)]

    def compared(frame: np.ndarray) -> np.ndarray:
        return np.array([frame.reshape(-1)[place] for place in places])

    frames = list(np.ndindex(images.shape[1:-3]))
    ratio = np.array([[compared(image[f]) / compared(usual[f]) for f in frames] for image in images])
    factor = np.median(ratio, axis=-1)
    kept_ratio = [rows[mask] for rows in (ratio, ratio / factor[..., None])]
    before, after = (np.median(np.median(abs(rows - np.median(rows, axis=0)), axis=0)) for rows in kept_ratio)
    factor = factor.reshape(images.shape[:-3])
    total, left = (rows[mask].var(axis=0).sum() for rows in (images, images / factor[..., None, None, None]))
    changes = before > 1e-4 and after < 0.5 * before and left >= 0.25 * total
    return factor if changes else np.ones_like(factor)
