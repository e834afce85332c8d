"""Figures of what was learned: latent space with its cells, decoded codes, and how far codes still move."""

import numpy as np
import pytest

from vqelites import metrics, plots
from vqelites.plots.latent import cells, principal
from vqelites.plots.latent import frame as frame_of


def test_every_code_has_one_cell_that_holds_it(random):
    codes = random.uniform(-0.9, 0.9, (40, 2))
    polygons = cells(codes, np.array([-1, -1]), np.array([1, 1]))
    assert len(polygons) == 40
    area = sum(0.5 * abs(np.dot(p[:, 0], np.roll(p[:, 1], 1)) - np.dot(p[:, 1], np.roll(p[:, 0], 1))) for p in polygons)
    assert area == pytest.approx(4)  # no gaps, no overlaps
    assert len(cells(np.repeat(codes, 2, axis=0), np.array([-1, -1]), np.array([1, 1]))) == 40
    assert cells(codes[:0], np.array([-1, -1]), np.array([1, 1])) == []


def test_latent_space_of_two_dimensions_shows_cells_and_elites_as_they_are(random):
    codes, descriptors = random.uniform(-1, 1, (30, 2)), random.uniform(-1, 1, (50, 2))
    figure = plots.latent_cells(descriptors, np.arange(50.0), codes, "latent")
    outlines, dots = figure.axes[0].collections
    assert len(outlines.get_paths()) == 30
    np.testing.assert_array_equal(dots.get_offsets(), descriptors)
    assert len(np.unique(dots.get_facecolors(), axis=0)) == 50  # a colour per fitness
    without = plots.latent_cells(descriptors, np.arange(50.0), None, "no codebook")
    assert len(without.axes[0].collections[0].get_paths()) == 0


def test_the_frame_is_the_bounded_square_for_codes_in_it_and_a_square_around_the_points_otherwise():
    inside, outside = np.array([[0.2, 0.3], [0.4, 0.6]]), np.array([[0.2, -7.0], [0.4, 0.6]])
    low, high = frame_of(inside, inside)
    np.testing.assert_allclose([low, high], [[-1, -1], [1, 1]], atol=0.05)
    low, high = frame_of(inside, inside[:0])
    np.testing.assert_allclose([low, high], [[0.15, 0.3], [0.45, 0.6]], atol=0.02)
    for descriptors, codes in ((inside, outside), (outside, inside)):
        low, high = frame_of(descriptors, codes)
        np.testing.assert_allclose([low, high], [[-3.5, -7], [4.1, 0.6]], atol=0.2)
        assert all(((low < code) & (code < high)).all() for code in codes)


def test_a_narrow_latent_space_is_drawn_without_a_warning_from_matplotlib(random, caplog, tmp_path):
    """Limits that contradict an equal aspect were overruled with a warning for each picture of a report."""
    narrow = random.normal(size=(30, 2)) * [5, 0.1]
    figure = plots.latent_cells(narrow, np.arange(30.0), None, "narrow")
    figure.savefig(tmp_path / "narrow.png")
    assert not caplog.records
    box = figure.axes[0].get_window_extent()
    assert box.width == pytest.approx(box.height)


def test_latent_space_of_more_dimensions_is_projected_together_with_its_codes(random):
    flat = random.normal(size=(60, 2)) * [3, 1]
    turn = np.linalg.qr(random.normal(size=(5, 5)))[0][:2]
    points, codes, shares = principal(flat[:40] @ turn, flat[40:] @ turn)
    distances = [np.linalg.norm(x[:, None] - x[None], axis=2) for x in (flat, np.concatenate([points, codes]))]
    np.testing.assert_allclose(*distances, atol=1e-9)  # two directions hold all there is
    assert shares[0] > shares[1]
    assert sum(shares) == pytest.approx(1)
    figure = plots.latent_cells(flat[:40] @ turn, np.arange(40.0), flat[40:] @ turn, "five")
    crosses, dots = figure.axes[0].collections
    assert (len(crosses.get_offsets()), len(dots.get_offsets())) == (20, 40)
    assert "% of variance" in figure.axes[0].get_xlabel()


def test_a_latent_space_of_one_dimension_is_drawn_against_fitness():
    """All elites lay on one line, over a second component that held nothing."""
    figure = plots.latent_cells(np.array([[0.1], [0.5]]), np.arange(2.0), np.array([[0.0], [1.0]]), "one")
    codes, dots = figure.axes[0].collections
    np.testing.assert_allclose(dots.get_offsets(), [[0.1, 0], [0.5, 1]])
    assert [line[0, 0] for line in codes.get_segments()] == [0, 1]
    assert figure.axes[0].get_ylabel() == "fitness"


