"""The ask/tell class says when its map is ill, how it sees behavior, and shares its defaults with the command line."""

import re
import warnings
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from asking import new, run, simulate

from vqelites import AskTell, VQElites, vq_elites
from vqelites.archives.base import InsertOutcome
from vqelites.descriptors import VQVAE
from vqelites.diagnosis import diagnoses
from vqelites.drive import Piece, Position, StepInfo
from vqelites.drive.bundle import Bundle
from vqelites.experiments.build import build
from vqelites.experiments.config import VQElitesSettings
from vqelites.experiments.presets import settings
from vqelites.loop import TellInfo, UpdateInfo
from vqelites.optimizer import Told
from vqelites.tasks import PlanarArm

HEALTHY = {
    "evaluations": 640, "behaviors": 600, "codes_used": 200.0, "saturated": 0.0, "restarted": False,
    "unexplained": 0.2, "latent": 2, "cells": 300,
}  # fmt: skip


@pytest.mark.parametrize(
    ("numbers", "kinds", "words"),
    [
        ({}, [], ""),
        ({"codes_used": float("nan"), "saturated": float("nan")}, [], ""),  # no codes: AURORA
        ({"behaviors": 0, "codes_used": 0.0}, [], ""),  # nothing is stored
        ({"behaviors": 3, "codes_used": 3.0}, [], ""),
        ({"saturated": 0.9}, [], ""),
        ({"behaviors": 1, "codes_used": 1.0}, ["alike"], "after 640 evaluations are alike.*seems to be constant"),
        (
            {"codes_used": 4.0},
            ["few codes"],
            "600 distinct behaviors share 4 of 300 codes.*2 latent numbers are too few",
        ),
        ({"codes_used": 4.0, "latent": 1}, ["few codes"], "1 latent number is too few"),
        ({"codes_used": 4.0, "saturated": 0.8}, ["few codes"], "80% of the descriptors are at the limits.*bootstrap"),
        ({"restarted": True}, ["restarted"], "collapsed.*begun anew.*if that happens often"),
        ({"restarted": True, "codes_used": 4.0}, ["restarted"], "begun anew"),
        ({"unexplained": 0.9}, [], ""),
        ({"unexplained": float("nan")}, [], ""),  # another loss than the squared error
        ({"unexplained": 0.97}, ["nothing learned"], "next to nothing: it explains 3% of the variance.*noise"),
        ({"unexplained": 1.3, "latent": 1}, ["nothing learned"], "explains 0%.*1 latent number is too few"),
        ({"unexplained": 1.3, "behaviors": 1, "codes_used": 1.0}, ["alike"], "constant"),
        ({"unexplained": 1.3, "restarted": True}, ["restarted"], "begun anew"),  # of the map that was given up
        ({"evaluations": 0, "behaviors": 1, "codes_used": 1.0}, ["alike"], "All behaviors to start from are alike"),
    ],
)
def test_illnesses_and_their_words(numbers, kinds, words):
    found = diagnoses(**HEALTHY | numbers)
    assert list(found) == kinds
    assert re.search(words, " ".join(found.values()))


def test_a_constant_behavior_is_said_once():
    qd = new()

    def tell():
        qd.ask(16)
        return qd.tell(np.arange(16), np.full((16, 4), 3.7))

    tell()
    with pytest.warns(RuntimeWarning, match="after 32 evaluations are alike"):
        tell()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        told = [tell() for _ in range(4)][-1]
    assert (told.behaviors, told.codes_used, told.restarted) == (1, 1, 0)
    assert len(qd.archive) == 1


def test_told_says_how_the_map_is_where_it_was_trained():
    qd = new()
    first, second = (qd.tell(*simulate(qd.ask(16))) for _ in range(2))
    assert first.trainings == 0
    assert np.isnan([first.codes_used, first.perplexity, first.saturated]).all()
    assert (first.moved, first.restarted, first.behaviors) == (0, 0, 0)
    assert second.behaviors == 32
    assert 1 < second.perplexity <= second.codes_used <= 24
    assert 0 <= second.saturated <= 1


def test_told_of_several_trainings_adds_what_happened_and_keeps_the_last_state():
    def piece(trained, **numbers):
        update = UpdateInfo.nothing()
        learn = eqx.tree_at(lambda info: info.epochs, update.learn, jnp.array(int(trained)))
        update = UpdateInfo(learn, replace(update.map, **numbers), update.lost)
        step = StepInfo(TellInfo.nothing(), update, {})
        return Piece(Bundle.of(step), Bundle.of(InsertOutcome.nothing()), slice(0, 0), None)

    one = piece(True, behaviors=5, codes_used=3.0, moved=1, restarted=True)
    two = piece(True, behaviors=9, codes_used=7.0, moved=2, restarted=True)
    none = piece(False)
    for pieces in ((one, two), (one, two, none), (none, one, two)):
        told = Told(pieces)
        assert (told.trainings, told.moved, told.restarted) == (2, 3, 2)
        assert (told.behaviors, told.codes_used) == (9, 7.0)


