"""Variation operators, selection and the solution space."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vqelites.algorithms import Effort, map_elites
from vqelites.tasks import PlanarArm
from vqelites.types import Elites, SolutionSpace
from vqelites.variation import Gaussian, IsoLine, SBXPolynomial, fittest, uniform_rows

SPACE = SolutionSpace(4)
OPERATORS = [IsoLine(), Gaussian(), SBXPolynomial()]


def children(operator, parent, mate, count=4000, seed=0):
    keys = jax.random.split(jax.random.key(seed), count)
    return np.asarray(jax.vmap(lambda key: operator.child(key, parent, mate, SPACE))(keys))


def test_isoline_moves_along_the_line_to_the_mate_by_one_scalar_per_child():
    parent, mate = jnp.zeros(4), jnp.array([1.0, 2.0, 0.0, 0.0])
    made = children(IsoLine(iso=0.0, line=0.2), parent, mate)
    np.testing.assert_allclose(made[:, 1], 2 * made[:, 0], rtol=1e-5)
    assert (made[:, 2:] == 0).all()
    assert made[:, 0].std() == pytest.approx(0.2, rel=0.05)


def test_isoline_adds_noise_of_the_stated_width_around_the_parent():
    parent = jnp.array([1.0, -1.0, 0.5, 0.0])
    made = children(IsoLine(iso=0.01, line=0.2), parent, parent)
    np.testing.assert_allclose(made.std(axis=0), 0.01, rtol=0.06)
    np.testing.assert_allclose(made.mean(axis=0), parent, atol=1e-3)


def test_gaussian_ignores_the_mate():
    made = children(Gaussian(sigma=0.3), jnp.zeros(4), jnp.full(4, 9.0))
    np.testing.assert_allclose(made.std(axis=0), 0.3, rtol=0.06)
    np.testing.assert_allclose(made.mean(axis=0), 0, atol=0.02)


def test_sbx_keeps_the_mean_of_the_parents_where_nothing_mutates():
    parent, mate = jnp.zeros(4), jnp.ones(4)
    made = children(SBXPolynomial(mutation_rate=0.0), parent, mate)
    # The contracting and the expanding half are symmetric in log spread, so children stay near their first parent.
    assert np.abs(np.median(made, axis=0)).max() < 0.02
    assert 0.02 < made.std() < 0.2


def test_polynomial_mutation_touches_the_stated_share_of_parameters_within_one_width():
    made = children(SBXPolynomial(mutation_rate=0.25), jnp.zeros(4), jnp.zeros(4))
    assert (made != 0).mean() == pytest.approx(0.25, abs=0.02)
    assert np.abs(made).max() <= 2.0  # the width of [-1, 1]


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda o: type(o).__name__)
def test_children_differ_with_their_key_and_repeat_with_it(operator):
    parent, mate = jnp.zeros(4), jnp.ones(4)
    first, again, other = (children(operator, parent, mate, 8, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert len(np.unique(first, axis=0)) == 8


@given(st.lists(st.booleans(), min_size=6, max_size=6).filter(any))
def test_selection_only_draws_valid_rows_each_equally_often(valid):
    valid = np.array(valid)
    rows = np.asarray(uniform_rows(jax.random.uniform(jax.random.key(0), (3000, 2)), jnp.asarray(valid)))
    counts = np.bincount(rows.ravel(), minlength=6)
    assert (counts[~valid] == 0).all()
    np.testing.assert_allclose(counts[valid] / counts.sum(), 1 / valid.sum(), atol=0.03)


def test_selection_reaches_the_first_and_the_last_valid_row_and_never_beyond():
    """0.99999994 times a large count rounds up to the count itself in float32."""
    valid = jnp.ones(20_000_000, bool).at[0].set(False)
    ends = jnp.array([[0.0, np.nextafter(np.float32(1), np.float32(0))]])
    np.testing.assert_array_equal(uniform_rows(ends, valid), [[1, 19_999_999]])


@given(
    st.lists(st.sampled_from([-1.0, 0.0, 2.0, 2.5]), min_size=5, max_size=5),
    st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=4),
)
def test_a_tournament_is_won_by_the_fittest_and_of_equals_by_the_first_drawn(fitness, drawn):
    winners = fittest(jnp.asarray([drawn]), jnp.asarray(fitness))
    np.testing.assert_array_equal(winners, [[max(rows, key=lambda row: fitness[row]) for rows in drawn]])


@pytest.mark.parametrize("size", [1, 2, 4])
def test_parents_are_the_fittest_of_so_many_elites(size):
    """The fittest quarter of the elites is drawn at least once in `size` draws, or not: 1 - (3/4)^size."""
    task = PlanarArm(joints=3)
    qd = map_elites(task, task.cells, effort=Effort(tournament=size, fresh_until=0.0, variation=Gaussian(0.0)))
    ask = eqx.filter_jit(qd.ask)
    state, trials = ask(eqx.filter_jit(qd.init)(0), 512)
    evaluation = eqx.filter_jit(task.evaluate)(jax.random.split(jax.random.key(0), 512), trials.solution)
    state, _ = eqx.filter_jit(qd.tell)(state, trials, evaluation, qd.schedule.at(0))
    state = eqx.tree_at(lambda s: s.seeds, state, Elites.empty(0, qd.sizes))  # as if the bootstrap were over
    elites = jax.device_get(qd.archive.elites(state.archive))
    fitness = {solution.tobytes(): f for solution, f in zip(elites.solution, elites.fitness, strict=True)}
    limit = np.quantile(elites.fitness[elites.valid], 0.75)
    _, children = ask(state, 4000)
    fit = np.mean([fitness[child.tobytes()] >= limit for child in np.asarray(children.solution)])
    assert abs(fit - (1 - 0.75**size)) < 0.04


def test_a_batch_or_tournament_of_nobody_is_refused():
    task = PlanarArm(joints=3)
    for effort in (Effort(tournament=0), Effort(batch_size=0), Effort(bootstrap=-1)):
        with pytest.raises(ValueError, match="tournament >= 1"):
            map_elites(task, task.cells, effort=effort)


def test_space_random_solutions_fill_their_range_and_children_are_clipped_only_if_bounded():
    low, high = [-1.0, 0.0], [1.0, 0.5]
    space = SolutionSpace(2, low, high, bounded=True)
    drawn = np.asarray(jax.vmap(space.random)(jax.random.split(jax.random.key(0), 2000)))
    assert (drawn >= low).all()
    assert (drawn <= high).all()
    np.testing.assert_allclose(drawn.mean(axis=0), [0, 0.25], atol=0.05)
    np.testing.assert_array_equal(space.clip(jnp.array([3.0, -3.0])), [1.0, 0.0])
    np.testing.assert_array_equal(SolutionSpace(2, low, high).clip(jnp.array([3.0, -3.0])), [3.0, -3.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [((0,), "at least one parameter"), ((2, 1.0, 1.0), "low < high"), ((2, -np.inf, 1.0), "finite")],
)
def test_a_bad_space_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        SolutionSpace(*arguments)
