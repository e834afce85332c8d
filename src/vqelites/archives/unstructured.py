"""AURORA's archive: entries keep a minimum distance, which is adapted to control the archive's size."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int8

from vqelites.archives.addition import AbstractAddition, Dominate
from vqelites.archives.base import AbstractArchive, InsertInfo, InsertOutcome, InsertStatus
from vqelites.archives.neighbourhood import Entries, challenge, first, without
from vqelites.types import Elites, Sizes

_CROWDED = 0.9  # a second entry closer than this share of the threshold makes a place crowded
_READDING = 0.9  # share of the threshold that applies when the archive is rebuilt


class Pairs(eqx.Module):
    """For every entry a lower bound of the distance to its nearest other, and which one that is (-1: only a bound)."""

    bound: Float[Array, "n"]
    partner: Int[Array, "n"]


class UnstructuredState(eqx.Module):
    """Elites from slot 0 on, their threshold distance, and what finds the closest pair when the archive is full."""

    elites: Elites
    threshold: Float[Array, ""]
    calibrated: Bool[Array, ""]
    pairs: Pairs


class UnstructuredArchive(AbstractArchive):
    """Adds newcomers farther than a threshold distance l from every entry; nearer ones may replace the nearest entry.

    `threshold_rule` says where l comes from: "fixed" starts at `initial`; "volume" sets it once, at the first rebuild
    that finds elites, from the volume V of their box: 0.5 (V / target)^(1/d); "vat" (AURORA's volume adaptive
    threshold) sets it at every rebuild from their largest distance D: D / (25 target)^(1/d). A rebuild re-adds all
    entries with the rule `Dominate`.

    Container size control (CSC) adapts l with the gain `k_csc`: l <- l (1 - k_csc (target - size)), kept between
    `minimum` and `maximum`; after every "iteration" or before every "rebuild", as `steered_at` says. Only a rebuild can
    make the archive smaller. With a large gain (`k_csc * target` near 1) the steps between two rebuilds would widen l
    by orders of magnitude, and the next rebuild would leave a handful of elites.
    """

    capacity: int = eqx.field(static=True)
    target: int = eqx.field(static=True)
    initial: float | Float[Array, ""] = eqx.field(converter=jnp.asarray, default=1e-5)
    minimum: float | Float[Array, ""] = eqx.field(converter=jnp.asarray, default=1e-5)
    maximum: float | Float[Array, ""] = eqx.field(converter=jnp.asarray, default=1e5)
    k_csc: float | Float[Array, ""] = eqx.field(converter=jnp.asarray, default=5e-6)
    neighbours: int = eqx.field(static=True, default=15)
    threshold_rule: Literal["fixed", "volume", "vat"] = eqx.field(static=True, default="fixed")
    steered_at: Literal["iteration", "rebuild"] = eqx.field(static=True, default="iteration")

    def __check_init__(self) -> None:
        if self.capacity < 2 or not 1 <= self.target <= self.capacity:
            raise ValueError(
                "UnstructuredArchive: expected capacity >= 2 and a target between 1 and the capacity; "
                f"got capacity {self.capacity}, target {self.target}."
            )
        if self.neighbours < 1:
            raise ValueError(f"UnstructuredArchive: expected neighbours >= 1; got {self.neighbours}.")
        if self.threshold_rule not in ("fixed", "volume", "vat"):
            raise ValueError(
                f"UnstructuredArchive: expected threshold_rule 'fixed', 'volume' or 'vat'; got {self.threshold_rule!r}."
            )
        if self.steered_at not in ("iteration", "rebuild"):
            raise ValueError(
                f"UnstructuredArchive: expected steered_at 'iteration' or 'rebuild'; got {self.steered_at!r}."
            )

    def init(self, sizes: Sizes, cells: Float[Array, "k d"] | None) -> UnstructuredState:
        """An empty archive; a codebook, if the descriptor has one, is not used."""
        return UnstructuredState(
            elites=Elites.empty(self.capacity, sizes),
            threshold=jnp.asarray(self.initial, jnp.float32),
            calibrated=jnp.array(False),
            pairs=_no_pairs(self.capacity),
        )

    def elites(self, state: UnstructuredState) -> Elites:
        """One row per slot."""
        return state.elites

    def stored(self, state: UnstructuredState) -> list[Elites]:
        """The elites; nothing else is kept."""
        return [state.elites]

    def filled(self, state: UnstructuredState) -> Float[Array, ""]:
        """Size as a share of the target."""
        return state.elites.size / self.target

    def insert(
        self, state: UnstructuredState, batch: Elites, rule: AbstractAddition
    ) -> tuple[UnstructuredState, InsertInfo]:
        """Offer the valid rows of the batch one by one; every step is counted, an eviction not as an addition.

        Status and gain judge every row at its turn, rows before it included: new if it took a free slot or evicted an
        elite, else by its contest with the nearest one. So `added + evicted` rows are new and `replaced` improved, and
        unless elites were evicted, the gains of all these sum up to the change of all elites' summed fitness.
        """
        state, _, info = self._offer(state, batch, rule, state.threshold)
        return state, info

    def rebuild(
        self,
        state: UnstructuredState,
        stored: Sequence[Elites],
        cells: Float[Array, "k d"] | None,
        extra: Elites | None,
    ) -> tuple[UnstructuredState, Int[Array, ""]]:
        """Re-add all records in slot order, then `extra`, at 0.9 of the threshold and with AURORA's own rule."""
        state = self._steered(state) if self.steered_at == "rebuild" else state
        [elites] = stored
        threshold = self._calibrate(state, elites)
        empty = UnstructuredState(
            elites=jax.tree.map(jnp.zeros_like, state.elites),
            threshold=threshold,
            calibrated=state.calibrated | elites.valid.any(),
            pairs=_no_pairs(self.capacity),
        )
        state, kept, _ = self._offer(empty, elites, Dominate(), _READDING * threshold)
        if extra is not None:
            state, taken, _ = self._offer(state, extra, Dominate(), _READDING * threshold)
            kept &= ~taken
        return state, elites.size - kept.sum()

    def control(self, state: UnstructuredState) -> UnstructuredState:
        """Adapt the threshold, if that is due after every iteration."""
        return self._steered(state) if self.steered_at == "iteration" else state

    def _steered(self, state: UnstructuredState) -> UnstructuredState:
        """Widen the threshold when there are more elites than wanted, narrow it when there are fewer."""
        missing = self.target - state.elites.size
        threshold = jnp.clip(state.threshold * (1 - self.k_csc * missing), self.minimum, self.maximum)
        return eqx.tree_at(lambda s: s.threshold, state, threshold)

    def _offer(
        self, state: UnstructuredState, batch: Elites, rule: AbstractAddition, threshold: Float[Array, ""]
    ) -> tuple[UnstructuredState, Bool[Array, "slots"], InsertInfo]:
        """Insert one by one; also tells which slots the batch holds in the end."""
        newcomers = Entries.of(batch)

        def step(row: Int[Array, ""], now: _Progress) -> _Progress:
            return _step(row, now, newcomers, rule, threshold, self.neighbours)

        # Rows after the last valid one need no step: a rebuild then costs what the archive holds, not its capacity.
        last = (jnp.arange(1, batch.capacity + 1) * batch.valid).max(initial=0)
        status, gain = jnp.zeros(batch.capacity, jnp.int8), jnp.zeros(batch.capacity, jnp.float32)
        start = _Progress(Entries.of(state.elites), state.pairs, state.elites.size, status, gain)
        end = jax.lax.fori_loop(0, last, step, start)
        place, added = end.entries.places(batch.capacity), end.size - start.size
        rows = InsertOutcome(end.status, end.gain, jnp.where(place < self.capacity, place, -1))
        new, replaced = (end.status == InsertStatus.NEW).sum(), (end.status == InsertStatus.IMPROVED).sum()
        # The payload is written once, whatever happened to a slot in between.
        state = UnstructuredState(state.elites.put(place, batch), state.threshold, state.calibrated, end.pairs)
        return state, end.entries.source >= 0, InsertInfo(added, replaced, new - added, rows)

    def _calibrate(self, state: UnstructuredState, stored: Elites) -> Float[Array, ""]:
        """The threshold to use from now on."""
        if self.threshold_rule == "fixed":
            return state.threshold
        d = stored.descriptor.shape[1]
        if self.threshold_rule == "volume":
            fitted, due = 0.5 * (_box_volume(stored) / self.target) ** (1 / d), ~state.calibrated
        else:
            fitted, due = _largest_distance(stored) / (25 * self.target) ** (1 / d), jnp.array(True)
        fitted = jnp.clip(fitted, self.minimum, self.maximum)
        return jnp.where(due & stored.valid.any(), fitted, state.threshold)


