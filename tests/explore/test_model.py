"""What the explorer computes, without a page: columns, axes, cells, neighbours, files."""

import io

import numpy as np
import pandas as pd
import pytest
from matplotlib.path import Path as Outline

from vqelites.explore import axes, columns, export
from vqelites.explore.axes import Axes2D
from vqelites.explore.source import Record, Scene
from vqelites.frames import ArchiveFrame
from vqelites.statistics import scale_limits


def archive(n=40, d=2, seed=0):
    random = np.random.default_rng(seed)
    return ArchiveFrame(
        ids=np.arange(n) * 3,
        solutions=random.normal(size=(n, 4)).astype(np.float32),
        fitness=random.normal(size=n).astype(np.float32),
        behavior=random.normal(size=(n, 5)).astype(np.float32),
        descriptors=random.uniform(-1, 1, (n, d)).astype(np.float32),
        truth=random.normal(size=(n, 2)).astype(np.float32),
        cells=np.arange(n, dtype=np.int32),
    )


def shown(n=40, d=2, centres=None):
    """A record and the scene of its archive."""
    elites = archive(n, d)
    record = Record("run", "task", "", elites, (7,), pd.DataFrame(), "")
    return record, Scene(7, 1000, elites.ids, elites.fitness, elites.descriptors, centres)


def test_age_counts_evaluations_since_an_elite_was_made():
    record, scene = shown()
    np.testing.assert_array_equal(columns.values(record, scene, "age"), 1000 - scene.ids)


def test_no_age_is_negative():
    """Ids of an asynchronous run may be ahead of the evaluations that are complete."""
    record, scene = shown()
    early = Scene(7, int(scene.ids[-1]) - 5, scene.ids, scene.fitness, scene.descriptors)
    age = columns.values(record, early, "age")
    assert (age[-2:] == 0).all()
    np.testing.assert_array_equal(age[:-2], early.evaluations - scene.ids[:-2])


def test_novelty_is_the_mean_distance_to_the_nearest_others():
    record, scene = shown()
    distances = np.linalg.norm(scene.descriptors[:, None] - scene.descriptors[None], axis=2)
    expected = np.sort(distances, axis=1)[:, 1 : columns.NEIGHBOURS + 1].mean(axis=1)
    np.testing.assert_allclose(columns.values(record, scene, "novelty"), expected, rtol=1e-5)


def test_a_lonely_elite_has_no_novelty():
    assert np.isnan(columns.novelty(np.zeros((1, 2)))).all()


def test_elites_that_were_replaced_have_no_truth():
    record, _ = shown()
    past = Scene(3, 500, np.array([3, 4, 0]), np.zeros(3), np.zeros((3, 2)))
    found = columns.values(record, past, "truth 2")
    np.testing.assert_array_equal(found, [record.archive.truth[1, 1], np.nan, record.archive.truth[0, 1]])


def test_every_column_that_is_offered_can_be_shown():
    record, scene = shown(d=3)
    for name in {*columns.names(record, scene), *axes.choices(record, scene)}:
        assert columns.values(record, scene, name).shape == (40,)


def test_neighbours_are_the_nearest_without_itself():
    _, scene = shown()
    near = columns.neighbours(scene.descriptors, 5, 4)
    distances = np.linalg.norm(scene.descriptors - scene.descriptors[5], axis=1)
    assert near.tolist() == np.argsort(distances)[1:5].tolist()
    assert len(columns.neighbours(scene.descriptors[:3], 0, 9)) == 2


def test_an_outlier_does_not_swallow_the_colours():
    values = np.append(np.linspace(0, 1, 99), -1000.0)
    low, high = scale_limits(values)
    assert -2 < low < 0
    assert high == 1
    assert scale_limits([3.0, 3.0]) == (3.0, 4.0)
    assert scale_limits([np.nan]) == (0.0, 1.0)


def test_every_elite_lies_in_its_cell_and_the_fittest_holds_it():
    centres = np.random.default_rng(1).uniform(-1, 1, (15, 2)).astype(np.float32)
    record, scene = shown(centres=centres)
    layout = axes.lay_out(record, scene, axes.default(scene))
    assert len(layout.outlines) == 15
    nearest = np.linalg.norm(scene.descriptors[:, None] - layout.middles[None], axis=2).argmin(axis=1)
    for cell, holder in enumerate(layout.holders):
        inside = np.flatnonzero(nearest == cell)
        assert holder == (inside[scene.fitness[inside].argmax()] if inside.size else -1)
    for row, cell in enumerate(nearest):
        assert Outline(layout.outlines[cell]).contains_point(scene.descriptors[row])


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_spaces_of_any_dimension_are_laid_out_and_projections_are_named(d):
    centres = np.random.default_rng(1).uniform(-1, 1, (9, d)).astype(np.float32)
    record, scene = shown(d=d, centres=centres)
    chosen = axes.default(scene)
    layout = axes.lay_out(record, scene, chosen)
    assert layout.points.shape == (40, 2)
    assert (layout.points >= layout.low).all()
    assert (layout.points <= layout.high).all()
    assert {chosen.across, chosen.up} <= set(axes.choices(record, scene))
    assert bool(layout.outlines) == (d == 2)
    assert (f"projected from {d} dimensions" in layout.caption) == (d > 2)
    if d > 2:
        two = axes.lay_out(record, scene, Axes2D("descriptor 1", f"descriptor {d}"))
        assert f"two of {d} dimensions" in two.caption
        np.testing.assert_array_equal(two.points, scene.descriptors[:, [0, d - 1]])
        assert len(two.centres) == 9


def test_projections_do_not_flip_from_moment_to_moment():
    record, scene = shown(d=4)
    moved = Scene(8, 1000, scene.ids, scene.fitness, scene.descriptors + 1e-4 * scene.descriptors**2)
    before, after = (axes.lay_out(record, one, axes.default(one)).points for one in (scene, moved))
    np.testing.assert_allclose(before, after, atol=0.01)


def test_too_many_cells_are_not_drawn_which_the_caption_says():
    count = axes.MOST_CELLS + 1
    centres = np.random.default_rng(1).uniform(-1, 1, (count, 2)).astype(np.float32)
    record, scene = shown(centres=centres)
    layout = axes.lay_out(record, scene, axes.default(scene))
    assert not layout.outlines
    assert f"{count} cells, too small to be drawn" in layout.caption


def test_chosen_elites_are_written_as_they_are():
    elites = archive().take([3, 7])
    with np.load(export.as_npz(elites), allow_pickle=False) as file:
        assert set(file) == set(vars(elites))
        for name, values in vars(elites).items():
            np.testing.assert_array_equal(file[name], values)
    table = pd.read_csv(io.BytesIO(export.as_csv(elites).getvalue()))
    assert table["id"].tolist() == [9, 21]
    np.testing.assert_allclose(table["fitness"], elites.fitness, rtol=1e-6)
    assert "solution_3" in table
