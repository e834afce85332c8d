"""The unstructured archive against a plain-Python one that offers solutions one at a time."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from references.archives import (
    ABSENT,
    AmbiguousError,
    Outcome,
    Record,
    Unstructured,
    contents,
    counts,
    elites,
    outcomes,
)

from vqelites.archives.addition import Compete, Cooperate, Dominate, Scheduled
from vqelites.archives.neighbourhood import Entries
from vqelites.archives.unstructured import UnstructuredArchive
from vqelites.types import Elites, Sizes

SIZES = Sizes(solution=1, behavior=(2, 1), descriptor=2, truth=1)
BATCH, BATCHES, CAPACITY, NEIGHBOURS = 6, 4, 7, 3

fitnesses = st.sampled_from([-2.0, -0.5, 0.0, 0.5, 1.0])
# On a line the sums of distances are exact in float32, which novelty needs; on a lattice distances have more ties.
on_line = st.integers(0, 14).map(lambda a: (3 * a / 8, 4 * a / 8))
on_lattice = st.tuples(st.integers(0, 4), st.integers(0, 4)).map(lambda p: (p[0] / 4, p[1] / 4))
thresholds = st.sampled_from([1e-5, 0.25, 0.5, 0.7, 1.0])


def batches(positions):
    row = st.tuples(fitnesses, positions, st.booleans())
    return st.lists(st.lists(row, min_size=BATCH, max_size=BATCH), min_size=BATCHES, max_size=BATCHES)


archive = UnstructuredArchive(capacity=CAPACITY, target=5, neighbours=NEIGHBOURS)
empty = archive.init(SIZES, None)


@eqx.filter_jit
def insert(state, batch, rule, archive=archive):
    return archive.insert(state, batch, rule)


@eqx.filter_jit
def rebuild(state, stored, extra, archive=archive):
    return archive.rebuild(state, stored, None, extra)


@eqx.filter_jit
def steered(state, archive):
    """The threshold after one step of its control."""
    return archive.control(state).threshold


simple = [
    ("compete", Compete()),
    ("compete", Scheduled(Compete(), False)),
    ("drift", Compete(drift=True)),
    ("cooperate", Cooperate()),
    ("cooperate", Scheduled(Compete(), True)),
]
aurora = [
    ("dominate", Dominate()),
    ("dominate", Scheduled(Dominate(), False)),
    ("cooperate", Scheduled(Dominate(), True)),
]


def at(threshold, state=empty):
    """The state with another threshold."""
    return type(state)(state.elites, jnp.float32(threshold), state.calibrated, state.pairs)


def records(batches) -> list[list[Record]]:
    """Batches with distinct ids; about one row in eight is absent."""
    ids = itertools.count(1)
    return [[Record(i, f, p, ok or i % 4 > 0) for i, (f, p, ok) in zip(ids, b, strict=False)] for b in batches]


def same(state, reference) -> None:
    """Every slot holds the same solution."""
    found = contents(archive.elites(state))
    assert found == reference.entries + [None] * (CAPACITY - len(reference.entries))
    assert float(archive.filled(state)) == pytest.approx(len(reference.entries) / 5)


def agree(name, rule, batches, threshold):
    """Insert batches into both archives and compare every slot and every count."""
    state, reference = at(threshold), Unstructured(CAPACITY, threshold, NEIGHBOURS)
    for batch in records(batches):
        before = sum(e.fitness for e in reference.entries)
        try:
            steps, rows = reference.insert(batch, name)
        except AmbiguousError:
            assume(False)
        state, info = insert(state, elites(batch), rule)
        same(state, reference)
        assert counts(info) == steps
        assert outcomes(info) == rows
        status, (added, replaced, evicted) = [row.status for row in rows], steps
        assert (status.count(2), status.count(1)) == (added + evicted, replaced)
        assert all(row.status for row in rows if row.place >= 0)  # who stays was not rejected
        if not evicted:
            assert sum(row.gain for row in rows if row.status) == sum(e.fitness for e in reference.entries) - before
    return state, reference


@pytest.mark.parametrize(("name", "rule"), simple)
@given(batches(on_lattice), thresholds)
def test_a_batch_equals_one_by_one(name, rule, batches, threshold):
    agree(name, rule, batches, threshold)


@pytest.mark.parametrize(("name", "rule"), aurora)
@given(batches(on_line), thresholds)
def test_a_batch_equals_one_by_one_with_novelty(name, rule, batches, threshold):
    agree(name, rule, batches, threshold)


@given(batches(on_line), batches(on_line), st.randoms(use_true_random=False), thresholds)
def test_rebuilding_equals_adding_anew(batches, extras, random, threshold):
    state, reference = agree("compete", Compete(), batches, threshold)
    extra = [Record(-r.id, r.fitness, r.descriptor, r.valid) for r in records(extras)[0]]
    anew = [(3 * a / 8, 4 * a / 8) for a in random.choices(range(14), k=CAPACITY)]
    [stored] = archive.stored(state)
    described = dict(zip(stored.solution[:, 0].tolist(), anew, strict=True))
    try:
        expected = reference.rebuild(described, extra)
    except AmbiguousError:
        assume(False)
    state, lost = rebuild(state, [stored.described(jnp.array(anew))], elites(extra))
    same(state, reference)
    assert int(lost) == expected
    assert float(state.threshold) == np.float32(threshold)


def test_identical_descriptors_are_at_distance_zero_and_add_nothing():
    point = (0.1, 0.7)  # not exact in binary: an expanded square would see a distance here
    state, _ = insert(at(1e-5), elites([Record(1, 0.0, point)] * BATCH), Compete())
    assert int(state.elites.size) == 1
    state, info = insert(at(0.0, state), elites([Record(2, 0.0, point)] * BATCH), Compete())
    assert int(state.elites.size) == 1
    assert counts(info) == (0, 0, 0)
    assert outcomes(info) == [Outcome(0, 0.0, -1)] * BATCH


@pytest.mark.parametrize("rule", [Compete(), Cooperate(), Dominate()])
def test_an_absent_batch_changes_nothing(rule):
    state, _ = insert(empty, elites([Record(i, 0.0, (i, i)) for i in range(BATCH)]), rule)
    nobody = elites([Record(9, 9.0, (20.0 + i, 0.0), valid=False) for i in range(BATCH)])
    after, info = insert(state, nobody, rule)
    jax.tree.map(np.testing.assert_array_equal, after, state)
    assert counts(info) == (0, 0, 0)
    assert outcomes(info) == [ABSENT] * BATCH


def test_rows_that_want_the_same_slot_are_judged_in_turn():
    fitness = (1.0, 3.0, 2.0, 9.0, 3.0, 7.0)
    batch = [Record(i, f, (0.5, 0.5), valid=f < 9) for i, f in enumerate(fitness)]
    _, info = insert(empty, elites(batch), Compete())
    assert outcomes(info) == [(2, 1.0, -1), (1, 2.0, -1), (0, -1.0, -1), ABSENT, (0, 0.0, -1), (1, 4.0, 0)]
    assert counts(info) == (1, 2, 0)


def test_a_full_archive_evicts_the_less_fit_of_the_closest_pair():
    entries = [Record(i, float(-i), (x, 0.0)) for i, x in enumerate((0, 4, 8, 9, 12, 16, 20), start=1)]
    state, _ = insert(empty, elites(entries[:BATCH]), Compete())
    state, _ = insert(state, elites(entries[-BATCH:]), Compete())
    state, info = insert(state, elites([Record(50, -9.0, (30.0, 0.0))] * BATCH), Compete())
    assert counts(info) == (0, 0, 1)
    assert outcomes(info) == [Outcome(2, -9.0, 3)] + [Outcome(0, 0.0, -1)] * (BATCH - 1)
    assert [r.id for r in contents(archive.elites(state))] == [1, 2, 3, 50, 5, 6, 7]


def test_size_control_steers_the_threshold():
    steer = UnstructuredArchive(capacity=7, target=5, initial=0.5, minimum=0.3, maximum=0.6, k_csc=0.1)
    state = steer.init(SIZES, None)
    assert float(steered(state, steer)) == pytest.approx(0.3)  # 0.25, clipped
    state, _ = insert(state, elites([Record(i, 0.0, (i, i)) for i in range(7)]), Compete(), steer)
    assert float(steered(state, steer)) == pytest.approx(0.6)
    assert float(steered(at(0.4, state), steer)) == pytest.approx(0.4 * 1.2)


def test_steered_at_rebuilds_the_threshold_waits_for_the_size_to_answer():
    steer = UnstructuredArchive(capacity=7, target=5, initial=0.5, k_csc=0.1, steered_at="rebuild")
    state, _ = insert(steer.init(SIZES, None), elites([Record(i, 0.0, (i, i)) for i in range(7)]), Compete(), steer)
    assert float(steered(state, steer)) == pytest.approx(0.5)
    state, _ = rebuild(state, steer.stored(state), None, steer)
    assert float(state.threshold) == pytest.approx(0.5 * 1.2)


def test_strong_steering_in_every_iteration_empties_the_archive_bug():
    """AURORA+ with the paper's K_csc: ten steps of the threshold before a rebuild left 60 elites of 5,000."""
    smallest = {}
    for when in ("iteration", "rebuild"):
        steer = UnstructuredArchive(capacity=200, target=80, k_csc=1 / 80, maximum=1.0, steered_at=when)
        offer = jax.jit(lambda state, batch, steer=steer: steer.control(steer.insert(state, batch, Dominate())[0]))
        renew = jax.jit(lambda state, steer=steer: steer.rebuild(state, steer.stored(state), None, None)[0])
        state, random, sizes = steer.init(SIZES, None), np.random.default_rng(0), []
        for iteration in range(1, 151):
            points = [tuple(p) for p in random.uniform(-1, 1, (BATCH * 3, 2))]
            state = offer(state, elites([Record(i, 0.0, p) for i, p in enumerate(points)]))
            if iteration % 10 == 0:
                state = renew(state)
                sizes.append(int(state.elites.size))
        smallest[when] = min(sizes)
    assert smallest["iteration"] < 10
    assert smallest["rebuild"] > 30


