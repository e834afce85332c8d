"""Behavior of 8-bit levels is kept as it comes, and whatever is done with it, nothing differs from floats."""

import functools
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from asking import assert_same_archive

import vqelites
from vqelites import AskTell, VQElites, drive
from vqelites.algorithms import Effort, map_elites
from vqelites.levels import FLOATS
from vqelites.runs import verify
from vqelites.runs.files import RunError
from vqelites.runs.replay import compiled_again
from vqelites.tasks import PlanarArm, registry
from vqelites.types import in_floats

SMALL = {
    "solution_dim": 2,
    "cells": 12,
    "iterations": 6,
    "update_every": 2,
    "batch_size": 16,
    "bootstrap": 32,
    "bootstrap_epochs": 2,
    "epochs": 2,
}


def dot(solution, seed):
    """An 8-bit image of a dot on a board of 8x8 pixels, as a camera would take it."""
    x, y = np.clip(solution, -1, 1)
    axis = np.linspace(-1, 1, 8)
    light = np.exp(-((axis[:, None] - y) ** 2 + (axis[None, :] - x) ** 2) / 0.1)
    return -float(np.square(solution).sum()), np.round(255 * light).astype(np.uint8)[..., None]


def dot_in_floats(solution, seed):
    fitness, levels = dot(solution, seed)
    return fitness, levels / np.float32(255)


def held(state):
    """The arrays in 8 bits."""
    return [leaf for leaf in jax.tree.leaves(state) if leaf.dtype == np.uint8]


