"""Slow archives, maps and statistics in plain Python, from their definitions: what the fast ones must agree with."""

import itertools
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from vqelites.archives import InsertInfo
from vqelites.types import Elites

F = np.float32


class AmbiguousError(Exception):
    """A decision hangs on the last bit of a sum, where two correct programs may differ."""


@dataclass
class Record:
    """One solution; `id` is stored as its id, solution, truth and behavior, to see who sits where."""

    id: float
    fitness: float
    descriptor: tuple[float, ...]
    valid: bool = True


def elites(records: list[Record]) -> Elites:
    """The records as rows."""
    ids = np.array([r.id for r in records], np.float32)
    return Elites(
        id=ids.astype(np.int32),
        solution=ids[:, None],
        fitness=np.array([r.fitness for r in records], np.float32),
        behavior=np.broadcast_to(ids[:, None, None], (len(records), 2, 1)),
        descriptor=np.array([r.descriptor for r in records], np.float32),
        truth=-ids[:, None],
        valid=np.array([r.valid for r in records]),
    )


def contents(rows: Elites) -> list[Record | None]:
    """The rows as records, None where absent; every field must tell of the same solution."""
    rows = Elites(*[np.asarray(x) for x in vars(rows).values()])
    np.testing.assert_array_equal(rows.behavior[:, 0, 0], rows.solution[:, 0])
    np.testing.assert_array_equal(rows.truth[:, 0], -rows.solution[:, 0])
    np.testing.assert_array_equal(rows.id, rows.solution[:, 0])
    return [
        Record(float(s), float(f), tuple(map(float, d))) if v else None
        for s, f, d, v in zip(rows.solution[:, 0], rows.fitness, rows.descriptor, rows.valid, strict=True)
    ]


class Outcome(NamedTuple):
    """What became of one row; the status is 0 for rejected, 1 for improved, 2 for new."""

    status: int
    gain: float
    place: int


ABSENT = Outcome(0, 0.0, -1)


