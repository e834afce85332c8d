"""Archives and addition rules."""

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
    places: list[Record | None] = field(init=False)
    fringe: list[Record | None] = field(init=False)

    def __post_init__(self) -> None:
        self.places, self.fringe = [None] * len(self.cells), [None] * len(self.cells)

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
        if loser := now if won else new:
            self.fringe[cell] = max(
                [r for r in (self.fringe[cell], loser) if r is not None],
                key=lambda r: (distance(self.cells[cell], r.descriptor), r.id),
            )
        # Novelty is among the entries of the moment, so that domination cannot be judged by those of before.
        won = won if rule == "dominate" else beats(first)
        if first is None:
            return 2 * won, F(new.fitness)
        return int(won), F(new.fitness) - F(first.fitness)

    def rebuild(self, describe: dict, cells: list[tuple[float, ...]], extra: list[Record]) -> int:
        """Describe all records anew and offer them again; returns how many elites lost their cell."""

        def anew(records: list[Record | None]) -> list[Record]:
            return [Record(r.id, r.fitness, describe[r.id]) for r in records if r is not None]

        previous, fringe = anew(self.places), anew(self.fringe)
        self.cells, self.places, self.fringe = cells, [None] * len(cells), [None] * len(cells)
        self.insert([*previous, *fringe, *extra], "compete")
        held = {e.id for e in self.places if e is not None}
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
