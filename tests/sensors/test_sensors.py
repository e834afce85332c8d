"""The promise for any sensor: with its defaults, VQ-Elites covers nearly what CVT-MAP-Elites does given the truth."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from puck import SENSORS, Puck
from sensors import FULL, Size, cvt_map_elites, override, vq_elites

from vqelites.experiments.presets import settings
from vqelites.metrics import coverage, outcomes, project

SMALL = Size(cells=150, iterations=20, batch_size=128, bootstrap=640)
SLACK = 0.05  # small runs have fewer samples to learn from
# Some seed of these is below the target, or hardly above it: see docs/results.md.
SHORT = {
    "black-on-white", "white-on-grey", "white-on-black", "white-on-black-16", "white-on-black-128", "bright-on-bright",
    "colour-on-picture", "large-blob", "twins", "series-units",
}  # fmt: skip


def keys(seed, count):
    return jax.random.split(jax.random.key(seed), count)


def check(name, seen, given, target):
    """No map collapses, and all but some sensors reach their target."""
    print(f"\n{name}: {seen}, given the truth {given.coverage}")
    share = seen.coverage.min() / np.median(given.coverage)
    assert share >= 0.5
    if name in SHORT and share < target:
        pytest.xfail(f"{name} reaches {share:.2f} of CVT-MAP-Elites, not yet {target:.2f}")
    assert share >= target


# With so little training the map of an image is rough, but none has collapsed (1 cell) or folded (half of them).
TINY = Size(cells=64, iterations=10, batch_size=64, bootstrap=384)  # all trainings are one program then
HARDEST = ["black-on-white", "thin-lines", "vector-units"]


@pytest.mark.parametrize("name", HARDEST)
def test_the_hardest_sensors_do_not_collapse_or_fold(name):
    given, seen = cvt_map_elites((0,), TINY), vq_elites(SENSORS[name], (0,), TINY)
    assert seen.coverage[0] >= 0.7 * given.coverage[0]
    assert seen.codes[0] >= 0.6 * TINY.cells


@pytest.mark.slow
@pytest.mark.shipped
@pytest.mark.parametrize("name", HARDEST)
def test_hard_sensors_in_small(name):
    given, seen = cvt_map_elites((0, 1, 2), SMALL), vq_elites(SENSORS[name], (0,), SMALL)
    check(name, seen, given, SENSORS[name].target - SLACK)


@pytest.mark.long
@pytest.mark.shipped
@pytest.mark.parametrize("name", SENSORS)
def test_every_sensor(name):
    """One seed of the benchmark, `python benchmarks/sensors.py`."""
    given, seen = cvt_map_elites((0, 1, 2), FULL), vq_elites(SENSORS[name], (0,), FULL)
    check(name, seen, given, SENSORS[name].target)


KINDS = ("vector", "series", "black-on-white", "colour-on-picture", "video")  # the others are variants of these


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in KINDS else pytest.mark.slow) for name in SENSORS]
)
def test_a_sensor_shows_where_the_puck_rests(name):
    """The puck rests at two places a bin apart; images stay in [0, 1]."""
    task = Puck(SENSORS[name])
    solutions = jnp.sqrt(jnp.array([0.5, 0.5 + 2 / 12]))[:, None] * jnp.ones((1, 6))
    seen = task.evaluate(keys(0, len(solutions)), solutions)
    np.testing.assert_allclose(seen.truth, [[0.5, 0.5], [0.5 + 2 / 12] * 2], atol=1e-6)
    assert seen.behavior.shape == (2, *task.behavior_shape)
    assert jnp.isfinite(seen.behavior).all()
    if len(task.behavior_shape) > 2:
        assert seen.behavior.min() >= 0
        assert seen.behavior.max() <= 1
    change = jnp.abs(seen.behavior[0] - seen.behavior[1]).max()
    contrast = jnp.abs(seen.behavior - seen.behavior.mean()).max()
    assert change > 0 if len(task.behavior_shape) < 3 else change > 0.1 * contrast


def test_random_blows_leave_much_of_the_table_empty():
    task = Puck(SENSORS["vector"])
    random = jax.random.uniform(jax.random.key(0), (6400, 6), minval=-1, maxval=1)
    seen = task.evaluate(keys(0, len(random)), random)
    assert coverage(project(task.bins, outcomes(seen.truth, seen.fitness))) < 0.75


def test_noise_is_new_in_every_evaluation():
    task, still = Puck(SENSORS["pixel-noise"]), jnp.zeros((2, 6))
    first, again, other = (task.evaluate(keys(i, 2), still).behavior for i in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert (first[0] != first[1]).any()


def test_pictures_in_8_bits_hold_whole_numbers():
    seen = Puck(SENSORS["colour-on-picture"]).evaluate(keys(0, 1), jnp.full((1, 6), 0.7)).behavior
    np.testing.assert_array_equal(seen, np.round(255 * seen).astype(np.uint8).astype(np.float32) / 255)


def test_settings_can_be_overridden_and_typos_are_errors():
    default = settings("sensors", "vq-elites")
    assert override(default, "epochs=20").epochs == 20
    assert override(default, "model.blur=0.1").model.blur == 0.1
    assert override(default, "model.networks=arm").model.networks == "arm"
    for wrong in ("model.blurr=1", "epochs", "mode.blur=1"):
        with pytest.raises(ValueError, match="Expected FIELD=VALUE"):
            override(default, wrong)
