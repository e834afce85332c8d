"""The NumPy class: the loop around any simulator, and every way to misuse it."""

import json
import warnings

import equinox as eqx
import jax
import numpy as np
import pytest

from vqelites import VQElites

SETTINGS = {
    "solution_dim": 3,
    "behavior_shape": (4,),
    "cells": 24,
    "latent_dim": 2,
    "batch_size": 16,
    "iterations": 20,
    "update_every": 2,
    "epochs": 2,
    "bootstrap": 32,
}


def simulate(solutions):
    behavior = np.concatenate([solutions, np.sin(3 * solutions[:, :1])], axis=1)
    return -np.square(solutions).sum(axis=1), behavior


def new(**changes):
    return VQElites(**(SETTINGS | changes))


def run(qd, batches, size=16):
    for _ in range(batches):
        qd.tell(*simulate(qd.ask(size)))
    return qd


def assert_same_archive(a, b):
    for name in ("solutions", "fitness", "behavior", "descriptors", "truth", "cells"):
        np.testing.assert_array_equal(getattr(a.archive, name), getattr(b.archive, name))


@pytest.fixture(scope="module")
def trained():
    return run(new(), 8)


def test_elites_are_described_and_stored_with_what_they_did(trained):
    archive = trained.archive
    assert 5 < len(archive) <= 24
    fitness, behavior = simulate(archive.solutions)
    np.testing.assert_allclose(archive.fitness, fitness, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(archive.behavior, behavior, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(trained.describe(archive.behavior), archive.descriptors, atol=1e-5)
    squared = np.square(archive.descriptors[:, None] - trained.codebook[None]).sum(axis=2)
    np.testing.assert_array_equal(squared.argmin(axis=1), archive.cells)


def test_the_first_batches_are_random_and_training_comes_on_schedule():
    qd = new()
    reports = [qd.tell(*simulate(qd.ask(16))) for _ in range(6)]
    assert [report.trainings for report in reports] == [0, 1, 0, 1, 0, 1]
    assert np.isfinite([report.loss for report in reports if report.trainings]).all()
    assert reports[0].added > 0
    assert qd.evaluations == 96


def test_the_archive_is_filled_already_while_the_bootstrap_goes_on():
    assert len(run(new(), 1).archive) > 0


def test_pandas_has_a_row_per_elite(trained):
    frame = trained.archive.to_pandas()
    assert list(frame.columns) == [
        "cell", "fitness", "descriptor_0", "descriptor_1", "solution_0", "solution_1", "solution_2",
    ]  # fmt: skip
    assert len(frame) == len(trained.archive)


def test_updates_count_evaluations_however_they_are_grouped():
    """97 evaluations at once, or in sevens: the same trainings fall due, at the same evaluation."""
    at_once, in_sevens = new(), new()
    report = at_once.tell(*simulate(at_once.ask(97)))
    assert report.trainings == 3
    trainings = 0
    for _ in range(13):
        trainings += in_sevens.tell(*simulate(in_sevens.ask(7))).trainings
    assert trainings == 2  # 91 evaluations
    trainings += in_sevens.tell(*simulate(in_sevens.ask(6))).trainings
    assert trainings == 3


def test_ids_can_be_told_in_any_order_and_grouping():
    plain, by_id = new(), new()
    order = np.random.default_rng(0).permutation(32)
    solutions = plain.ask(32)
    fitness, behavior = simulate(solutions)
    plain.tell(fitness, behavior)

    ids, asked = by_id.ask(32, ids=True)
    np.testing.assert_array_equal(asked, solutions)
    for part in np.array_split(order, 5):
        by_id.tell(fitness[part], behavior[part], ids=ids[part])
    # The bootstrap is the same set of evaluations, so the same elites compete; training order may differ.
    assert by_id.evaluations == plain.evaluations == 32
    assert set(map(tuple, by_id.archive.solutions)) <= set(map(tuple, solutions))


def test_two_batches_can_be_under_way():
    qd = new()
    first, x = qd.ask(8, ids=True)
    second, y = qd.ask(8, ids=True)
    assert len(np.unique(np.concatenate([first, second]))) == 16
    assert (x != y).any()
    qd.tell(*simulate(y), ids=second)
    qd.tell(*simulate(x), ids=first)
    assert qd.evaluations == 16


def test_the_same_seed_repeats_bit_for_bit_and_another_does_not():
    assert_same_archive(run(new(), 5), run(new(), 5))
    assert len(np.intersect1d(run(new(), 3).archive.fitness, run(new(seed=1), 3).archive.fitness)) == 0


@pytest.mark.parametrize("batches", [1, 5])
def test_a_saved_run_goes_on_as_if_never_stopped(tmp_path, batches):
    """Also in the middle of the bootstrap, with a plain ask and one by id still open."""
    qd = run(new(), batches)
    ids, later = qd.ask(4, ids=True)
    solutions = qd.ask(16)
    qd.save(tmp_path / "run")
    loaded = VQElites.load(tmp_path / "run")
    assert_same_archive(qd, loaded)
    for one in (qd, loaded):
        one.tell(*simulate(solutions))
        one.tell(*simulate(later), ids=ids)
        run(one, 3)
    assert_same_archive(qd, loaded)
    assert loaded.evaluations == qd.evaluations


def test_saving_twice_replaces_the_folder_and_spares_foreign_ones(tmp_path):
    qd = run(new(), 1)
    qd.save(tmp_path / "run")
    run(qd, 1).save(tmp_path / "run")
    assert VQElites.load(tmp_path / "run").evaluations == 32
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    foreign = tmp_path / "photos"
    foreign.mkdir()
    with pytest.raises(FileExistsError, match="not a saved run"):
        qd.save(foreign)


def test_truth_is_kept_for_metrics_and_changes_nothing(tmp_path):
    with_truth, without = new(), run(new(), 4)
    for _ in range(4):
        solutions = with_truth.ask(16)
        with_truth.tell(*simulate(solutions), truth=solutions[:, :2])
    np.testing.assert_array_equal(with_truth.archive.solutions, without.archive.solutions)
    np.testing.assert_array_equal(with_truth.archive.truth, with_truth.archive.solutions[:, :2])
    with_truth.save(tmp_path / "run")
    assert_same_archive(with_truth, VQElites.load(tmp_path / "run"))
    with pytest.raises(ValueError, match="truth was told before"):
        run(with_truth, 1)


class Own(eqx.Module):
    """A user's module, for one sample."""

    layer: eqx.nn.Linear

    def __init__(self, inputs, outputs):
        self.layer = eqx.nn.Linear(inputs, outputs, key=jax.random.key(0))

    def __call__(self, x):
        return self.layer(x)


def test_own_modules_are_trained_and_must_be_given_again_on_load(tmp_path):
    modules = {"encoder": Own(4, 2), "decoder": Own(2, 4)}
    qd = run(new(**modules), 4)
    qd.save(tmp_path / "run")
    with pytest.raises(ValueError, match=r"load\(folder, encoder=\.\.\., decoder=\.\.\.\)"):
        VQElites.load(tmp_path / "run")
    assert_same_archive(qd, VQElites.load(tmp_path / "run", **modules))
    with pytest.raises(ValueError, match="pair"):
        new(encoder=modules["encoder"])


def test_bootstrap_with_behavior_the_user_brings():
    data = simulate(np.random.default_rng(0).uniform(-1, 1, (100, 3)))[1]
    before, after = new(bootstrap=0), new(bootstrap=data)
    assert (before.describe(data) != after.describe(data)).any()
    assert len(run(after, 2).archive) > 0


def test_bootstrap_with_a_pretrained_model(tmp_path, trained):
    trained.save(tmp_path / "run")
    qd = new(pretrained=tmp_path / "run", bootstrap=None)
    np.testing.assert_array_equal(qd.codebook, trained.codebook)
    behavior = trained.archive.behavior
    np.testing.assert_array_equal(qd.describe(behavior), trained.describe(behavior))
    assert qd.tell(*simulate(qd.ask(16))).trainings == 0
    with pytest.raises(ValueError, match="other shapes"):
        new(pretrained=tmp_path / "run", cells=25)


@pytest.mark.parametrize("poison", [np.nan, np.inf, -np.inf])
def test_non_finite_results_are_counted_reported_and_kept_out(poison):
    qd = run(new(), 2)
    for _ in range(3):
        fitness, behavior = simulate(qd.ask(16))
        fitness[1], behavior[3, 2] = poison, poison
        with pytest.warns(RuntimeWarning, match="2 of 16 evaluations"):
            assert qd.tell(fitness, behavior).rejected == 2
    assert qd.rejected == 6
    for values in (qd.archive.fitness, qd.archive.behavior, qd.archive.descriptors, qd.codebook):
        assert np.isfinite(values).all()


def test_a_simulator_that_only_fails_fills_nothing_and_does_not_break():
    qd = new()
    for _ in range(5):
        solutions = qd.ask(16)
        with pytest.warns(RuntimeWarning, match="16 of 16"):
            qd.tell(np.full(16, np.nan), simulate(solutions)[1])
    assert len(qd.archive) == 0
    assert len(run(qd, 3).archive) > 0


def test_numbers_too_large_for_float32_count_as_infinite():
    qd = new()
    fitness, behavior = simulate(qd.ask(16))
    with pytest.warns(RuntimeWarning, match="1 of 16"):
        qd.tell(np.where(np.arange(16) == 0, 1e300, fitness.astype(np.float64)), behavior)


def test_asking_twice_names_the_other_way():
    qd = new()
    qd.ask(4)
    with pytest.raises(RuntimeError, match="ids=True"):
        qd.ask(4)


def test_telling_without_asking_is_an_error_also_after_an_answer():
    qd = new()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="without ask"):
            qd.tell(np.zeros(4), np.zeros((4, 4)))
        run(qd, 1)
    qd.ask(2, ids=True)
    with pytest.raises(RuntimeError, match="pass ids="):
        qd.tell(np.zeros(2), np.zeros((2, 4)))


@pytest.mark.parametrize(
    ("ids", "error", "message"),
    [
        ([0, 1, 99], KeyError, "99"),
        ([0, 0, 1], ValueError, "more than once"),
        ([], ValueError, "integers"),
        ([[0, 1]], ValueError, "integers"),
        ([0.0, 1.0], ValueError, "integers"),
    ],
)
def test_bad_ids(ids, error, message):
    qd = new()
    qd.ask(4, ids=True)
    with pytest.raises(error, match=message):
        qd.tell(np.zeros(np.size(ids)), np.zeros((np.size(ids), 4)), ids=ids)


def test_an_id_is_told_once():
    qd = new()
    ids, x = qd.ask(4, ids=True)
    qd.tell(*simulate(x), ids=ids)
    with pytest.raises(KeyError, match="told already"):
        qd.tell(*simulate(x), ids=ids)


@pytest.mark.parametrize(
    ("fitness", "behavior", "error", "message"),
    [
        (np.zeros(3), np.zeros((4, 4)), ValueError, r"fitness must have shape \(4,\).*\(3,\)"),
        (np.zeros((4, 1)), np.zeros((4, 4)), ValueError, "fitness"),
        (np.zeros(4), np.zeros((4, 5)), ValueError, r"behavior must have shape \(4, 4\).*\(4, 5\)"),
        (np.zeros(4), np.zeros(16), ValueError, "behavior"),
        (np.array(["a"] * 4), np.zeros((4, 4)), TypeError, "real numbers"),
        (np.zeros(4, complex), np.zeros((4, 4)), TypeError, "real numbers"),
        (np.zeros(4), np.full((4, 4), None), TypeError, "real numbers"),
    ],
)
def test_wrong_shapes_and_dtypes_are_refused_and_nothing_is_lost(fitness, behavior, error, message):
    qd = new()
    solutions = qd.ask(4)
    with pytest.raises(error, match=message):
        qd.tell(fitness, behavior)
    qd.tell(*simulate(solutions))
    assert qd.evaluations == 4


def test_images_are_8_bit_or_between_0_and_1():
    images = {"behavior_shape": (6, 6, 1), "bootstrap": 8, "batch_size": 8, "loss": "cross-entropy"}
    as_bytes, as_floats = new(**images), new(**images)
    pixels = np.random.default_rng(0).integers(0, 255, (8, 6, 6, 1), np.uint8)
    for qd, picture in ((as_bytes, pixels), (as_floats, pixels.astype(np.float64) / 255)):
        qd.ask(8)
        qd.tell(np.arange(8), picture)
    assert_same_archive(as_bytes, as_floats)
    as_bytes.ask(8)
    with pytest.raises(ValueError, match=r"\[0, 1\].*spans \[0, 254\]|\[0, 1\].*spans"):
        as_bytes.tell(np.arange(8), pixels.astype(float))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cells": 0}, "cells must be a whole number of at least 1"),
        ({"solution_dim": 0}, "solution_dim"),
        ({"latent_dim": 5}, "latent"),
        ({"latent_dim": 0}, "latent"),
        ({"batch_size": 0}, "batch_size"),
        ({"iterations": 0}, "iterations"),
        ({"low": 1.0, "high": -1.0}, "low < high"),
        ({"bootstrap": -1}, "bootstrap"),
        ({"bootstrap": np.zeros((0, 4))}, "empty"),
        ({"bootstrap": np.full((3, 4), np.nan)}, "empty"),
        ({"bootstrap": np.zeros((3, 5))}, r"\(n, 4\)"),
        ({"networks": "mobil"}, "mobil"),
    ],
)
def test_bad_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        new(**changes)


