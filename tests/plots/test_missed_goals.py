"""Elites that miss the goal are drawn as such, and counted in a legend."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

from vqelites import plots
from vqelites.plots.style import new_figure
from vqelites.tasks import registry

FITNESS = np.array([0.99, 0.2, 0.97, 0.5])


def texts(legend):
    return [text.get_text() for text in legend.get_texts()]


def test_the_map_has_hollow_dots():
    points = np.random.default_rng(0).uniform(-1, 1, (4, 2))
    figure = plots.latent_cells(points, FITNESS, None, "map", near_goal=0.9)
    there, missed = figure.axes[0].collections[-2:]
    np.testing.assert_allclose(there.get_offsets(), points[[0, 2]])
    np.testing.assert_allclose(missed.get_offsets(), points[[1, 3]])
    assert not len(missed.get_facecolors())
    assert texts(figure.legends[0]) == ["misses the goal (2 of 4)"]


@pytest.mark.parametrize("shape", [(6,), (8, 2), (5, 5, 1), (3, 5, 5, 1)])
def test_the_gallery_has_dashed_frames(shape):
    behaviors = np.random.default_rng(0).uniform(size=(4, *shape))
    figure = plots.behavior_gallery(behaviors, FITNESS, "gallery", near_goal=0.9)
    dashed = [axes.spines["top"].get_linestyle() == "--" for axes in figure.axes]
    assert dashed == [False, True, False, True]
    assert texts(figure.legends[-1]) == ["misses the goal (2 of 4)"]


def test_channels_of_a_series_are_named_and_have_a_scale():
    figure = plots.behavior_gallery(np.linspace(-1, 2, 32).reshape(2, 8, 2), FITNESS[:2], "gallery")
    assert texts(figure.legends[0]) == ["channel 1", "channel 2"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["-1", "2"]


def test_without_a_goal_or_a_miss_nothing_is_said():
    behaviors = np.ones((4, 3))
    for near_goal in (None, 0.1):
        figure = plots.behavior_gallery(behaviors, FITNESS, "gallery", near_goal)
        assert not figure.legends
        assert not plots.latent_cells(behaviors[:, :2], FITNESS, None, "map", near_goal).legends


def test_arms_that_miss_are_dotted():
    task = registry.make("arm")
    random = np.random.default_rng(0).uniform(-0.3, 0.3, (40, task.space.dim))
    solutions = jnp.asarray(random, jnp.float32)
    fitness = np.asarray(task.evaluate(None, solutions).fitness)
    assert task.near_goal == pytest.approx(math.exp(-0.05))
    axes = new_figure(4, 4).add_subplot(projection="3d")
    task.draw(axes, solutions)
    dotted = [line for line in axes.lines if line.get_linestyle() == ":" and len(line.get_data_3d()[0])]
    assert len(dotted) == (fitness < task.near_goal).sum() > 0
    assert texts(axes.get_legend()) == ["misses the goal by more than 5 cm", "start", "goal"]