@pytest.mark.parametrize(("rule", "again"), [("volume", False), ("vat", True)])
def test_the_threshold_can_follow_the_descriptors(rule, again):
    auto = UnstructuredArchive(capacity=7, target=5, threshold_rule=rule)
    angle, corners = 0.3, np.array([(0, 0), (4, 0), (0, 1), (4, 1)], float)
    turned = corners @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    batch = elites([Record(i, 0.0, tuple(p)) for i, p in enumerate(turned)])
    expected = {"volume": 0.5 * (4 / 5) ** 0.5, "vat": 17**0.5 / (25 * 5) ** 0.5}[rule]

    state, _ = rebuild(auto.init(SIZES, None), [Elites.empty(7, SIZES)], None, auto)
    assert float(state.threshold) == pytest.approx(1e-5)  # nothing to measure yet
    state, _ = insert(state, batch, Compete(), auto)
    state, _ = rebuild(state, auto.stored(state), None, auto)
    assert float(state.threshold) == pytest.approx(expected, rel=1e-5)
    wider = [state.elites.described(2 * state.elites.descriptor)]
    state, _ = rebuild(state, wider, None, auto)
    assert float(state.threshold) == pytest.approx(2 * expected if again else expected, rel=1e-5)


def test_five_thousand_images_need_well_under_a_gigabyte():
    sizes = Sizes(solution=114, behavior=(64, 64, 1), descriptor=2, truth=2)
    big = UnstructuredArchive(capacity=5000, target=2000)
    state = jax.eval_shape(lambda: big.init(sizes, None))
    batch = jax.eval_shape(lambda: Elites.empty(128, sizes))
    add = jax.jit(lambda s, b: big.insert(s, b, Dominate()), donate_argnums=0).lower(state, batch).compile()
    assert add.memory_analysis().temp_size_in_bytes < 20e6  # no copy of the behaviors, which are 82 MB
    again = jax.jit(lambda s: big.rebuild(s, big.stored(s), None, None)).lower(state).compile().memory_analysis()
    assert again.temp_size_in_bytes + again.output_size_in_bytes < 500e6


