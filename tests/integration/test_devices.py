"""Several devices, simulated on this machine, give what one gives."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites import Effort, map_elites
from vqelites.drive import Compiled
from vqelites.tasks import PlanarArm

SEEDS = {"five runs over four devices": 5, "the solutions of one run": 1}


def computed(runs):
    """Fitness and validity of the elites (runs, cells), and the ids, after some iterations."""
    task = PlanarArm()
    qd = map_elites(task, task.cells, effort=Effort(iterations=20, batch_size=32, bootstrap=64))
    programs = Compiled(qd, task)
    state, _ = programs.begin(jnp.arange(runs))
    state, _ = programs.advance(state, 0, 20)
    elites = jax.device_get(qd.archive.elites(state.archive))
    return {"fitness": elites.fitness, "ids": elites.id, "valid": elites.valid}, state


@pytest.fixture(scope="module")
def on_four(tmp_path_factory):
    """The same, in a process with four devices."""
    folder = tmp_path_factory.mktemp("devices")
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    subprocess.run([sys.executable, __file__, folder], check=True, env={**os.environ, "XLA_FLAGS": flags.strip()})
    return {runs: dict(np.load(folder / f"{runs}.npz")) for runs in SEEDS.values()}


@pytest.mark.long
@pytest.mark.parametrize("runs", SEEDS.values(), ids=SEEDS)
def test_several_devices_give_what_one_gives(on_four, runs):
    alone, found = computed(runs)[0], on_four[runs]
    assert found["devices"] == 4
    np.testing.assert_array_equal(found["valid"], alone["valid"])
    assert alone["valid"].sum() > 50 * runs
    np.testing.assert_array_equal(found["ids"], alone["ids"])
    np.testing.assert_allclose(found["fitness"], alone["fitness"], rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    for count in SEEDS.values():
        arrays, state = computed(count)
        used = len(state.iteration.sharding.device_set)
        np.savez(os.path.join(sys.argv[1], f"{count}.npz"), **arrays, devices=used)
