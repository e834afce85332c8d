"""VQArchive keeps what pyribs' schedulers, emitters and visualisers rely on, before and after training."""

import pickle
import subprocess
import sys

import equinox as eqx
import numpy as np
import pytest

pytest.importorskip("ribs", reason="needs the extra ribs: pip install 'vqelites[ribs]'")

from ribs.archives import ArchiveBase, ArchiveStats, cqd_score
from small import JOINTS, add, small, some

from vqelites.experiments.build import build
from vqelites.experiments.presets import settings, with_values
from vqelites.tasks import Interface, SimulatorTask

pytestmark = pytest.mark.filterwarnings("ignore:The model has learned next to nothing")  # in 3 epochs


@pytest.fixture
def archive():
    """Trained, with elites."""
    made = small()
    add(made)
    made.train()
    return made


def check_statistics(archive, offset=0.0):
    """What pyribs says of an archive, counted anew."""
    objective, stats = archive.data("objective"), archive.stats
    assert stats.num_elites == len(archive) == len(objective)
    assert stats.coverage == pytest.approx(len(objective) / archive.cells)
    assert stats.qd_score == pytest.approx((objective - offset).sum())
    assert stats.norm_qd_score == pytest.approx((objective - offset).sum() / archive.cells)
    assert stats.obj_mean == pytest.approx(objective.mean())
    assert stats.obj_max == objective.max() == archive.best_elite["objective"]


def test_it_is_an_archive_of_pyribs(archive):
    assert isinstance(archive, ArchiveBase)
    assert (archive.solution_dim, archive.objective_dim, archive.measure_dim) == (JOINTS, (), 2)
    assert archive.field_list == ["solution", "objective", "measures", "threshold", "behavior", "index"]
    assert archive.dtypes["solution"] == np.float64
    assert archive.dtypes["behavior"] == np.float32
    assert archive.cells == 32
    assert archive.centroids.shape == (32, 2)
    np.testing.assert_array_equal(archive.lower_bounds, [-1, -1])
    np.testing.assert_array_equal(archive.interval_size, [2, 2])


def test_its_map_is_that_of_vq_elites():
    """Views, networks, losses, stretch, equal cells: one default for both."""
    made = small(bootstrap_epochs=100, epochs=10)
    chosen = with_values(settings("", "vq-elites"), {"cells": 32})
    theirs = build(SimulatorTask(lambda x, seed: None, Interface(JOINTS, behavior_shape=(JOINTS, 2))), chosen)
    assert eqx.tree_equal(theirs.descriptor, made._map._model)
    assert made._map.settings == chosen


def test_types_are_those_asked_for():
    made = small(solution_dtype=np.float32, objective_dtype=np.float64, measures_dtype=np.float32)
    add(made)
    made.train()
    types = {name: made.data(name).dtype for name in ("solution", "objective", "measures", "threshold", "behavior")}
    assert types == {name: made.dtypes[name] for name in types}
    assert made.centroids.dtype == made.lower_bounds.dtype == np.float32


def test_the_first_training_lets_all_solutions_told_so_far_compete():
    made = small()
    _, objective, behavior = some(60)
    add(made)
    before = len(made)
    made.train()
    assert len(made) > before  # nearly all shared a few cells of the untrained map
    cell = made.index_of(made.encode(behavior))
    best = {where: objective[cell == where].max() for where in set(cell)}
    assert dict(zip(made.data("index"), made.data("objective"), strict=True)) == best
    check_statistics(made)


@pytest.mark.slow
def test_every_training_moves_cells_and_places_elites_by_their_behavior(archive):
    for seed in (1, 2):
        add(archive, seed=seed)
        codes, elites, kept = archive.centroids.copy(), len(archive), archive.data("solution")
        trained = archive.train()
        assert (archive.centroids != codes).any()
        np.testing.assert_allclose(archive.data("measures"), archive.encode(archive.data("behavior")), atol=1e-5)
        np.testing.assert_array_equal(archive.index_of(archive.data("measures")), archive.data("index"))
        stayed = (archive.data("solution")[:, None] == kept[None]).all(axis=2).any(axis=0).sum()
        assert stayed == elites - trained.lost
        check_statistics(archive)


