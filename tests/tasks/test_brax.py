"""Robots of Brax as tasks in JAX. They take long to compile, so most is looked at in the episodes of one robot."""

import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("brax", reason="needs the extra brax: pip install 'vqelites[brax]'")

from vqelites import BraxTask
from vqelites.tasks import registry

SMALL = {"steps": 12, "hidden": (4,), "moments": 5}
# Of Brax, which uses what MuJoCo has renamed, and broadcasts as it likes.
pytestmark = [pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture(autouse=True)
def _broadcasting():
    with jax.numpy_rank_promotion("allow"):
        yield


def tried(task, count=6):
    """What random solutions do, and their episodes."""
    keys = jax.random.split(jax.random.key(0), count)
    solutions = jax.vmap(task.space.random)(keys)
    return eqx.filter_jit(lambda task, keys, x: jax.vmap(task.both)(keys, x))(task, keys, solutions)


@pytest.fixture(scope="module")
def hopped():
    with jax.numpy_rank_promotion("allow"):
        task = BraxTask("hopper", behavior="path", steps=60, hidden=(4,), moments=5)
        return task, *tried(task, 16)


@pytest.mark.slow
def test_nothing_counts_after_a_fall(hopped):
    _, found, moments = hopped
    alive = np.asarray(moments.alive)
    lengths = alive.sum(axis=1)
    assert lengths.min() < 61  # some fall
    for row, length in enumerate(lengths.astype(int)):
        assert alive[row, :length].all()
        assert not moments.reward[row, length:].any()
        assert not moments.feet[row, length:].any()
        np.testing.assert_array_equal(
            moments.place[row, length:], np.broadcast_to(moments.place[row, -1], (61 - length, 3))
        )
    np.testing.assert_allclose(found.fitness, np.asarray(moments.reward).sum(axis=1), rtol=1e-5)


@pytest.mark.slow
def test_behavior_is_spread_over_the_episode_however_long(hopped):
    task, found, moments = hopped
    assert found.behavior.shape == (16, *task.behavior_shape)
    np.testing.assert_array_equal(found.behavior[:, 0], moments.place[:, 0])
    np.testing.assert_array_equal(found.behavior[:, -1], moments.place[:, -1])


@pytest.mark.slow
def test_the_truth_is_the_share_of_time_on_the_ground(hopped):
    task, found, moments = hopped
    assert (task.truth_low, task.truth_high) == ((0.0,), (1.0,))
    share = np.asarray(moments.feet)[:, 1:, 0].sum(axis=1) / (np.asarray(moments.alive).sum(axis=1) - 1)
    np.testing.assert_allclose(found.truth[:, 0], share, rtol=1e-6)
    assert 0 < share.mean() < 1  # it falls to the ground, and hops


@pytest.mark.slow
def test_sizes_of_every_robot():
    shapes = {
        "ant": ((5, 27), 4), "ant-omni": ((5, 27), 2), "halfcheetah": ((5, 17), 2), "walker2d-uni": ((5, 17), 2),
        "hopper-omni": ((5, 11), 1),
    }  # fmt: skip
    for subject, (shape, width) in shapes.items():
        task = BraxTask(subject, **SMALL)
        assert (task.behavior_shape, len(task.truth_low)) == (shape, width)
        assert len(task.cells) >= 900
        keys = jax.random.split(jax.random.key(0), 2)
        found = jax.eval_shape(task.evaluate, keys, jax.ShapeDtypeStruct((2, task.space.dim), jnp.float32))
        assert found.truth.shape == (2, width)
        assert found.behavior.shape == (2, *shape)


@pytest.mark.slow
def test_an_ant_that_goes_anywhere_is_not_paid_for_going_forward():
    one, other = BraxTask("ant-uni", **SMALL), BraxTask("ant-omni", **SMALL)
    (forward, moments), (anywhere, again) = tried(one), tried(other)
    np.testing.assert_allclose(moments.place, again.place, atol=1e-5)
    speed = np.diff(np.asarray(moments.place)[:, :, 0], axis=1) / one.env.dt
    paid = (speed * np.asarray(moments.alive)[:, 1:]).sum(axis=1)
    np.testing.assert_allclose(forward.fitness - anywhere.fitness, paid, atol=0.05)
    np.testing.assert_allclose(anywhere.truth, again.place[:, -1, :2])
    assert forward.truth.shape == (6, 4)


@pytest.mark.slow
def test_the_name_says_all_that_a_task_is_made_of():
    task = BraxTask("ant-omni", behavior="feet contact", **SMALL)
    assert task.name == "brax:ant-omni,behavior=feet contact,moments=5,hidden=4x,steps=12"
    again = registry.make(task.name)
    assert again.options == task.options
    assert again.behavior_shape == (5, 4)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("brax:antt-omni", "no robot 'antt'.*Did you mean ant"),
        ("brax:ant-everywhere", "must end in -uni .* or -omni"),
        ("brax:ant,behavior=feet contacts", "Did you mean 'feet contact'"),
        ("brax:ant,steps=0", "steps must be a whole number of at least 1"),
        ("brax:ant,backend=springs", "Did you mean 'spring'"),
    ],
)
def test_names_that_are_wrong_say_how(name, message):
    with pytest.raises(ValueError, match=message):
        registry.make(name)


def test_an_option_that_is_not_there_suggests_the_nearest():
    with pytest.raises(TypeError, match=r"BraxTask has no option 'stepps'\. Did you mean steps"):
        BraxTask("ant", stepps=4)


def test_without_brax_the_extra_is_named():
    code = "import sys; sys.modules['brax'] = None; import vqelites; vqelites.BraxTask"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 'pip install "vqelites[brax]"' in done.stderr.splitlines()[-1]
