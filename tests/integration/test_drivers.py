"""The compiled, the host and the vmapped driver do the same; so do two runs of one seed."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites import drive
from vqelites.algorithms import Effort, aurora, aurora_plus, cvt_map_elites, map_elites, vq_elites
from vqelites.archives import UnstructuredArchive
from vqelites.dataset import Dataset
from vqelites.descriptors import VQVAE, AutoEncoder
from vqelites.tasks import PlanarArm
from vqelites.types import Evaluation

TASK = PlanarArm(joints=4, behavior="joints")
EFFORT = Effort(iterations=6, batch=16, bootstrap=32, bootstrap_epochs=3)
WINDOW = Dataset(window=32, archive=16)


def unstructured():
    return UnstructuredArchive(48, 32, initial=0.05)


ALGORITHMS = {
    "map-elites": lambda: map_elites(TASK, TASK.cells, effort=EFFORT),
    "cvt-map-elites": lambda: cvt_map_elites(TASK, 32, effort=EFFORT),
    "vq-elites": lambda: vq_elites(
        TASK, VQVAE(TASK.behavior_shape, 2, 32), update_every=2, epochs=2, dataset=WINDOW, reserve=16, effort=EFFORT
    ),
    "aurora": lambda: aurora(
        TASK, AutoEncoder(TASK.behavior_shape, 2, bounded=False), unstructured(), epochs=3, effort=EFFORT
    ),
    "aurora-plus": lambda: aurora_plus(
        TASK, AutoEncoder(TASK.behavior_shape, 2), unstructured(), epochs=3, cooperate=2, effort=EFFORT
    ),
}
LEARNED = ["vq-elites", "aurora", "aurora-plus"]


@eqx.filter_jit
def evaluate(solutions):
    return TASK.evaluate(jax.random.key(0), solutions)


def simulate(solutions):
    assert isinstance(solutions, np.ndarray)
    return Evaluation(*(np.asarray(x) for x in jax.tree.leaves(evaluate(solutions))))


def assert_close(a, b, rtol=2e-5, atol=2e-5):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=rtol, atol=atol), a, b)


def assert_same(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


def first(tree):
    return jax.tree.map(lambda x: x[0], tree)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_one_iteration_from_the_same_state_agrees_between_the_drivers(name):
    """Every kind of update included: iteration 0 trains AURORA, 1 trains VQ-Elites."""
    qd = ALGORITHMS[name]()
    begun, _ = drive.Compiled(qd, TASK).begin(jnp.arange(2))
    host = drive.Host(qd, simulate)
    for iteration in (0, 1):
        state = first(begun)
        by_host, host_info = host.step(state, iteration)
        moment = qd.schedule.at(iteration)
        by_jit, jit_info = eqx.filter_jit(drive.step)(qd, TASK, state, moment)
        both, vmap_info = drive.Compiled(qd, TASK).advance(jax.tree.map(jnp.copy, begun), iteration, 1)
        assert_close(by_host, by_jit)
        assert_close(first(both), by_jit)
        assert_close(host_info, jit_info)
        assert_close(first(first(jax.tree.map(lambda x: x, vmap_info))), jit_info)
        if name in LEARNED and bool(moment.learn):
            assert jit_info.update.learn.epochs > 0
            assert np.isfinite(jit_info.update.learn.loss)


@pytest.mark.parametrize("name", ["map-elites", "cvt-map-elites"])
def test_whole_runs_agree_for_hand_coded_descriptors(name):
    qd = ALGORITHMS[name]()
    compiled, _ = drive.Compiled(qd, TASK).begin(jnp.arange(3))
    compiled, _ = drive.Compiled(qd, TASK).advance(compiled, 0, 6)
    for seed in range(3):
        host = drive.Host(qd, simulate)
        state, _ = host.begin(seed)
        for iteration in range(6):
            state, _ = host.step(state, iteration)
        assert_close(jax.tree.map(lambda x, s=seed: x[s], compiled), state)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_same_seed_gives_the_same_result_bit_for_bit_and_another_seed_another(name):
    def run(seeds):
        runs = drive.Compiled(ALGORITHMS[name](), TASK)
        state, _ = runs.begin(jnp.asarray(seeds))
        return runs.advance(state, 0, 6)[0]

    assert_same(run([3, 4]), run([3, 4]))
    one, other = run([3, 4]), run([5, 6])
    assert (np.asarray(one.archive.elites.solution) != np.asarray(other.archive.elites.solution)).any()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_run_in_chunks_is_the_run_in_one_piece(name):
    runs = drive.Compiled(ALGORITHMS[name](), TASK)
    whole, _ = runs.advance(runs.begin(jnp.arange(1))[0], 0, 6)
    parts, _ = runs.advance(runs.begin(jnp.arange(1))[0], 0, 3)
    parts, _ = runs.advance(parts, 3, 3)
    assert_same(whole, parts)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_one_trace_per_configuration(name):
    """Later chunks, other seeds and other values of sweepable numbers reuse the compiled program."""
    traces = 0

    def counting(elites):
        nonlocal traces
        traces += 1
        return {}

    qd = ALGORITHMS[name]()
    runs = drive.Compiled(qd, TASK, counting)
    state, _ = runs.begin(jnp.arange(2))
    for start in (0, 2, 4):
        state, _ = runs.advance(state, start, 2)
    swept = eqx.tree_at(lambda q: q.variation.iso, qd, jnp.asarray(0.05))
    swept = eqx.tree_at(lambda q: q.fresh_until, swept, jnp.asarray(0.5))
    runs = drive.Compiled(swept, TASK, counting)
    state, _ = runs.begin(jnp.array([7, 8]))
    runs.advance(state, 0, 2)
    assert traces == 1