@pytest.mark.slow
def test_those_that_lose_their_cells_wait_and_are_offered_again():
    made, came_back = small(epochs=40), 0
    for seed in range(6):
        add(made, seed=seed)
        kept, waiting = solutions_of(made._kept()), solutions_of(made._reserve)
        made.train()
        if seed:  # the first training takes what it was told, and nobody waits
            assert solutions_of(made._kept()) == kept
            came_back += len(solutions_of(made.data()) & waiting)
    assert came_back > 0


def solutions_of(rows):
    """As a set."""
    return {tuple(solution) for solution in rows["solution"]}


def test_statistics_count_with_the_offset():
    made = small(qd_score_offset=-2.0)
    add(made)
    made.train()
    check_statistics(made, offset=-2.0)


def test_statuses_and_values_are_those_of_pyribs(archive):
    elite = archive.sample_elites(1)
    again = {name: elite[name] for name in ("solution", "measures", "behavior")}
    told = archive.add(objective=elite["objective"], **again)
    assert (told["status"], told["value"]) == (0, 0)
    told = archive.add(objective=elite["objective"] + 1, **again)
    assert (told["status"], told["value"]) == (1, pytest.approx(1))
    single = archive.add_single(
        elite["solution"][0], elite["objective"][0] + 3, elite["measures"][0], behavior=elite["behavior"][0]
    )
    assert (single["status"], single["value"]) == (1, pytest.approx(2))
    check_statistics(archive)


@pytest.mark.parametrize("shape", [(JOINTS, 2), (8, 8, 1)])
def test_a_batch_of_no_solutions_changes_nothing(shape):
    """As in pyribs; it was an error about a shape that nobody had given."""
    made, nobody = small(behavior_shape=shape), np.zeros((0, *shape))
    measures = made.encode(nobody)
    assert measures.shape == (0, 2)
    told = made.add(np.zeros((0, JOINTS)), np.zeros(0), measures, behavior=nobody)
    assert told["status"].shape == told["value"].shape == (0,)
    assert made.empty
    with pytest.raises(RuntimeError, match="nothing to train on"):
        made.train()


def test_elites_are_found_by_measures_and_by_behavior(archive):
    elites = archive.data()
    occupied, found = archive.retrieve(archive.encode(elites["behavior"]))
    assert occupied.all()
    np.testing.assert_array_equal(found["solution"], elites["solution"])
    there, one = archive.retrieve_single(elites["measures"][0])
    assert there
    np.testing.assert_array_equal(one["behavior"], elites["behavior"][0])
    empty = np.setdiff1d(np.arange(archive.cells), elites["index"])
    occupied, found = archive.retrieve(archive.centroids[empty])
    assert not occupied.any()
    assert np.isnan(found["objective"]).all()


def test_sampling_and_iterating(archive):
    drawn = archive.sample_elites(500)
    assert set(drawn["index"]) == set(archive.data("index"))
    assert len(set(archive.sample_elites(len(archive), replace=False)["index"])) == len(archive)
    with pytest.raises(ValueError, match="larger sample"):
        archive.sample_elites(len(archive) + 1, replace=False)
    assert [elite["index"] for elite in archive] == archive.data("index").tolist()
    under_way = iter(archive)
    next(under_way)
    add(archive, seed=9)
    archive.train()
    with pytest.raises(RuntimeError, match="modified"):
        next(under_way)


def test_data_frames_have_raw_behavior_only_if_asked_for(archive):
    frame = archive.data(return_type="pandas")
    assert [*frame.columns[:4]] == ["solution_0", "solution_1", "solution_2", "objective"]
    assert not any(str(name).startswith("behavior") for name in frame.columns)
    assert [elite["objective"] for elite in frame.iterelites()] == archive.data("objective").tolist()
    vector = small(behavior_shape=6)
    solutions, objective, behavior = some(20)
    flat = behavior.reshape(20, 6)
    vector.add(solutions, objective, vector.encode(flat), behavior=flat)
    assert "behavior_5" in vector.data(["objective", "behavior"], return_type="pandas").columns
    with pytest.raises(ValueError, match="not a field"):
        archive.data("novelty")


