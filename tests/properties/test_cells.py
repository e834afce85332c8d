"""The cell archive against a plain-Python one that offers solutions one at a time."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from references.archives import ABSENT, AmbiguousError, Cells, Outcome, Record, contents, counts, elites, outcomes

from vqelites.archives.addition import Compete, Cooperate, Dominate, Scheduled
from vqelites.archives.base import InsertInfo
from vqelites.archives.cells import CellArchive
from vqelites.types import Elites, Sizes

SIZES = Sizes(solution=1, behavior=(2, 1), descriptor=2, truth=1)
BATCH, BATCHES = 6, 3
# Points on a line through the origin: sums of their distances are exact in float32.
CELLS = [(3 * a / 8, 4 * a / 8) for a in (0, 4, 8, 12, 12)]

fitnesses = st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0])
positions = st.integers(-1, 14).map(lambda a: (3 * a / 8, 4 * a / 8))
rows = st.lists(st.tuples(fitnesses, positions, st.booleans()), min_size=BATCH, max_size=BATCH)
batches = st.lists(rows, min_size=BATCHES, max_size=BATCHES)

archive = CellArchive(fringe=True)
insert = jax.jit(lambda state, batch, rule: archive.insert(state, batch, rule))
rebuild = jax.jit(lambda state, stored, cells, extra: archive.rebuild(state, stored, cells, extra))
empty = archive.init(SIZES, jnp.array(CELLS))
rules = {
    "compete": [Compete(), Scheduled(Compete(), False)],
    "drift": [Compete(drift=True), Scheduled(Compete(drift=True), False)],
    "cooperate": [Cooperate(), Scheduled(Compete(), True), Scheduled(Dominate(), True)],
    "dominate": [Dominate(), Scheduled(Dominate(), False)],
}
cases = [(name, rule) for name, group in rules.items() for rule in group]


def records(batches) -> list[list[Record]]:
    """Batches with consecutive ids; about one row in eight is absent."""
    ids = itertools.count(1)
    return [[Record(i, f, p, ok or i % 4 > 0) for i, (f, p, ok) in zip(ids, b, strict=False)] for b in batches]


def same(state, reference) -> None:
    """Every cell holds the same solution."""
    found = contents(archive.elites(state))
    assert found == reference.places
    assert contents(state.fringe) == reference.fringe
    assert float(archive.filled(state)) == pytest.approx(sum(e is not None for e in found) / len(CELLS))


def total(places: list[Record | None]) -> float:
    """The sum of all elites' fitness."""
    return sum(e.fitness for e in places if e is not None)


@pytest.mark.parametrize(("name", "rule"), cases)
@given(batches)
def test_a_batch_equals_one_by_one(name, rule, batches):
    state, reference = empty, Cells(CELLS)
    for batch in records(batches):
        before = list(reference.places)
        try:
            rows = reference.insert(batch, name)
        except AmbiguousError:
            assume(False)
        state, info = insert(state, elites(batch), rule)
        same(state, reference)
        changed = [old for old, new in zip(before, reference.places, strict=True) if old != new]
        assert counts(info) == (changed.count(None), len(changed) - changed.count(None), 0)
        assert outcomes(info) == rows
        stays = [row for row in rows if row.place >= 0]
        status = [row.status for row in stays]
        assert (status.count(2), status.count(1), status.count(0)) == counts(info)  # who stays was not rejected
        assert sum(row.gain for row in stays) == total(reference.places) - total(before)


@given(rows, st.permutations(range(BATCH)))
def test_competition_does_not_depend_on_order(rows, order):
    (batch,) = records([rows])
    shuffled = [batch[i] for i in order]
    states = [insert(empty, elites(b), Compete())[0].elites for b in (batch, shuffled)]
    np.testing.assert_array_equal(states[0].valid, states[1].valid)
    np.testing.assert_array_equal(states[0].fitness, states[1].fitness)