@pytest.mark.parametrize("shape", [(8, 8, 1), (8, 8, 3), (4, 8, 8, 1), (20, 2), (6,)])
def test_decoded_codes_are_rows_of_iterations_and_columns_of_codes(random, shape):
    decoded = {40: random.random((9, *shape)), 2500: random.random((9, *shape))}
    figure = plots.decoded_codes(decoded, [7, 0, 3], "codes")
    assert len(figure.axes) == 6
    assert [axes.get_title() for axes in figure.axes[:3]] == ["code 7", "code 0", "code 3"]
    assert figure.axes[3].get_ylabel() == "iteration\n2500"
    axes, behavior = figure.axes[3], decoded[2500][7]
    if len(shape) > 2:
        frame = behavior[-1] if len(shape) == 4 else behavior
        brightest = max(behaviors[[7, 0, 3]].max() for behaviors in decoded.values())
        np.testing.assert_allclose(axes.images[0].get_array(), frame.squeeze() / brightest)
    elif len(shape) == 2:
        np.testing.assert_array_equal([line.get_ydata() for line in axes.lines], behavior.T)
    else:
        np.testing.assert_array_equal([bar.get_height() for bar in axes.patches], behavior)


def test_drift_shows_mean_and_quantile_of_every_run():
    still, moving = np.zeros((10, 2)), np.ones((10, 2))
    drift = metrics.codebook_drift([10, 20, 30], [still, moving, moving])
    (axes,) = plots.drift_curves({"a": drift, "b": drift}, "drift").axes
    mean, quantile = axes.lines[:2]
    assert len(axes.lines) == 4
    assert mean.get_xdata().tolist() == [20]  # nothing moved until 30, and log scales have no 0
    assert mean.get_ydata()[0] == pytest.approx(np.sqrt(2) / 10)
    assert mean.get_linewidth() > quantile.get_linewidth()


@pytest.mark.parametrize("shape", [(8, 8, 1), (4, 8, 8, 3)])
def test_negative_pixels_are_not_black_alike(random, shape):
    """All below 0 was black: half of an image that is scaled from -1 to 1."""
    behaviors = random.uniform(-1, 1, (3, *shape))
    figure = plots.behavior_gallery(behaviors, np.zeros(3), "elites")
    shown = np.concatenate([axes.images[0].get_array()[:, -8:] for axes in figure.axes])
    last = np.concatenate([one if one.ndim == 3 else one[-1] for one in behaviors]).squeeze()
    low, high = behaviors.min(), behaviors.max()
    np.testing.assert_allclose(shown, (last - low) / (high - low))


@pytest.mark.parametrize("shape", [(8, 8, 1), (8, 8, 3), (7, 8, 6, 1), (2, 8, 6, 3), (20, 2), (6,), (90,)])
def test_behaviors_are_drawn_by_their_kind_each_with_its_fitness(random, shape):
    behaviors, fitness = random.random((5, *shape)), np.arange(5.0)
    figure = plots.behavior_gallery(behaviors, fitness, "elites")
    assert [axes.get_title() for axes in figure.axes] == [f"fitness {value:.0f}" for value in range(5)]
    axes, behavior = figure.axes[3], behaviors[3]
    if len(shape) == 4:  # frames side by side from the first to the last, a bright line between them
        image = axes.images[0].get_array()
        count = min(shape[0], 5)
        assert image.shape[:2] == (8, 6 * count + count - 1)
        np.testing.assert_allclose(image[:, -6:], behavior[-1].squeeze() / behaviors.max())
        assert (image[:, 6] == 1).all()
    elif len(shape) == 3:
        np.testing.assert_allclose(axes.images[0].get_array(), behavior.squeeze() / behaviors.max())
    elif shape == (6,):
        np.testing.assert_array_equal([bar.get_height() for bar in axes.patches], behavior)
    else:
        np.testing.assert_array_equal([line.get_ydata() for line in axes.lines], behavior.reshape(shape[0], -1).T)


def test_channels_in_other_units_are_not_swallowed():
    """A temperature of 290 made flat lines of all others."""
    time = np.linspace(0, 6, 20)
    series = np.stack([np.stack([np.sin(time + i), 290 + 3 * np.cos(time + i)], axis=1) for i in range(4)])
    figure = plots.behavior_gallery(series, np.arange(4.0), "elites")
    for axes in figure.axes:
        assert [np.ptp(line.get_ydata()) > 0.8 for line in axes.lines] == [True, True]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["channel 1 (-1.0 to 1.0)", "channel 2 (287.0 to 293.0)"]
    (axes,) = plots.decoded_codes({7: series}, [2], "codes").axes
    assert all(np.ptp(line.get_ydata()) > 0.8 for line in axes.lines)


def test_limits_of_the_truth_that_nobody_knows_are_those_of_the_elites(random):
    """Infinite limits used to end the drawing: axis limits cannot be NaN or Inf."""
    truth = random.uniform(size=(30, 2)) * [10, 0.1]
    (axes, _) = plots.true_space(truth, np.arange(30.0), (-np.inf, 0.0), (np.inf, np.inf), "somewhere").axes
    assert axes.get_xlim() == pytest.approx((truth[:, 0].min(), truth[:, 0].max()), abs=1)
    assert axes.get_ylim() == pytest.approx((0, truth[:, 1].max()), abs=0.01)
    assert axes.get_aspect() == "auto"  # a strip of one to a hundred would show nothing
    (axes, _) = plots.true_space(truth, np.arange(30.0), (0, 0), (10, 10), "known").axes
    assert (axes.get_xlim(), axes.get_ylim(), axes.get_aspect()) == ((0, 10), (0, 10), 1)