def test_an_empty_archive_says_so():
    made = small()
    assert made.empty
    assert made.best_elite is None
    assert made.stats == ArchiveStats(0, 0, 0, 0, None, None)
    with pytest.raises(IndexError, match="No elements"):
        made.sample_elites(1)
    with pytest.raises(RuntimeError, match="nothing to train on"):
        made.train()
    add(made)
    made.train()
    codes = made.centroids
    made.clear()
    assert made.empty
    np.testing.assert_array_equal(made.centroids, codes)
    with pytest.raises(RuntimeError, match="nothing to train on"):
        made.train()


@pytest.mark.slow
def test_thresholds_of_cma_mae_go_where_their_elites_go():
    """The highest counts where several meet, never more than the elite's objective; empty cells have the lowest."""
    made = small(learning_rate=0.2, threshold_min=-3.0)
    add(made)
    made.train()
    lost = []
    for seed in range(1, 4):
        add(made, seed=seed)
        before = made.data(["solution", "threshold"])
        lost.append(made.train().lost)
        cell = made.index_of(made.encode(made._kept()["behavior"]))
        for row, solution in enumerate(before["solution"]):
            where = np.flatnonzero((made._kept()["solution"] == solution).all(axis=1))[0]
            _, there = made.retrieve(made.centroids[cell[[where]]])
            assert there["threshold"][0] >= before["threshold"][row] - 1e-6
        assert (made.data("threshold") <= made.data("objective")).all()
    assert sum(lost) > 0  # else nobody met
    empty = made.centroids[np.setdiff1d(np.arange(made.cells), made.data("index"))[:1]]
    assert made.threshold_min == -3.0
    assert not made.retrieve(empty)[0].any()


@pytest.mark.slow
def test_the_best_elite_ever_is_remembered_where_a_lesser_one_took_its_cell():
    made = small(learning_rate=0.0, threshold_min=-10.0)
    add(made)
    made.train()
    best = made.best_elite
    made.add(best["solution"][None], [-5.0], best["measures"][None], behavior=best["behavior"][None])
    assert made.best_elite["objective"] == best["objective"] > made.data("objective").max()
    made.train()
    assert made.stats.obj_max == made.best_elite["objective"] == best["objective"]
    np.testing.assert_allclose(made.best_elite["measures"], made.encode(best["behavior"][None])[0], atol=1e-5)


def test_a_result_archive_lives_on_the_same_map():
    made = small(learning_rate=0.1, threshold_min=-3.0, extra_fields={"name": ((), object)})
    result = made.result_archive()
    solutions, objective, behavior = some(60)
    names = np.array([f"solution {i}" for i in range(60)], object)
    for _ in range(3):
        for each in (made, result):
            each.add(solutions, objective, each.encode(behavior), behavior=behavior, name=names)
        made.train()
        np.testing.assert_array_equal(result.centroids, made.centroids)
        check_statistics(result)
        np.testing.assert_array_equal(result.data("threshold"), result.data("objective"))
    assert names[np.argmax(objective)] in result.data("name")


def test_too_little_behavior_is_said_once():
    made = small()
    add(made, 20)
    with pytest.warns(RuntimeWarning, match="oriented on 20 distinct behaviors, fewer than its 32 cells"):
        made.train()
    add(made, seed=1)
    made.train()


def test_behaviors_that_are_all_alike_are_named():
    made = small()
    solutions, objective, behavior = some(20)
    behavior[:] = behavior[0]
    made.add(solutions, objective, made.encode(behavior), behavior=behavior)
    with pytest.warns(RuntimeWarning) as said:
        made.train()
    assert any("after 20 evaluations are alike" in str(one.message) for one in said)