def test_levels_are_exactly_what_numpy_divides_them_into():
    levels = np.arange(256, dtype=np.uint8)
    exact = levels / np.float32(255)
    for floats in (FLOATS[levels], jax.jit(in_floats)(levels), jax.vmap(in_floats)(jnp.asarray(levels)[:, None])[:, 0]):
        np.testing.assert_array_equal(np.asarray(floats).view(np.uint32), exact.view(np.uint32))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same run twice: its images in 8 bits, and as floats."""
    folder = tmp_path_factory.mktemp("runs")
    start = functools.partial(vqelites.run, draw=False, **SMALL)
    return start(dot, out=folder / "levels"), start(dot_in_floats, out=folder / "floats")


@pytest.mark.slow
@pytest.mark.also_shipped
def test_a_run_on_8_bit_images_is_that_on_floats_bit_for_bit(runs):
    levels, floats = runs
    assert (levels.config.interface.eight_bit, floats.config.interface.eight_bit) == (True, False)
    for name in ("ids", "solutions", "fitness", "behavior", "descriptors", "cells"):
        one, other = (getattr(run.archive, name) for run in runs)
        np.testing.assert_array_equal(one, other, strict=True)
    groups = levels.state().archive.elites, levels.state().archive.fringe
    assert [group.behavior.dtype for group in groups] == [np.uint8, np.uint8]
    assert held(floats.state()) == []
    for one, other in zip(*(jax.tree.leaves(run.state()) for run in runs), strict=True):
        np.testing.assert_array_equal(in_floats(one), other)


@pytest.mark.slow
@pytest.mark.also_shipped
def test_such_a_run_is_resumed_replayed_and_taken_up_by_ask_and_tell(runs, tmp_path):
    levels, floats = runs
    replayed = verify.replay_all(levels)
    assert replayed.exact == replayed.elites == len(levels.archive)
    part = vqelites.run(dot, out=tmp_path / "part", draw=False, minutes=1e-6, **SMALL)
    assert part.iteration < 6
    whole = vqelites.resume(part.folder.path, dot, draw=False)
    np.testing.assert_array_equal(whole.archive.behavior, levels.archive.behavior)
    np.testing.assert_array_equal(whole.archive.descriptors, levels.archive.descriptors)
    taken = VQElites.load(levels.folder.path)
    np.testing.assert_array_equal(taken.archive.behavior, levels.archive.behavior, strict=True)
    rows = [dot(solution, 0) for solution in taken.ask(16)]
    taken.tell([fitness for fitness, _ in rows], np.stack([image for _, image in rows]))
    some = levels.archive.behavior[:3]
    for seen in (some, np.rint(255 * some).astype(np.uint8)):
        np.testing.assert_array_equal(levels.describe(seen), floats.describe(some))


class InLevels(PlanarArm):
    """The planar arm seen as an image of 8-bit levels."""

    eight_bit: ClassVar[bool] = True

    def evaluate(self, keys, solutions):
        found = super().evaluate(keys, solutions)
        return eqx.tree_at(lambda e: e.behavior, found, jnp.round(255 * found.behavior).astype(jnp.uint8))


def test_a_task_in_jax_may_have_8_bit_behavior_too():
    task = InLevels(pixels=8)
    qd = map_elites(task, task.cells, effort=Effort(iterations=3, batch_size=16, bootstrap=32))
    compiled = drive.Compiled(qd, task)
    state, _ = compiled.begin(jnp.arange(2))
    state, _ = compiled.advance(state, 0, 3)
    elites = state.archive.elites
    assert elites.behavior.dtype == np.uint8
    again = eqx.filter_jit(task.evaluate)(None, elites.solution[0]).behavior
    valid = np.asarray(elites.valid[0])
    assert valid.sum() > 5
    np.testing.assert_array_equal(again[valid], elites.behavior[0][valid])
    replayed = compiled_again(task, 0, elites.id[0], elites.solution[0], batch=16).behavior  # as users are given it
    np.testing.assert_array_equal(replayed[valid], FLOATS[np.asarray(elites.behavior[0])[valid]])


class Mistaken(PlanarArm):
    """Says that it has 8-bit behavior, but gives floats."""

    eight_bit: ClassVar[bool] = True


def test_a_task_in_jax_that_gives_floats_instead_is_refused(tmp_path):
    registry.register("mistaken-arm", "wrong")(Mistaken)
    with pytest.raises(RunError, match=r"'mistaken-arm' has eight_bit, so behavior must be uint8, but is float32"):
        vqelites.run("mistaken-arm", "map-elites", out=tmp_path / "run")
    qd = map_elites(Mistaken(), Mistaken().cells, effort=Effort(iterations=3, batch_size=16, bootstrap=32))
    with pytest.raises(TypeError, match="held in 8 bits, but came as float32"):
        drive.Compiled(qd, Mistaken()).begin(jnp.arange(1))


FLAT = {"truth_low": (-1, -1), "truth_high": (1, 1), "bins": (4, 4)}
PIXELS = np.random.default_rng(0).integers(0, 256, (8, 6, 6, 1), np.uint8)


def new():
    """Nothing is trained: only what is kept matters."""
    return AskTell("map-elites", solution_dim=3, behavior_shape=(6, 6, 1), bootstrap=16, batch_size=8, **FLAT)


def tell(qd, pictures):
    solutions = qd.ask(8)
    qd.tell(np.arange(8), pictures, truth=solutions[:, :2])


def told(qd, *batches):
    for pictures in batches:
        tell(qd, pictures)
    return qd


@pytest.mark.parametrize("first", [PIXELS, PIXELS / 255], ids=["levels", "floats"])
def test_what_is_told_first_says_how_images_are_kept(first, tmp_path):
    qd = new()
    qd.save(tmp_path / "run")  # when nobody knows yet
    told(qd, first, PIXELS / 255, PIXELS)
    assert bool(held(qd._now.state)) == (first.dtype == np.uint8)
    assert_same_archive(qd, told(new(), PIXELS / 255, PIXELS / 255, PIXELS / 255))
    assert qd.archive.behavior.dtype == np.float32
    qd.save(tmp_path / "run")
    loaded = AskTell.load(tmp_path / "run")
    assert_same_archive(told(loaded, PIXELS), told(qd, PIXELS))
    assert [leaf.dtype for leaf in held(loaded._now.state)] == [leaf.dtype for leaf in held(qd._now.state)]


def test_images_between_levels_are_refused_where_8_bits_are_kept_and_nothing_is_lost():
    qd = told(new(), PIXELS)
    solutions = qd.ask(8)
    with pytest.raises(ValueError, match=r"between 8-bit levels.*as uint8, or all as floats in one scale"):
        qd.tell(np.arange(8), PIXELS / 300, truth=solutions[:, :2])
    qd.tell(np.arange(8), PIXELS, truth=solutions[:, :2])
    assert qd.evaluations == 16


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The model has learned next to nothing")
def test_8_bit_behavior_to_begin_with_says_nothing_of_what_is_told():
    board = np.stack([dot(solution, 0)[1] for solution in np.random.default_rng(0).uniform(-1, 1, (40, 2))])
    for factor, kept in ((1 / 300, False), (1, True)):
        qd = VQElites(**SMALL | {"behavior_shape": (8, 8, 1), "bootstrap": board})
        qd.ask(16)
        qd.tell(np.arange(16), board[:16] * factor if factor < 1 else board[:16])
        assert bool(held(qd._now.state)) == kept


def test_whole_numbers_that_are_no_images_are_not_levels():
    qd = AskTell("map-elites", solution_dim=3, behavior_shape=(4,), bootstrap=16, batch_size=8, **FLAT)
    tell(qd, np.arange(32, dtype=np.uint8).reshape(8, 4))
    assert held(qd._now.state) == []
    assert qd.archive.behavior.max() == 31
