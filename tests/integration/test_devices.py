"""Several devices, simulated on this machine, give what one gives."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites import Effort, map_elites, vq_elites
from vqelites.descriptors import VQVAE
from vqelites.drive import Compiled
from vqelites.tasks import PlanarArm

SEEDS = {"five runs over four devices": 5, "the solutions of one run": 1}


def computed(runs, learned):
    """What the elites are (runs, cells), after some iterations, of MAP-Elites or of VQ-Elites."""
    task = PlanarArm(behavior="joints")
    effort = Effort(iterations=20, batch_size=32, bootstrap=64, bootstrap_epochs=5)
    if learned:
        qd = vq_elites(task, VQVAE(task.behavior_shape, 2, 60), epochs=2, effort=effort)
    else:
        qd = map_elites(task, task.cells, effort=effort)
    programs = Compiled(qd, task)
    state, _ = programs.begin(jnp.arange(runs))
    state, _ = programs.advance(state, 0, 20)
    elites = jax.device_get(qd.archive.elites(state.archive))
    kept = {name: getattr(elites, name) for name in ("fitness", "id", "valid", "descriptor")}
    return {**kept, "trainings": state.trainings, "devices": len(state.iteration.sharding.device_set)}


@pytest.fixture(scope="module", params=[False, True], ids=["hand-coded", "learned"])
def on_four(request, tmp_path_factory):
    """Whether the map is learned, and the same in a process with four devices, by the number of runs."""
    folder = tmp_path_factory.mktemp("devices")
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    subprocess.run(
        [sys.executable, __file__, folder, *["learned"] * request.param],
        check=True,
        env={**os.environ, "XLA_FLAGS": flags.strip()},
    )
    return request.param, {runs: dict(np.load(folder / f"{runs}.npz")) for runs in SEEDS.values()}


@pytest.mark.slow
@pytest.mark.parametrize("runs", SEEDS.values(), ids=SEEDS)
def test_several_devices_give_what_one_gives(on_four, runs):
    learned, there = on_four
    alone, found = computed(runs, learned), there[runs]
    assert (alone["devices"], found["devices"]) == (1, 4)
    np.testing.assert_array_equal(found["trainings"], alone["trainings"])
    assert (alone["trainings"] == (4 if learned else 0)).all()
    np.testing.assert_array_equal(found["valid"], alone["valid"])
    assert alone["valid"].sum() > (40 if learned else 50) * runs
    np.testing.assert_array_equal(found["id"], alone["id"])
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if learned else {"rtol": 1e-5, "atol": 1e-6}
    for name in ("fitness", "descriptor"):
        np.testing.assert_allclose(found[name], alone[name], **tolerance, err_msg=name)


if __name__ == "__main__":
    for count in SEEDS.values():
        np.savez(os.path.join(sys.argv[1], f"{count}.npz"), **computed(count, "learned" in sys.argv[2:]))