def outcomes(info: InsertInfo) -> list[Outcome]:
    """What an archive says of each row."""
    columns = [np.asarray(x) for x in vars(info.rows).values()]
    assert [column.dtype for column in columns] == [np.int8, np.float32, np.int32]
    return [Outcome(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def counts(info: InsertInfo) -> tuple[int, int, int]:
    """How many were added, replaced, evicted."""
    return int(info.added), int(info.replaced), int(info.evicted)


def found(batch: list[Record], judged: list[tuple[int, np.float32]], places: list[Record | None]) -> list[Outcome]:
    """Outcomes, by where each row sits in the end."""
    seats = [next((i for i, e in enumerate(places) if e is new), -1) for new in batch]
    return [Outcome(status, float(gain), seat) for (status, gain), seat in zip(judged, seats, strict=True)]


def distance(a: tuple[float, ...], b: tuple[float, ...]) -> np.float32:
    """Euclidean distance in float32, by direct differences."""
    total = F(0)
    for x, y in zip(a, b, strict=True):
        total = F(total + (F(x) - F(y)) ** 2)
    return np.sqrt(total)


def novelty(point: tuple[float, ...], others: list[Record], neighbours: int) -> np.float32:
    """Mean distance to the nearest others; 1 if there are none."""
    near = sorted(distance(point, other.descriptor) for other in others)[:neighbours]
    return F(sum(near, start=F(0)) / F(len(near))) if near else F(1)


def dominates(new: Record, old: Record, others: list[Record], neighbours: int, tolerance: float = 0.1) -> bool:
    """AURORA's tolerant domination."""
    f_new, f_old = F(new.fitness), F(old.fitness)
    n_new, n_old = novelty(new.descriptor, others, neighbours), novelty(old.descriptor, others, neighbours)
    if n_new - n_old < -F(tolerance) * abs(n_old) or f_new - f_old < -F(tolerance) * abs(f_old):
        return False
    parts = float(n_new - n_old) * float(abs(f_old)), float(f_new - f_old) * float(abs(n_old))
    if any(parts) and abs(sum(parts)) < 1e-6 * max(map(abs, parts)):
        raise AmbiguousError
    return sum(parts) > 0


def replaces(rule: str, new: Record, old: Record, others: list[Record], crowded: bool, neighbours: int) -> bool:
    """Whether the newcomer wins the place of `old`."""
    if rule == "cooperate":
        return True
    if crowded:
        return False
    if rule == "dominate":
        return dominates(new, old, others, neighbours)
    return new.fitness >= old.fitness if rule == "drift" else new.fitness > old.fitness


@dataclass
class Cells:
    """One elite per cell."""

    cells: list[tuple[float, ...]]
    reserve_size: int = 0
    places: list[Record | None] = field(init=False)
    reserve: list[Record] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.places = [None] * len(self.cells)

    def insert(self, batch: list[Record], rule: str) -> list[Outcome]:
        """Offer rows in order; returns what became of each."""
        before = list(self.places)
        judged = [self._offer(new, rule, before) if new.valid else (0, F(0)) for new in batch]
        return found(batch, judged, self.places)

    def _offer(self, new: Record, rule: str, before: list[Record | None]) -> tuple[int, np.float32]:
        """Let one row try; its status and gain are judged by the archive before the batch."""
        cell = min(range(len(self.cells)), key=lambda i: distance(self.cells[i], new.descriptor))
        others = [e for i, e in enumerate(self.places) if e is not None and i != cell]

        def beats(old: Record | None) -> bool:
            return old is None or replaces(rule, new, old, others, False, 15)

        now, first = self.places[cell], before[cell]
        won = beats(now)
        if won:
            self.places[cell] = new
        # Novelty is among the entries of the moment, so that domination cannot be judged by those of before.
        won = won if rule == "dominate" else beats(first)
        if first is None:
            return 2 * won, F(new.fitness)
        return int(won), F(new.fitness) - F(first.fitness)

    def rebuild(self, describe: dict, cells: list[tuple[float, ...]], extra: list[Record]) -> int:
        """Describe all records anew and offer them again; returns how many elites lost their cell."""

        def anew(records: list[Record | None]) -> list[Record]:
            return [Record(r.id, r.fitness, describe[r.id]) for r in records if r is not None]

        previous, reserve = anew(self.places), anew(self.reserve)
        self.cells, self.places = cells, [None] * len(cells)
        self.insert([*previous, *reserve, *extra], "compete")
        held = {e.id for e in self.places if e is not None}
        losers = [r for r in [*previous, *extra, *reserve] if r.valid and r.id not in held]
        self.reserve = losers[: self.reserve_size]
        return sum(e.id not in held for e in previous)


@dataclass
class Unstructured:
    """AURORA's container, with eviction when full."""

    capacity: int
    threshold: float
    neighbours: int
    entries: list[Record] = field(default_factory=list)

    def insert(self, batch: list[Record], rule: str) -> tuple[tuple[int, int, int], list[Outcome]]:
        """Offer rows in order; returns how many were added, replaced, evicted, and what became of each."""
        steps = [self._offer(new, rule) if new.valid else ("absent", F(0)) for new in batch]
        names = [name for name, _ in steps]
        status = {"added": 2, "evicted": 2, "replaced": 1, "rejected": 0, "absent": 0}
        rows = found(batch, [(status[name], gain) for name, gain in steps], self.entries)
        return (names.count("added"), names.count("replaced"), names.count("evicted")), rows

    def _offer(self, new: Record, rule: str) -> tuple[str, np.float32]:
        """What happened to one row, and its gain."""
        limit = F(self.threshold)
        order = sorted(range(len(self.entries)), key=lambda i: distance(self.entries[i].descriptor, new.descriptor))
        gaps = [distance(self.entries[i].descriptor, new.descriptor) for i in order]
        if not gaps or gaps[0] > limit:
            if len(self.entries) < self.capacity:
                self.entries.append(new)
                return "added", F(new.fitness)
            self.entries[self._least_useful()] = new
            return "evicted", F(new.fitness)
        slot = order[0]
        crowded = len(gaps) > 1 and gaps[1] < F(0.9) * limit
        others = [e for i, e in enumerate(self.entries) if i != slot]
        gain = F(new.fitness) - F(self.entries[slot].fitness)
        if not replaces(rule, new, self.entries[slot], others, crowded, self.neighbours):
            return "rejected", gain
        self.entries[slot] = new
        return "replaced", gain

    def _least_useful(self) -> int:
        e = self.entries
        pairs = [(i, j) for i in range(len(e)) for j in range(i + 1, len(e))]
        i, j = min(pairs, key=lambda p: distance(e[p[0]].descriptor, e[p[1]].descriptor))
        return j if e[j].fitness <= e[i].fitness else i

    def rebuild(self, describe: dict, extra: list[Record]) -> int:
        """Describe all entries anew and re-add them, then the extra ones; returns how many were lost."""
        previous = [Record(r.id, r.fitness, describe[r.id]) for r in self.entries]
        threshold, self.entries = self.threshold, []
        self.threshold = F(0.9) * F(threshold)
        self.insert([*previous, *extra], "dominate")
        self.threshold = threshold
        held = {e.id for e in self.entries}
        return sum(e.id not in held for e in previous)


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
    codebook: np.ndarray, latent: np.ndarray, views: np.ndarray, mask: np.ndarray, share: float
) -> tuple[np.ndarray, int]:
    """The codebook and the number of moved codes, after all rounds."""
    plenty = len({tuple(row) for row in views[mask].astype(float)}) < len(codebook)
    moved = 0
    for _ in range(4 if plenty else 1):
        codebook, more = _equal_cells_once(codebook, latent, views, mask, share, plenty)
        moved += more
    return codebook, moved


def _equal_cells_once(
    codebook: np.ndarray, latent: np.ndarray, views: np.ndarray, mask: np.ndarray, share: float, plenty: bool
) -> tuple[np.ndarray, int]:
    """One round: the cheapest codes go to the farthest samples."""
    k, kept, views = len(codebook), [int(i) for i in np.flatnonzero(mask)], views.astype(float)
    members: dict[int, list[int]] = {}
    for i in kept:
        members.setdefault(int(np.square(codebook - latent[i]).sum(axis=1).argmin()), []).append(i)
    means = {c: views[rows].mean(axis=0) for c, rows in members.items()}
    apart = {i: float(np.square(views[i] - means[c]).sum()) for c, rows in members.items() for i in rows}
    gain = {c: max(apart[i] for i in rows) for c, rows in members.items()}
    farthest = {c: next(i for i in rows if apart[i] >= (1 - 1e-5) * gain[c]) for c, rows in members.items()}
    heir = nearest_other(codebook, np.isin(np.arange(k), list(members)))
    removal = {c: float(np.square(means[c] - means[heir[c]]).sum()) for c in members} if len(members) > 1 else {}
    cost = []
    for c in range(k):
        if c not in members:
            cost.append(0.0)
        else:
            both = heir[heir[c]] == c and c < heir[c]
            cost.append(math.inf if both else removal.get(c, math.inf))
    movers = sorted(range(k), key=lambda c: cost[c])[: math.ceil(k / 4)]
    splits = sorted(gain, key=lambda c: -gain[c])
    moves = {}
    for place, (mover, split) in enumerate(zip(movers, splits, strict=False)):
        allowed = place < math.ceil(share * k) or (plenty and mover not in members)
        rounding = 1e-10 * float(np.square(views[farthest[split]]).sum())
        if allowed and gain[split] > 2 * cost[mover] and gain[split] > rounding:
            moves[mover] = latent[farthest[split]]
    return np.array([moves.get(c, codebook[c]) for c in range(k)]), len(moves)


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
