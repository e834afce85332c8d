"""The NumPy class: the loop around any simulator."""

import equinox as eqx
import jax
import numpy as np
import pytest
from asking import assert_same_archive, new, run, simulate

from vqelites import VQElites
from vqelites.runs.files import RunError


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
        "id", "cell", "fitness", "descriptor_0", "descriptor_1", "solution_0", "solution_1", "solution_2",
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


@pytest.mark.parametrize("batches", [1, pytest.param(5, marks=pytest.mark.slow)])
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
    (foreign / "holiday.jpg").write_bytes(b"")
    with pytest.raises(RunError, match="is not empty"):
        qd.save(foreign)
    with pytest.raises(RunError, match="holds another run"):
        run(new(seed=1), 1).save(tmp_path / "run")


@pytest.mark.slow
def test_truth_is_kept_for_metrics_and_changes_nothing(tmp_path):
    with_truth, without = new(), run(new(), 4)
    for _ in range(4):
        solutions = with_truth.ask(16)
        with_truth.tell(*simulate(solutions), truth=solutions[:, :2])
    np.testing.assert_array_equal(with_truth.archive.solutions, without.archive.solutions)
    np.testing.assert_array_equal(with_truth.archive.truth, with_truth.archive.solutions[:, :2])
    with_truth.save(tmp_path / "run")
    assert_same_archive(with_truth, VQElites.load(tmp_path / "run"))
    with pytest.raises(ValueError, match=r"truth must be told.*or it was told with the first ones"):
        run(with_truth, 1)


class Own(eqx.Module):
    """A user's module, for one sample."""

    layer: eqx.nn.Linear

    def __init__(self, inputs, outputs):
        self.layer = eqx.nn.Linear(inputs, outputs, key=jax.random.key(0))

    def __call__(self, x):
        return self.layer(x)


@pytest.mark.slow
def test_own_modules_are_trained_and_must_be_given_again_on_load(tmp_path):
    modules = {"encoder": Own(4, 2), "decoder": Own(2, 4)}
    qd = run(new(**modules, bootstrap_epochs=300), 2)  # with few it has learned next to nothing, and says so
    qd.save(tmp_path / "run")
    with pytest.raises(ValueError, match=r"load\(folder, encoder=\.\.\., decoder=\.\.\.\)"):
        VQElites.load(tmp_path / "run")
    assert_same_archive(qd, VQElites.load(tmp_path / "run", **modules))
    with pytest.raises(ValueError, match="pair"):
        new(encoder=modules["encoder"])


@pytest.mark.slow
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


@pytest.mark.slow
def test_bounds_are_kept():
    qd = run(new(low=[-1.0, 0.0, 2.0], high=[1.0, 0.5, 3.0], bounded=True, iso=1.0), 5)
    assert (qd.archive.solutions >= [-1, 0, 2]).all()
    assert (qd.archive.solutions <= [1, 0.5, 3]).all()