class _Progress(NamedTuple):
    """What changes from newcomer to newcomer."""

    entries: Entries
    pairs: Pairs
    size: Int[Array, ""]
    status: Int8[Array, "rows"]
    gain: Float[Array, "rows"]


def _step(
    row: Int[Array, ""],
    now: _Progress,
    batch: Entries,
    rule: AbstractAddition,
    threshold: Float[Array, ""],
    neighbours: int,
) -> _Progress:
    """Offer one newcomer: a free slot if it is novel (the least useful one if none is free), else a contest."""
    entries, capacity, present = now.entries, now.entries.fitness.shape[0], batch.valid[row]
    distance = entries.distances(batch.position[:, row])
    nearest = distance.min()
    incumbent = first(distance == nearest)
    novel = present & (nearest > threshold)
    evicts = novel & (now.size == capacity)

    def contest() -> Bool[Array, ""]:
        crowded = without(distance, incumbent).min() < _CROWDED * threshold
        return challenge(entries, incumbent, batch.fitness[row], distance, crowded, rule, neighbours)

    wins = jax.lax.cond(present & ~novel, contest, lambda: jnp.array(False))
    pairs, evicted = jax.lax.cond(evicts, lambda: _evict(entries, now.pairs, evicts), lambda: (now.pairs, now.size))
    slot = jnp.where(wins, incumbent, jnp.where(novel, evicted, capacity))
    fitness = batch.fitness[row]
    gain = jnp.where(novel, fitness, fitness - entries.fitness[incumbent])
    return _Progress(
        entries.write(slot, batch, row),
        _meet(pairs, distance, nearest, incumbent, slot),
        now.size + (novel & ~evicts),
        now.status.at[row].set(InsertOutcome.judge(wins | novel, novel)),
        now.gain.at[row].set(jnp.where(present, gain, 0)),
    )