@given(batches, batches, st.randoms(use_true_random=False), st.booleans())
def test_rebuilding_keeps_the_fitter_and_the_outermost_of_the_others(batches, extras, random, move):
    def points(n: int) -> list[tuple[float, float]]:
        return [(3 * a / 8, 4 * a / 8) for a in random.choices(range(14), k=n)]

    state, reference = empty, Cells(CELLS)
    ids = records([*batches, *extras])
    for batch, extra in zip(ids[:BATCHES], ids[BATCHES:], strict=True):
        state, _ = insert(state, elites(batch), Compete())
        reference.insert(batch, "compete")
        stored = archive.stored(state)
        anew = [points(group.capacity) for group in stored]
        pairs = zip(stored, anew, strict=True)
        described = {s: p for group, at in pairs for s, p in zip(group.solution[:, 0].tolist(), at, strict=True)}
        stored = [group.described(jnp.array(at)) for group, at in zip(stored, anew, strict=True)]
        cells = points(len(CELLS)) if move else reference.cells
        state, lost = rebuild(state, stored, jnp.array(cells), elites(extra))
        assert int(lost) == reference.rebuild(described, cells, extra)
        same(state, reference)


def batch_of(*records: Record) -> Elites:
    """A batch of the usual size, so that nothing is compiled for one test alone."""
    return elites([*records, *[Record(0, 9.0, CELLS[0], valid=False)] * (BATCH - len(records))])


def test_rebuilding_without_change_loses_nothing():
    state, _ = insert(empty, batch_of(*[Record(i, 1.0, CELLS[i]) for i in range(4)]), Compete())
    again, lost = rebuild(state, archive.stored(state), None, None)
    assert int(lost) == 0
    jax.tree.map(np.testing.assert_array_equal, again, state)


def test_an_elite_displaced_by_an_extra_candidate_counts_as_lost_and_returns_later():
    state, _ = insert(empty, batch_of(Record(1, 0.0, CELLS[0])), Compete())
    state, lost = rebuild(state, archive.stored(state), state.cells, batch_of(Record(2, 1.0, CELLS[0])))
    assert int(lost) == 1
    assert contents(state.fringe)[0] == Record(1, 0.0, CELLS[0])
    *others, fringe = archive.stored(state)
    free = fringe.described(fringe.descriptor.at[0].set(jnp.array(CELLS[1])))
    state, lost = rebuild(state, [*others, free], None, None)
    assert int(lost) == 0
    assert [r and r.id for r in contents(archive.elites(state))][:2] == [2, 1]
    assert not state.fringe.valid.any()


def test_what_lost_farthest_from_its_centre_takes_the_cell_that_is_split_off():
    """The fittest are all on one side of a cell; the other side would else be reached anew from there."""
    near, far = (CELLS[0][0] - 0.1, CELLS[0][1]), (CELLS[0][0] + 0.4, CELLS[0][1])
    batch = batch_of(Record(1, 2.0, near), Record(2, 0.0, far), Record(3, 1.0, CELLS[0]))
    state, _ = insert(empty, batch, Compete())
    assert [r and r.id for r in contents(state.fringe)][:2] == [2, None]
    split = jnp.array([*CELLS[:-1], far])
    state, lost = rebuild(state, archive.stored(state), split, None)
    assert int(lost) == 0
    assert [r and r.id for r in contents(archive.elites(state))] == [1, *[None] * (len(CELLS) - 2), 2]


@pytest.mark.parametrize("rule", [Compete(), Cooperate(), Dominate()])
def test_an_absent_batch_changes_nothing(rule):
    state, _ = insert(empty, batch_of(Record(1, 0.0, CELLS[0])), rule)
    after, info = insert(state, batch_of(), rule)
    jax.tree.map(np.testing.assert_array_equal, after, state)
    assert counts(info) == (0, 0, 0)
    assert outcomes(info) == [ABSENT] * BATCH


def test_rows_that_want_the_same_cell_are_judged_as_if_each_came_alone():
    state, info = insert(empty, batch_of(*[Record(i, f, CELLS[1]) for i, f in enumerate((1.0, 3.0, -2.0))]), Compete())
    assert outcomes(info)[:3] == [Outcome(2, 1.0, -1), Outcome(2, 3.0, 1), Outcome(2, -2.0, -1)]
    assert counts(info) == (1, 0, 0)
    state, info = insert(state, batch_of(*[Record(i, f, CELLS[1]) for i, f in enumerate((3.0, 5.0, 4.0))]), Compete())
    assert outcomes(info)[:3] == [Outcome(0, 0.0, -1), Outcome(1, 2.0, 1), Outcome(1, 1.0, -1)]
    assert counts(info) == (0, 1, 0)
    # Who cooperates wins with a loss, and the last one stays.
    state, info = insert(state, batch_of(*[Record(i, f, CELLS[1]) for i, f in enumerate((1.0, 2.0))]), Cooperate())
    assert outcomes(info)[:2] == [Outcome(1, -4.0, -1), Outcome(1, -3.0, 1)]
    assert outcomes(info)[2:] == [ABSENT] * (BATCH - 2)


