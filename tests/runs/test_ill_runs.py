"""Runs of tasks and maps that are ill, and settings that do not fit: what is said of them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

import vqelites
from vqelites.descriptors import vqvae
from vqelites.runs import commands
from vqelites.runs.events import Note
from vqelites.runs.files import RunError
from vqelites.tasks import PlanarArm, registry
from vqelites.types import Evaluation


class Flaky(PlanarArm):
    """Every solution that bends its first joint far has no fitness."""

    def evaluate(self, keys, solutions):
        result = super().evaluate(keys, solutions)
        fitness = jnp.where(solutions[:, 0] > 0.5, jnp.nan, result.fitness)
        return Evaluation(fitness, result.behavior, result.truth)


class Misshapen(PlanarArm):
    """Says 16 numbers and returns 15."""

    def evaluate(self, keys, solutions):
        result = super().evaluate(keys, solutions)
        return Evaluation(result.fitness, result.behavior[:, 1:], result.truth)


class Constant(PlanarArm):
    """All solutions do the same."""

    def evaluate(self, keys, solutions):
        result = super().evaluate(keys, solutions)
        return Evaluation(result.fitness, jnp.full_like(result.behavior, 0.3), result.truth)


class Deaf(PlanarArm):
    """Records nothing but noise."""

    def __init__(self):
        super().__init__(behavior="joints")
        self.behavior_shape = (200,)

    def evaluate(self, keys, solutions):
        result = super().evaluate(keys, solutions)
        noise = jax.vmap(lambda key: jax.random.normal(key, (200,)))(keys)
        return Evaluation(result.fitness, noise, result.truth)


class Camera(PlanarArm):
    """Sees images in the order of another library."""

    def __init__(self):
        super().__init__(behavior="joints")
        self.behavior_shape = (3, 28, 40)

    def evaluate(self, keys, solutions):
        result = super().evaluate(keys, solutions)
        return Evaluation(result.fitness, jnp.zeros((len(solutions), 3, 28, 40)), result.truth)


registry.register("camera-arm", "channels first")(Camera)
registry.register("constant-arm", "stuck")(lambda: Constant(behavior="joints"))
registry.register("deaf-arm", "noise")(Deaf)
registry.register("flaky-arm", "with holes")(lambda: Flaky(behavior="joints"))
registry.register("misshapen-arm", "wrong")(lambda: Misshapen(behavior="joints"))


def small(task, tmp_path, algorithm="map-elites", changes=None, **options):
    settings = replace(tiny.config(algorithm, iterations=10).settings, **changes or {})
    return vqelites.run(task, algorithm, settings=settings, out=tmp_path / task, draw=False, **options)


def notes_of(events):
    return [event.text for event in events if isinstance(event, Note)]


def test_evaluations_kept_out_are_counted_and_reported(tmp_path):
    events = []
    run = small("flaky-arm", tmp_path, observe=events.append)
    task = run.task
    assert 0 < run.rejected < 64 + 10 * 16
    assert not (run.archive.solutions[:, 0] > 0.5).any()
    notes = notes_of(events)
    assert notes == [f"{run.rejected} evaluations failed or not finite, kept out of {run.folder.path}."]
    assert notes[0] in (run.folder.path / "log.txt").read_text()
    assert isinstance(task, Flaky)


@pytest.mark.slow
def test_behaviors_that_are_all_alike_are_said_once(tmp_path):
    events = []
    run = small("constant-arm", tmp_path, "vq-elites", observe=events.append)
    (note,) = notes_of(events)
    assert note.startswith(f"{run.folder.path}: All behaviors stored after 64 evaluations are alike")
    assert note in (run.folder.path / "log.txt").read_text()
    assert len(run.archive) == 1


@pytest.mark.slow
def test_a_model_that_has_learned_nothing_is_said_once(tmp_path):
    events, tiny_run = [], tiny.config("aurora").settings
    many = {"search": replace(tiny_run.search, iterations=10, bootstrap=512)}
    many["model"] = replace(tiny_run.model, bootstrap_epochs=100, minibatch=128)
    run = small("deaf-arm", tmp_path, "aurora", many, observe=events.append)
    (note,) = notes_of(events)
    assert note.startswith(f"{run.folder.path}: The model has learned next to nothing")
    assert note in (run.folder.path / "log.txt").read_text()


@pytest.mark.long
def test_restarts_of_the_map_are_said_once_and_counted_at_the_end(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(vqvae, "collapsed", lambda behaviors, code, codes: jnp.array(True))
    events = []
    run = small("planar-arm", tmp_path, "vq-elites", {"cells": 23}, observe=events.append)
    first, last = notes_of(events)
    assert "The map had collapsed" in first
    # The bootstrap and iteration 5; in the last tenth of the run the map is frozen.
    assert last == f"Restarts of a collapsed map in {run.folder.path}: 2."
    assert list(run.metrics["restarted"]) == [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    commands.show(run.folder.path)
    assert "Restarts after a collapse: 2." in capsys.readouterr().out


def test_a_task_that_breaks_its_promise_is_refused_before_any_work(tmp_path):
    with pytest.raises(RunError, match=r"'misshapen-arm' returns behavior of shape \(2, 15\).*should be \(2, 16\)"):
        small("misshapen-arm", tmp_path)
    assert not (tmp_path / "misshapen-arm").exists()


def test_settings_of_another_algorithm_are_refused(tmp_path):
    with pytest.raises(ValueError, match="aurora takes AuroraSettings, not MapElitesSettings"):
        vqelites.run("planar-arm", "aurora", settings=tiny.config("map-elites").settings, out=tmp_path / "x")


@pytest.mark.parametrize("known", [{}, {"behavior_shape": (3, 28, 40), "truth_dim": 0}])
def test_channels_first_are_refused_in_runs_too_whether_said_or_found_out(tmp_path, known):
    def camera(solution, seed):
        return 0.0, np.zeros((3, 28, 40))

    with pytest.raises(RunError, match=r"channels first.*\(28, 40, 3\)"):
        vqelites.run(camera, solution_dim=2, out=tmp_path / "run", **known)
    assert not (tmp_path / "run").exists()


def test_a_task_in_jax_with_channels_first_is_refused(tmp_path):
    with pytest.raises(RunError, match="channels first"):
        small("camera-arm", tmp_path)
