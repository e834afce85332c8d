"""The ask/tell class given what it should not be given: simulators that fail, wrong ids, shapes and settings."""

import numpy as np
import pytest
from asking import new, run, simulate

from vqelites import VQElites
from vqelites.runs.files import RunError


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


@pytest.mark.filterwarnings("ignore:The model has learned next to nothing")  # from a few behaviors in 2 epochs
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
        ([0, 1, 99], ValueError, "99"),
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
    with pytest.raises(ValueError, match="told already"):
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
    with pytest.raises(RunError, match="There is no folder"):
        VQElites.load(tmp_path / "nowhere")
    run(new(), 1).save(tmp_path / "run")
    config = tmp_path / "run" / "config.json"
    text = config.read_text()
    config.write_text(text[:20])
    with pytest.raises(RunError, match="not JSON"):
        VQElites.load(tmp_path / "run")
    config.write_text(text.replace('"cells": 24', '"cells": 25'))
    with pytest.raises(RunError, match="was altered"):
        VQElites.load(tmp_path / "run")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": None}, r"seed must be a whole number from 0 to .*secrets\.randbelow"),
        ({"seed": -1}, "seed"),
        ({"behavior_shape": ()}, r"behavior_shape must be whole numbers.*such as \(10,\)"),
        ({"tournment": 2}, "no setting named 'tournment'. Did you mean tournament"),
        ({"start": np.zeros((3, 4))}, r"start must have shape \(n, 3\)"),
        ({"start": np.zeros((33, 3))}, "bootstrap=33"),
        ({"bins": (4,)}, "truth_low and truth_high"),
    ],
)
def test_arguments_that_make_no_sense_say_what_to_pass(changes, message):
    with pytest.raises(ValueError, match=message):
        new(**changes)


def test_a_shape_of_one_number_is_that_number():
    assert new(behavior_shape=4)._now.host.qd.sizes.behavior == (4,)


def test_late_truth_is_refused_with_a_way_out():
    qd = run(new(), 1)
    solutions = qd.ask(4)
    with pytest.raises(ValueError, match="not told with the first evaluations"):
        qd.tell(*simulate(solutions), truth=np.zeros((4, 2)))
    qd.tell(*simulate(solutions))


def test_ragged_lists_name_the_row():
    qd = new()
    qd.ask(3)
    with pytest.raises(ValueError, match=r"behavior is ragged.*row 1"):
        qd.tell([0, 1, 2], [[0, 0, 0, 0], [0, 0, 0], [0, 0, 0, 0]])