def test_seeds_can_be_vmapped():
    batch = elites([Record(i, float(i), (i / 2, 0.0)) for i in range(9)])
    two = jax.tree.map(lambda x: jnp.stack([x, x[::-1]]), batch)
    together = jax.vmap(lambda b: insert(at(0.6), b, Dominate()))(two)
    for i in range(2):
        alone = insert(at(0.6), jax.tree.map(lambda x, i=i: x[i], two), Dominate())
        jax.tree.map(np.testing.assert_array_equal, jax.tree.map(lambda x, i=i: x[i], together), alone)


def test_runs_side_by_side_do_not_search_for_evictions_nobody_wants(monkeypatch):
    """They did in every step: AURORA+ took half a second per iteration on a GPU."""
    searched, plain = [], Entries.distances

    def counted(self, point):
        jax.debug.callback(lambda _: searched.append(1), point)
        return plain(self, point)

    monkeypatch.setattr(Entries, "distances", counted)
    roomy = UnstructuredArchive(capacity=50, target=20, initial=0.3)
    places = np.random.default_rng(0).uniform(size=(2, 30, 2))
    # The first rows meet, so that later ones take places of others' partners, whose distances are then unknown.
    batch = jax.tree.map(
        lambda *x: jnp.stack(x), *[elites([Record(i, 0.0, tuple(p)) for i, p in enumerate(one)]) for one in places]
    )
    state = jax.tree.map(lambda x: jnp.stack([x, x]), roomy.init(SIZES, None))
    state, _ = jax.block_until_ready(jax.jit(jax.vmap(lambda s, b: roomy.insert(s, b, Cooperate())))(state, batch))
    jax.effects_barrier()
    assert (state.pairs.partner < 0).sum() > state.elites.valid.size - state.elites.valid.sum()  # some are unknown
    assert len(searched) == 2 * 30  # once for each newcomer of each run


@pytest.mark.parametrize(
    "options",
    [
        {"capacity": 1, "target": 1},
        {"capacity": 5, "target": 6},
        {"capacity": 5, "target": 0},
        {"capacity": 5, "target": 5, "neighbours": 0},
        {"capacity": 5, "target": 5, "threshold_rule": "guess"},
    ],
)
def test_misuse_is_explained(options):
    with pytest.raises(ValueError, match=r"expected.*got"):
        UnstructuredArchive(**options)