def test_a_collapsed_map_is_begun_anew_and_says_so():
    """Its descriptors are all but constant: it is given axes that see nothing."""
    qd = run(new(), 2)
    model = qd._now.state.descriptor.model
    blind = jax.tree.map(lambda x: 0 * x if eqx.is_inexact_array(x) else x, model.coder)
    blind = eqx.tree_at(lambda c: c.seen, blind, model.coder.seen)
    ill = eqx.tree_at(lambda s: s.descriptor.model.coder, qd._now.state, blind)
    qd._now = replace(qd._now, at=Position.of(ill))
    with pytest.warns(RuntimeWarning, match=r"had collapsed.*begun anew from all stored behaviors"):
        reports = [qd.tell(*simulate(qd.ask(16))) for _ in range(4)]
    assert [report.restarted for report in reports] == [0, 1, 0, 0]
    assert reports[-1].codes_used > 5


def test_what_the_map_chose_can_be_read():
    qd = new()
    assert qd.chosen is None
    assert run(qd, 2).chosen == ("same", None)
    for scale, offset, units in (([1, 1e3, 1e-3, 1], 0, "mixed"), ([1, 1, 1, 0], [0, 0, 0, 1e6], "same")):
        other = new()
        fitness, behavior = simulate(other.ask(32))
        other.tell(fitness, behavior * scale + offset)
        assert other.chosen.units == units


@pytest.mark.slow
def test_the_blur_through_which_images_are_seen_can_be_read():
    image = new(behavior_shape=(6, 6, 1), bootstrap=8, batch_size=8, blur=0.1)
    image.ask(8)
    image.tell(np.arange(8), np.random.default_rng(0).uniform(size=(8, 6, 6, 1)))
    assert image.chosen == ("same", 0.1)
    assert str(image.chosen) == "images through a blur of 10% of their width"


def assert_same_algorithm(one, other):
    leaves, others = (jax.tree.flatten(qd) for qd in (one, other))
    assert leaves[1] == others[1]
    for a, b in zip(leaves[0], others[0], strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_defaults_are_those_of_the_command_line():
    """For a task without sizes of its own, `vqelites run` uses what `VQElites` uses, leaf by leaf."""
    task = PlanarArm(behavior="joints")
    space = {"low": np.asarray(task.space.low), "high": np.asarray(task.space.high), "bounded": task.space.bounded}
    qd = VQElites(solution_dim=task.space.dim, behavior_shape=task.behavior_shape, **space)
    algorithm = qd._now.shown(np.zeros(task.behavior_shape, np.float32), len(task.truth_low)).host.qd
    made = settings("", "vq-elites")
    assert made == VQElitesSettings()
    assert_same_algorithm(algorithm, build(task, made))
    model = VQVAE(task.behavior_shape, made.model.latent_dim, made.cells)
    assert_same_algorithm(vq_elites(task, model), build(task, made))
    assert (algorithm.dataset.window, algorithm.dataset.archive) == (640, 640)
    assert algorithm.archive.fringe


def test_a_share_of_the_run_cooperates():
    with pytest.raises(ValueError, match="cooperate is a share of the run, between 0 and 1, but got 300"):
        new(cooperate=300)
    assert new(cooperate=0.25)._now.host.qd.schedule.cooperate == 5


def test_no_warning_on_a_clean_run():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(new(), 6)


@pytest.mark.slow
def test_a_model_that_has_learned_nothing_says_so_once():
    """Of 200 numbers of pure noise two can show next to nothing."""
    noise = np.random.default_rng(0)
    qd = new(behavior_shape=200, bootstrap=512, minibatch=256)

    def tell(size):
        qd.ask(size)
        return qd.tell(np.arange(size), noise.normal(size=(size, 200)))

    with pytest.warns(RuntimeWarning, match="learned next to nothing"):
        first = tell(512)
    later = tell(32)
    assert first.unexplained > 0.95
    assert later.trainings == 1
    assert np.isnan(later.unexplained)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["vq-elites", "aurora", "aurora-plus"])
def test_a_model_that_has_learned_nothing_from_behavior_brought_along_says_so(algorithm):
    noise = np.random.default_rng(0).normal(size=(512, 200))
    with pytest.warns(RuntimeWarning, match="learned next to nothing"):
        AskTell(algorithm, solution_dim=3, behavior_shape=200, bootstrap=noise, minibatch=256)