@pytest.mark.parametrize("count", [0, -1, 2.5])
def test_ask_needs_a_positive_count(count):
    with pytest.raises(ValueError, match="count"):
        new().ask(count)


def test_loading_what_is_not_a_saved_run(tmp_path):
    with pytest.raises(FileNotFoundError, match="not a saved run"):
        VQElites.load(tmp_path / "nowhere")
    run(new(), 1).save(tmp_path / "run")
    settings = tmp_path / "run" / "settings.json"
    text = settings.read_text()
    settings.write_text(text[:20])
    with pytest.raises(ValueError, match="not JSON"):
        VQElites.load(tmp_path / "run")
    settings.write_text(json.dumps(json.loads(text) | {"format": 99}))
    with pytest.raises(ValueError, match="format"):
        VQElites.load(tmp_path / "run")
    settings.write_text(json.dumps(json.loads(text) | {"cells": 25}))
    with pytest.raises(ValueError, match="another configuration"):
        VQElites.load(tmp_path / "run")
    settings.write_text(text)
    (tmp_path / "run" / "host.npz").write_bytes(b"torn")
    with pytest.raises(ValueError, match=r"host\.npz is damaged"):
        VQElites.load(tmp_path / "run")


def test_bounds_are_kept():
    qd = run(new(low=[-1.0, 0.0, 2.0], high=[1.0, 0.5, 3.0], bounded=True, iso=1.0), 5)
    assert (qd.archive.solutions >= [-1, 0, 2]).all()
    assert (qd.archive.solutions <= [1, 0.5, 3]).all()


def test_no_warning_on_a_clean_run():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(new(), 3)