@given(batches)
def test_in_competition_the_sign_of_the_gain_is_the_decision(batches):
    state = empty
    for batch in records(batches):
        state, info = insert(state, elites(batch), Compete())
        for row, new in zip(outcomes(info), batch, strict=True):
            assert row == ABSENT if not new.valid else row.status == 2 or (row.status == 1) == (row.gain > 0)


def test_equal_fitness_keeps_the_incumbent_then_the_earliest():
    state, _ = insert(empty, batch_of(Record(1, 0.0, CELLS[0]), Record(2, 0.0, CELLS[0])), Compete())
    state, info = insert(state, batch_of(Record(3, 0.0, CELLS[0])), Compete())
    assert contents(archive.elites(state))[0].id == 1
    assert int(info.replaced) == 0


@pytest.mark.parametrize("rule", [Compete(), Dominate()])
def test_seeds_can_be_vmapped(rule):
    batch = batch_of(*[Record(i, float(i), CELLS[i % 3]) for i in range(BATCH)])
    two = jax.tree.map(lambda x: jnp.stack([x, x[::-1]]), batch)
    together = jax.vmap(lambda b: insert(empty, b, rule))(two)
    for i in range(2):
        alone = insert(empty, jax.tree.map(lambda x, i=i: x[i], two), rule)
        jax.tree.map(np.testing.assert_array_equal, jax.tree.map(lambda x, i=i: x[i], together), alone)


def test_outcomes_stack_in_a_scan():
    several = [batch_of(*[Record(i, float(i + j), CELLS[i % 2]) for i in range(4)]) for j in range(3)]
    step = lambda state, batch: archive.insert(state, batch, Compete())  # noqa: E731
    _, infos = jax.jit(lambda *b: jax.lax.scan(step, empty, jax.tree.map(lambda *x: jnp.stack(x), *b)))(*several)
    state = empty
    for i, batch in enumerate(several):
        state, info = insert(state, batch, Compete())
        jax.tree.map(np.testing.assert_array_equal, jax.tree.map(lambda x, i=i: x[i], infos), info)
    assert outcomes(InsertInfo.nothing()) == []


@pytest.mark.parametrize("eight_bit", [False, True])
@pytest.mark.parametrize("fringe", [False, True])
def test_inserting_into_a_donated_archive_of_images_copies_no_archive(fringe, eight_bit):
    """With a fringe all elites were copied twice: XLA was not sure that what is displaced is read before."""
    sizes = Sizes(114, (64, 64, 4 if eight_bit else 1), 2, 2, eight_bit)
    big = CellArchive(fringe=fringe)
    state = jax.eval_shape(lambda: big.init(sizes, jnp.zeros((2000, 2))))
    batch = jax.eval_shape(lambda: Elites.empty(128, sizes))
    for rule in (Compete(), Dominate()):
        compiled = jax.jit(big.insert, donate_argnums=0).lower(state, batch, rule).compile()
        assert compiled.memory_analysis().temp_size_in_bytes < 8e6  # the behaviors alone are 33 MB


@pytest.mark.parametrize(
    ("own", "learned"),
    [(None, None), (jnp.zeros((3, 4)), None), (None, jnp.zeros((0, 2)))],
)
def test_misuse_is_explained(own, learned):
    with pytest.raises(ValueError, match=r"expected.*got"):
        CellArchive(own).init(SIZES, learned)


def test_an_archive_with_cells_of_its_own_keeps_them_beside_a_codebook():
    own, codebook = CellArchive(jnp.array(CELLS)), jnp.zeros((7, 2))
    state = own.init(SIZES, codebook)
    np.testing.assert_array_equal(state.cells, jnp.array(CELLS))
    state, _ = own.rebuild(state, own.stored(state), codebook, None)
    np.testing.assert_array_equal(state.cells, jnp.array(CELLS))
