"""Tasks by name."""

import sys

import jax
import numpy as np
import pytest

from vqelites.runs import taskfiles
from vqelites.tasks import PlanarArm, registry

SIZES = {  # parameters, behavior, cells of MAP-Elites, bins that count
    "mobile-free": (114, (64, 64, 1), 2025, 900),
    "mobile-l": (114, (64, 64, 1), 2025, 577),
    "arm": (1478, (6,), 1500, 400),
    "arm-constrained": (1478, (6,), 1500, 400),
    "minigrid": (7893 + 16 * 4, (18, 18, 3), 324, 203),
    "planar-arm": (8, (16,), 900, 208),
}


@pytest.mark.parametrize("name", SIZES)
def test_every_task_has_its_sizes_and_evaluates_what_it_says(name):
    task = registry.make(name)
    sizes = (task.space.dim, task.behavior_shape, task.cells.shape[0], int(task.bins.reachable.sum()))
    assert sizes == SIZES[name]
    solutions = jax.vmap(task.space.random)(jax.random.split(jax.random.key(0), 4))
    result = jax.jit(lambda x: task.evaluate(jax.random.split(jax.random.key(0), len(x)), x))(solutions)
    assert result.fitness.shape == (4,)
    assert result.behavior.shape == (4, *task.behavior_shape)
    assert result.truth.shape == (4, len(task.truth_low))
    assert bool(result.finite.all())
    assert (np.asarray(result.truth) >= np.array(task.truth_low, np.float32)).all()
    assert (np.asarray(result.truth) <= np.array(task.truth_high, np.float32)).all()


def test_the_built_in_tasks_are_those():
    assert registry.names()[: len(SIZES)] == list(SIZES)


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(ValueError, match="Did you mean mobile-free"):
        registry.make("mobil-free")
    with pytest.raises(ValueError, match="Known tasks: mobile-free, "):
        registry.make("xyz")


def test_users_add_a_task_of_their_own():
    @registry.register("short-arm", "three joints")
    def short_arm():
        return PlanarArm(joints=3, behavior="joints")

    assert registry.make("short-arm").space.dim == 3
    assert registry.summary("short-arm") == "three joints"
    with pytest.raises(ValueError, match="already a task"):
        registry.register("short-arm", "again")(short_arm)


def test_a_simulator_without_its_size_is_told_how_to_say_it():
    """Without brackets it was "simulator() takes 0 positional arguments but 1 was given"."""
    for wrong in (lambda: registry.simulator(print), lambda: registry.simulator(low=0)):
        with pytest.raises(TypeError, match=r"@vqelites\.simulator\(solution_dim=N\)"):
            wrong()


@pytest.mark.parametrize("time", [1, 2])
def test_what_one_test_registers_is_unknown_to_the_next(time, tmp_path):
    """It made other tests fail, depending on which ran before them in the same process."""
    (tmp_path / "mine.py").write_text("import vqelites\nvqelites.simulator(name='mine', solution_dim=2)(print)\n")
    before = len(taskfiles._NAMES)
    taskfiles.load_task_file(tmp_path / "mine.py")
    assert taskfiles._NAMES[before:] == ["mine"]
    assert taskfiles._NAMES.count("mine") == registry.names().count("mine") == 1


def test_a_task_file_may_import_its_neighbours_as_a_script_may(tmp_path, monkeypatch):
    """It was an error unless the folder was on the path of modules already."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "neighbour_of_a_task.py").write_text("NAME = 'with help'\n")
    text = (
        "import neighbour_of_a_task as it\nimport vqelites\nvqelites.simulator(name=it.NAME, solution_dim=2)(print)\n"
    )
    (tmp_path / "mine.py").write_text(text)
    taskfiles.load_task_file(tmp_path / "mine.py")
    assert "with help" in registry.names()
