"""The archive of cells: one elite per cell, the cells given (grid, CVT) or brought by a descriptor (codebook)."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vqelites.archives.addition import AbstractAddition, Compete, Ranking
from vqelites.archives.base import AbstractArchive, InsertInfo, InsertOutcome
from vqelites.archives.neighbourhood import Entries, challenge
from vqelites.tessellation import Tree, arranged, nearest_of
from vqelites.types import Elites, Sizes

_NEIGHBOURS = 15  # entries that novelty is measured against, where a rule asks for it


class CellState(eqx.Module):
    """Row i of `elites` is the elite of cell i, and row i of `fringe` what is farthest from the centre of that cell.

    `tree` has the cells as they are `arranged`, anew only when they move.
    """

    elites: Elites
    cells: Float[Array, "k d"]
    tree: Tree | None
    fringe: Elites  # no rows, if none is kept


class CellArchive(AbstractArchive):
    """One elite per cell and, if wanted, a `fringe` that is offered again whenever the cells move.

    The fringe is, for each cell, of all solutions that lost there, the one farthest from its centre. Wherever effort
    costs fitness, the side of a cell that is easier to reach always wins, and what was reached on its far side would be
    forgotten. With the fringe it is there to fill the new cell when a later codebook puts one there.
    """

    cells: Float[Array, "k d"] | None = None
    fringe: bool = eqx.field(static=True, default=False)

    def init(self, sizes: Sizes, cells: Float[Array, "k d"] | None) -> CellState:
        """An empty archive over this archive's own cells, or else the descriptor's."""
        cells = cells if self.cells is None else jnp.asarray(self.cells, jnp.float32)
        if cells is None:
            raise ValueError(
                "CellArchive: expected cells; got none, neither here nor from the descriptor. "
                "Give `cells` to the archive (grid, cvt), or use a descriptor that learns a codebook."
            )
        if cells.ndim != 2 or cells.shape[0] < 1 or cells.shape[1] != sizes.descriptor:
            raise ValueError(
                f"CellArchive: expected cells of shape (k, {sizes.descriptor}), the descriptor's width, with k >= 1; "
                f"got {cells.shape}."
            )
        k = cells.shape[0]
        elites, fringe = (Elites.empty(count, sizes) for count in (k, k if self.fringe else 0))
        return CellState(elites, cells, arranged(cells), fringe)

    def elites(self, state: CellState) -> Elites:
        """One row per cell."""
        return state.elites

    def stored(self, state: CellState) -> list[Elites]:
        """The elites, then the fringe."""
        return [part for part in (state.elites, state.fringe) if part.capacity]

    def filled(self, state: CellState) -> Float[Array, ""]:
        """Share of the cells that have an elite."""
        return state.elites.valid.mean()

    def insert(self, state: CellState, batch: Elites, rule: AbstractAddition) -> tuple[CellState, InsertInfo]:
        """Offer the valid rows of the batch; what is replaced within the batch is not counted.

        As in pyribs, status and gain judge every row by the archive before the batch, as if it came alone: two rows may
        both be new in one cell, and `place` says which of them stayed. Under a rule that is no total order only one
        thing is decided at a row's turn: whether it wins. Of the rows that stay, `added` are new and `replaced`
        improved, and their gains sum up to the change of all elites' summed fitness.
        """
        elites, offers = Entries.of(state.elites), Entries.of(batch)
        cell = _cell(offers, state.cells, state.tree)
        place, won = _settle(elites, cell, offers, rule)
        taken = elites.valid.at[cell].get(mode="fill", fill_value=False)
        gain = offers.fitness - jnp.where(taken, elites.fitness[cell], 0)
        stays = place < state.elites.capacity
        status = InsertOutcome.judge(won, ~taken)
        rows = InsertOutcome(status, jnp.where(offers.valid, gain, 0), jnp.where(stays, place, -1))
        replaced = (stays & taken).sum()
        info = InsertInfo(stays.sum() - replaced, replaced, jnp.zeros_like(replaced), rows)
        if not self.fringe:
            return eqx.tree_at(lambda s: s.elites, state, state.elites.put(place, batch)), info
        fringe = self._with_losers(state, cell, place, batch)
        changed = (_put_after(fringe, state.elites, place, batch), fringe)
        return eqx.tree_at(lambda s: (s.elites, s.fringe), state, changed), info

    def _with_losers(self, state: CellState, cell: Int[Array, "n"], place: Int[Array, "n"], batch: Elites) -> Elites:
        """The fringe once the batch has been placed: its losers, and the elites that it displaced, may belong there."""
        k = state.elites.capacity
        stays = place < k
        displaced = jax.tree.map(lambda x: x.at[place].get(mode="clip"), state.elites)
        home = jnp.concatenate([jnp.where(stays, k, cell), jnp.where(stays & displaced.valid, place, k)])
        losers = jnp.concatenate([batch.descriptor, displaced.descriptor])
        held = jnp.where(state.fringe.valid, _apart(state.fringe.descriptor, state.cells), -1.0)
        apart = _apart(losers, state.cells.at[home].get(mode="clip"))
        seat = _outermost(held, state.fringe.id, home, apart, jnp.concatenate([batch.id, displaced.id]))
        return state.fringe.put(seat[: len(place)], batch).put(seat[len(place) :], displaced)

    def rebuild(
        self, state: CellState, stored: Sequence[Elites], cells: Float[Array, "k d"] | None, extra: Elites | None
    ) -> tuple[CellState, Int[Array, ""]]:
        """Place all records anew, the fitter one staying; the fringe is found anew among the losers."""
        if self.cells is not None or cells is None:
            cells, tree = state.cells, state.tree
        else:
            tree = arranged(cells)
        groups = [*stored] if extra is None else [*stored, extra]
        offers = _join([Entries.of(group) for group in groups])
        empty = jax.tree.map(jnp.zeros_like, state.elites)
        k, cell = empty.capacity, _cell(offers, cells, tree)
        place, _ = _settle(Entries.of(empty), cell, offers, Compete())
        lost = offers.valid & (place == k)
        fringe = jax.tree.map(jnp.zeros_like, state.fringe)
        if self.fringe:
            home, ids = jnp.where(lost, cell, k), jnp.concatenate([group.id for group in groups])
            apart = _apart(offers.position.T, cells.at[home].get(mode="clip"))
            seat = _outermost(jnp.full(k, -1.0), jnp.full(k, -1, jnp.int32), home, apart, ids)
            fringe = _seated(fringe, seat, groups)
        return CellState(_seated(empty, place, groups), cells, tree, fringe), lost[:k].sum()

    def control(self, state: CellState) -> CellState:
        """Cells limit the size by themselves."""
        return state


def _cell(batch: Entries, cells: Float[Array, "k d"], tree: Tree | None) -> Int[Array, "n"]:
    """The cell each batch row belongs to, k for absent rows."""
    return nearest_of(batch.valid, batch.position.T, cells, tree)


def _settle(
    entries: Entries, cell: Int[Array, "n"], batch: Entries, rule: AbstractAddition
) -> tuple[Int[Array, "n"], Bool[Array, "n"]]:
    """The cell each batch row holds in the end, k for those that hold none, and whether it won its contest."""
    if rule.ranking is None:
        return _one_by_one(entries, cell, batch, rule)
    return _at_once(entries, cell, batch.fitness, rule.ranking)


def _at_once(
    entries: Entries, cell: Int[Array, "n"], fitness: Float[Array, "n"], ranking: Ranking
) -> tuple[Int[Array, "n"], Bool[Array, "n"]]:
    """Settle every cell together: the highest rank wins it, and of equal ranks the latest arrival or the earliest."""
    k, arrival = entries.fitness.shape[0], jnp.arange(cell.shape[0], dtype=jnp.int32)
    rank = ranking.rank(fitness, arrival)
    incumbent = ranking.rank(entries.fitness, jnp.full(k, -1, jnp.int32))
    incumbent = jnp.where(entries.valid, incumbent, -jnp.inf)
    best = incumbent.at[cell].max(rank, mode="drop")
    beats = rank >= incumbent[cell] if ranking.latest else rank > incumbent[cell]
    won = (cell < k) & (beats | ~entries.valid[cell])
    contender = jnp.where(won & (rank == best[cell]), cell, k)
    precedence = arrival if ranking.latest else -arrival
    first = jnp.full(k, -cell.shape[0], jnp.int32).at[contender].max(precedence, mode="drop")
    return jnp.where(first[cell] == precedence, contender, k), won


def _one_by_one(
    entries: Entries, cell: Int[Array, "n"], batch: Entries, rule: AbstractAddition
) -> tuple[Int[Array, "n"], Bool[Array, "n"]]:
    """Settle rows in order: under an intransitive rule every decision depends on those before it."""
    k, n = entries.fitness.shape[0], cell.shape[0]

    def step(row: Int[Array, ""], now: tuple[Entries, Bool[Array, "n"]]) -> tuple[Entries, Bool[Array, "n"]]:
        (entries, won), slot = now, cell[row]

        def contest() -> Bool[Array, ""]:
            distance = entries.distances(batch.position[:, row])
            return challenge(entries, slot, batch.fitness[row], distance, jnp.array(False), rule, _NEIGHBOURS)

        contested = batch.valid[row] & entries.valid[slot]
        wins = jax.lax.cond(contested, contest, lambda: batch.valid[row])
        return entries.write(jnp.where(wins, slot, k), batch, row), won.at[row].set(wins)

    entries, won = jax.lax.fori_loop(0, n, step, (entries, jnp.zeros(n, bool)))
    return entries.places(n), won


def _put_after(written: Elites, elites: Elites, place: Int[Array, "n"], batch: Elites) -> Elites:
    """`elites.put`, once others were written with what is displaced here.

    The place of each row is made to depend on `written`, by a condition that is never true. Otherwise XLA cannot be
    sure that all was read before, and copies all elites, twice.
    """

    def put(before: Array, x: Array, new: Array) -> Array:
        if not before.size:
            return x.at[place].set(new, mode="drop")
        never = before.reshape(-1)[0].astype(jnp.float32) < -jnp.inf
        return x.at[jnp.where(never, len(x), place)].set(new, mode="drop")

    return jax.tree.map(put, written, elites, batch)


def _apart(position: Float[Array, "n d"], centre: Float[Array, "n d"]) -> Float[Array, "n"]:
    """Squared distance of each position to its centre."""
    return jnp.square(position - centre).sum(axis=1)


def _outermost(
    held: Float[Array, "k"],
    holder: Int[Array, "k"],
    cell: Int[Array, "n"],
    apart: Float[Array, "n"],
    id: Int[Array, "n"],
) -> Int[Array, "n"]:
    """The cell of each row that is farther out than all other rows there and what is held; k for the others.

    Of equally far ones it is that with the highest id, so that the order in which rows come changes nothing.
    """
    k = held.shape[0]
    most = held.at[cell].max(apart, mode="drop")
    leads = jnp.where(apart >= most.at[cell].get(mode="clip"), cell, k)
    newest = jnp.where(held >= most, holder, -1).at[leads].max(id, mode="drop")
    return jnp.where(newest.at[leads].get(mode="clip") == id, leads, k)


def _join(parts: list[Entries]) -> Entries:
    """The entries of all parts, in order."""
    return jax.tree.map(lambda *x: jnp.concatenate(x, axis=-1), *parts)


def _seated(empty: Elites, seat: Int[Array, "n"], groups: list[Elites]) -> Elites:
    """The rows of all groups at their seats; a row whose seat is beyond the last one is left out.

    A gather instead of a scatter: several times as fast on CPUs.
    """
    n, start, seated = len(seat), 0, empty
    row = jnp.full(empty.capacity, n, jnp.int32).at[seat].set(jnp.arange(n, dtype=jnp.int32), mode="drop")
    for group in groups:
        own = row - start
        here = (own >= 0) & (own < group.capacity)

        def chosen(rows: Array, before: Array, own: Int[Array, "m"] = own, here: Bool[Array, "m"] = here) -> Array:
            there = here.reshape(-1, *[1] * (rows.ndim - 1))
            return jnp.where(there, rows.at[own].get(mode="clip"), before)

        seated = jax.tree.map(chosen, group, seated)
        start += group.capacity
    return seated
