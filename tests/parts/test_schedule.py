"""When things are due."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vqelites import drive, schedule
from vqelites.algorithms import Effort, vq_elites
from vqelites.descriptors import VQVAE
from vqelites.tasks import PlanarArm


def moments(plan, iterations=None):
    return jax.vmap(plan.at)(jnp.arange(plan.iterations if iterations is None else iterations))


def due(plan, name, iterations=None):
    return (np.flatnonzero(np.asarray(getattr(moments(plan, iterations), name))) + 1).tolist()


def test_every_trains_after_each_interval_and_cooperates_first():
    plan = schedule.every(12, update_every=5, epochs=10, cooperate=3)
    assert due(plan, "learn") == [5, 10]
    assert due(plan, "cooperate") == [1, 2, 3]
    assert due(plan, "rebuild") == []
    assert set(np.asarray(moments(plan).epochs)) == {10}
    assert plan.learns


def test_a_frozen_map_is_trained_again_past_the_planned_end():
    """An update at the very end would leave no iteration to fill the cells that it empties."""
    plan = schedule.every(20, update_every=5, epochs=10, frozen=2)
    assert due(plan, "learn", 40) == [5, 10, 15, 25, 30, 35, 40]
    assert [i + 1 for i in plan.trainings(0, 40)] == due(plan, "learn", 40)


@pytest.mark.slow
def test_fewer_iterations_than_an_update_takes_still_train_on_the_bootstrap():
    """Nothing was ever trained, and nobody said so."""
    assert schedule.every(3, update_every=5, epochs=10).learns
    small = Effort(iterations=3, batch_size=8, bootstrap=16, bootstrap_epochs=2)
    qd = vq_elites(PlanarArm(joints=3, behavior="joints"), VQVAE((6,), 2, 8), effort=small)
    state, info = drive.Compiled(qd, PlanarArm(joints=3, behavior="joints")).begin(jnp.array([0]))
    assert (state.trainings[0], info.update.learn.epochs[0]) == (1, 2)


def test_growing_gaps_are_auroras():
    plan = schedule.growing_gaps(150, epochs=100)
    assert due(plan, "learn") == [1, 21, 51, 91, 141]
    assert due(plan, "rebuild") == list(range(10, 151, 10))


def test_a_training_is_not_followed_by_a_second_rebuild():
    plan = schedule.growing_gaps(60, epochs=1, first=10, gap=20, growth=0)
    assert due(plan, "learn") == [10, 30, 50]
    assert due(plan, "rebuild") == [20, 40, 60]


def test_never_is_never():
    plan = schedule.never(7)
    assert not plan.learns
    assert due(plan, "learn") == due(plan, "rebuild") == due(plan, "cooperate") == []


def test_progress_ends_at_one():
    progress = moments(schedule.every(4, update_every=2, epochs=1), 6).progress
    np.testing.assert_allclose(progress, [0.25, 0.5, 0.75, 1.0, 1.0, 1.0])


def test_past_the_planned_end_training_goes_on_in_its_rhythm():
    plan = schedule.every(12, update_every=5, epochs=3, cooperate=12)
    assert due(plan, "learn", 30) == [5, 10, 15, 20, 25, 30]
    assert due(plan, "cooperate", 30) == list(range(1, 13))


def test_aurora_past_the_planned_end_trains_neither_every_10_iterations_nor_never():
    """The last 10 iterations used to repeat, with or without a training among them."""
    for planned in (91, 100):
        plan = schedule.growing_gaps(planned, epochs=100)
        assert due(plan, "learn", 300) == [1, 21, 51, 91, 141, 201, 271]
        assert due(plan, "rebuild", 300) == list(range(10, 301, 10))


@given(first=st.integers(1, 50), gap=st.integers(1, 50), growth=st.integers(0, 20))
def test_a_rhythm_is_its_gaps_added_up(first, gap, growth):
    times, time, step = set(), first, gap
    while time <= 400:
        times.add(time)
        time, step = time + step, step + growth
    rhythm = schedule.Rhythm(first, gap, growth)
    assert set((np.flatnonzero(jax.vmap(rhythm.due)(jnp.arange(401)))).tolist()) == times
    assert list(rhythm.times(0, 401)) == sorted(times)
    assert list(rhythm.times(150, 300)) == sorted(time for time in times if 150 <= time < 300)


def test_a_rhythm_is_exact_after_a_hundred_million_iterations():
    time, step = 1, 20
    while time < 100_000_000:
        time, step = time + step, step + 10
    near = jnp.arange(time - 100, time + 101)
    assert near[jax.vmap(schedule.Rhythm(1, 20, 10).due)(near)].tolist() == [time]


@pytest.mark.parametrize(("iterations", "update_every"), [(0, 5), (10, 0), (-1, 1)])
def test_counts_below_one_are_refused(iterations, update_every):
    with pytest.raises(ValueError, match=">= 1, but got"):
        schedule.every(iterations, update_every=update_every, epochs=1)