def test_measures_of_another_map_are_refused(archive):
    solutions, objective, behavior = some(30, 5)
    old = archive.encode(behavior)
    add(archive, seed=6)
    archive.train()
    with pytest.raises(ValueError, match=r"row \d+ is off by .* before train\(\)"):
        archive.add(solutions, objective, old, behavior=behavior)
    size = len(archive)
    with pytest.raises(ValueError, match=r"before train\(\)"):
        archive.add_single(solutions[0], objective[0], old[0] + 0.5, behavior=behavior[0])
    assert len(archive) == size


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"behavior": None}, r"archive\.encode\(behavior\), behavior=behavior"),
        ({"behavior": np.zeros((8, 2))}, r"shape \(8, 3, 2\)"),
        ({"behavior": np.full((8, 3, 2), np.nan)}, "rows .* hold NaN or infinity"),
        ({"measures": np.zeros((8, 3))}, "measures"),
        ({"measures": np.full((8, 2), np.inf)}, "finite"),
        ({"objective": np.full(8, np.nan)}, "objective must be finite"),
        ({"objective": np.zeros(7)}, "objective does not match"),
        ({"solution": np.zeros((8, 4))}, "solution"),
        ({"novelty": np.zeros(8)}, r"Expected the fields \['behavior'\].*got \['behavior', 'novelty'\]"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_changes(archive, change, message):
    solutions, objective, behavior = some(8, 3)
    told = {"solution": solutions, "objective": objective + 9, "measures": archive.encode(behavior)}
    told = {**told, "behavior": behavior, **change}
    told = {name: value for name, value in told.items() if value is not None}
    before = archive.data("objective")
    with pytest.raises(ValueError, match=message):
        archive.add(**told)
    np.testing.assert_array_equal(archive.data("objective"), before)
    assert not archive._recent


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 36}, r"got batch_size: with pyribs emitters search"),
        ({"cels": 5}, "Did you mean cells"),
        ({"cells": 0}, "cells must be a whole number"),
        ({"latent_dim": 7}, "latent dim must be between 1 and the 6"),
        ({"behavior_shape": (3, 64, 64)}, "channels first"),
        ({"seed": None}, "seed must be a whole number"),
        ({"threshold_min": 0.0}, "learning_rate"),
        ({"extra_fields": {"behavior": ((), np.float32)}}, "field `behavior`"),
        ({"encoder": np.tanh}, "Own modules come as a pair"),
    ],
)
def test_wrong_settings_are_refused_at_once(options, message):
    with pytest.raises(ValueError, match=message):
        small(**options)


def test_progress_is_a_share(archive):
    with pytest.raises(ValueError, match="from 0 to 1, but is 50"):
        archive.train(50)


def test_images_are_bytes_or_floats_of_one_scale():
    made = small(behavior_shape=(8, 8, 1), cells=8)
    pictures = np.random.default_rng(0).integers(0, 256, (16, 8, 8, 1), np.uint8)
    solutions, objective, _ = some(16)
    made.add(solutions, objective, made.encode(pictures), behavior=pictures)
    assert made.data("behavior").max() <= 1
    with pytest.raises(ValueError, match="in another scale"):
        made.encode(pictures.astype(float))


def test_a_pickled_archive_goes_on_as_the_one_it_was(archive):
    other = pickle.loads(pickle.dumps(archive))
    for each in (archive, other):
        add(each, seed=7)
        each.train()
    np.testing.assert_array_equal(archive.centroids, other.centroids)
    np.testing.assert_array_equal(archive.data("solution"), other.data("solution"))


def test_equal_seeds_give_equal_archives():
    first, second, other = small(seed=1), small(seed=1), small(seed=2)
    for each in (first, second, other):
        add(each)
        each.train()
    np.testing.assert_array_equal(first.centroids, second.centroids)
    assert (first.centroids != other.centroids).any()


def test_the_quality_of_a_trained_archive_can_be_scored(archive):
    targets = np.random.default_rng(0).uniform(-1, 1, (2, 5, 2))
    score = cqd_score(
        archive=archive, iterations=2, target_points=targets, penalties=2, obj_min=-1.0, obj_max=0.0, dist_max=2.0
    )
    assert np.isfinite(score.mean)


def test_without_pyribs_the_extra_is_named():
    code = "import sys; sys.modules['ribs'] = None; import vqelites.ribs"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "vqelites[ribs]"' in done.stderr