def _no_pairs(capacity: int) -> Pairs:
    """The pairs of an empty archive."""
    return Pairs(jnp.full(capacity, jnp.inf, jnp.float32), jnp.full(capacity, -1, jnp.int32))


def _evict(entries: Entries, pairs: Pairs, needed: Bool[Array, ""]) -> tuple[Pairs, Int[Array, ""]]:
    """The slot of the less fit of the closest pair: of equal pairs the first, of equal fitness the higher slot.

    Bounds are made exact only where they stand in the way, which spares a search over all pairs, and only if `needed`:
    runs side by side all come here, and would otherwise search in every step for what none of them wants to know.
    """

    def closest(pairs: Pairs) -> Int[Array, ""]:
        return first(pairs.bound == pairs.bound.min())

    def refresh(search: tuple[Pairs, Int[Array, ""]]) -> tuple[Pairs, Int[Array, ""]]:
        pairs, slot = search
        distance = without(entries.distances(entries.position[:, slot]), slot)
        nearest = distance.min()
        partner = first(distance == nearest)
        pairs = Pairs(pairs.bound.at[slot].set(nearest), pairs.partner.at[slot].set(partner))
        return pairs, closest(pairs)

    def unknown(search: tuple[Pairs, Int[Array, ""]]) -> Bool[Array, ""]:
        pairs, slot = search
        return needed & (pairs.partner[slot] < 0)

    pairs, one = jax.lax.while_loop(unknown, refresh, (pairs, closest(pairs)))
    other = pairs.partner[one]
    low, high = jnp.minimum(one, other), jnp.maximum(one, other)
    return pairs, jnp.where(entries.fitness[high] <= entries.fitness[low], high, low)


def _meet(
    pairs: Pairs,
    distance: Float[Array, "n"],
    nearest: Float[Array, ""],
    neighbour: Int[Array, ""],
    slot: Int[Array, ""],
) -> Pairs:
    """The pairs after a newcomer with these distances took a slot; nothing changes if that is out of range.

    Whoever held the slot is gone: where it was the partner, its distance remains as a bound.
    """
    distance = jnp.where(slot < distance.shape[0], distance, jnp.inf)
    # Of equally near partners the lowest is kept, so that equal pairs are told apart by index.
    closer = (distance < pairs.bound) | ((distance == pairs.bound) & (pairs.partner >= slot))
    partner = jnp.where(closer, slot, jnp.where(pairs.partner == slot, -1, pairs.partner))
    return Pairs(
        jnp.minimum(pairs.bound, distance).at[slot].set(nearest, mode="drop"),
        partner.at[slot].set(jnp.where(neighbour == slot, -1, neighbour), mode="drop"),
    )


def _box_volume(elites: Elites) -> Float[Array, ""]:
    """Volume of the box around the descriptors, aligned with their principal axes."""
    mask = elites.valid[:, None]
    mean = jnp.where(mask, elites.descriptor, 0.0).sum(axis=0, keepdims=True) / jnp.maximum(mask.sum(), 1)
    centred = jnp.where(mask, elites.descriptor - mean, 0.0)
    axes = jnp.linalg.eigh(jnp.matmul(centred.T, centred, precision="highest"))[1]
    # Absent rows sit at the mean, which is always inside the box.
    return jnp.ptp(jnp.matmul(centred, axes, precision="highest"), axis=0).prod()


def _largest_distance(elites: Elites) -> Float[Array, ""]:
    """Largest distance between two elites."""
    entries = Entries.of(elites)

    def farthest(point: Float[Array, "d"]) -> Float[Array, ""]:
        return jnp.where(entries.valid, entries.distances(point), 0.0).max()

    distance = jax.lax.map(farthest, elites.descriptor, batch_size=64)
    return jnp.where(elites.valid, distance, 0.0).max()
