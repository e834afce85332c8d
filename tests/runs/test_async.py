"""Runs that do not wait: every evaluation counts once, whatever order results come in and whenever a run is stopped."""

import threading

import numpy as np
import pytest
from kicks import fails, kick, uneven, unseen
from test_simulators import resume, run

from vqelites import VQElites
from vqelites.drive import Asynchronous, Host
from vqelites.evaluation import LocalEvaluator, PoolEvaluator, Simulator, evaluation_seeds
from vqelites.runs import checkpoints
from vqelites.runs.config import Evaluating, Saving
from vqelites.runs.events import Note, Status
from vqelites.runs.recovery import newest


def untold(done):
    """Ids that were under way when a run was last saved."""
    return checkpoints.extra(done.folder, newest(done.folder))["pending_ids"]


def assert_every_evaluation_counts_once(done, seed=0):
    """All ids but those under way were told, each once: so many evaluations, and so many of them failed."""
    told = np.setdiff1d(np.arange(int(done.state().next_id)), untold(done))
    assert len(told) == done.metrics["evaluations"].iloc[-1] == 48 + 16 * done.iteration
    assert done.rejected == done.metrics["rejected"].sum() == sum(map(fails, evaluation_seeds(seed, told)))
    assert len(np.unique(done.archive.ids)) == len(done.archive)
    assert not np.isin(done.archive.ids, untold(done)).any()


@pytest.mark.parametrize("workers", [pytest.param(None, marks=pytest.mark.slow), 3])
def test_every_evaluation_counts_once(workers, tmp_path):
    done = run(uneven, tmp_path / "run", "map-elites", iterations=12, workers=workers, mode="async")
    assert done.finished
    assert done.metrics["coverage"].iloc[-1] > 0.2
    assert_every_evaluation_counts_once(done)
    assert "updated" not in (tmp_path / "run" / "log.txt").read_text()  # nothing is learned, so nothing was outpaced


@pytest.mark.parametrize("stops", [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(6, marks=pytest.mark.slow)])
def test_a_stopped_run_asks_again_for_what_was_under_way(stops, tmp_path):
    """In the bootstrap, at its end, and later; nothing is lost and nothing counted twice."""
    left = iter([False] * stops)
    part = run(uneven, tmp_path / "run", "map-elites", 9, workers=2, mode="async", stop=lambda: next(left, True))
    assert not part.finished
    before = untold(part)
    assert 0 < len(before) <= 16
    done = resume(tmp_path / "run", uneven, workers=3)
    assert done.finished
    assert_every_evaluation_counts_once(done)
    assert np.isin(before, untold(done), invert=True).any()


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["cvt-map-elites", "vq-elites", "aurora", "aurora-plus"])
def test_every_algorithm_runs_without_waiting_and_resumes(algorithm, tmp_path):
    left = iter([False] * 5)
    options = {"workers": 2, "mode": "async", "saving": Saving(every=1)}
    run(uneven, tmp_path / "run", algorithm, 12, **options, stop=lambda: next(left, True))
    done = resume(tmp_path / "run", uneven)
    assert_every_evaluation_counts_once(done)
    if "map" not in algorithm:
        assert int(done.state().trainings) >= 2
        assert done.metrics["loss"].notna().sum() == int(done.state().trainings)


@pytest.fixture(scope="module")
def learning():
    """A small VQ-Elites."""
    sizes = {"solution_dim": 4, "behavior_shape": (4,), "truth_dim": 2, "cells": 20, "iterations": 40}
    fast = {"batch_size": 16, "bootstrap": 48, "bootstrap_epochs": 2, "minibatch": 16, "epochs": 2, "update_every": 2}
    return VQElites(**{name: value for name, value in (sizes | fast).items() if name != "truth_dim"})._now.host.qd


@pytest.mark.slow
def test_workers_do_not_wait_for_training(learning, monkeypatch):
    """While a training takes as long as it likes, results are told and new solutions evaluated."""
    gate, trains = threading.Event(), threading.Event()
    train = Host.train

    def slow(self, at):
        if not at.bootstrapping:
            trains.set()
            assert gate.wait(60)
        return train(self, at)

    monkeypatch.setattr(Host, "train", slow)
    with PoolEvaluator(Simulator(unseen), 2) as evaluator:
        runs = Asynchronous(learning, evaluator)
        state, _ = runs.begin([0])
        state, _ = runs.advance(state, 0, 2)
        assert trains.wait(10)
        state, info = runs.advance(state, 2, 6)  # at least three trainings would be due meanwhile
        assert int(state.trainings[0]) == 1
        assert np.isnan(info.update.learn.loss).all()
        gate.set()
        while int(state.trainings[0]) == 1:
            state, info = runs.advance(state, int(state.iteration[0]), 1)
        assert np.isfinite(info.update.learn.loss).all()
        runs.close()


@pytest.mark.slow
def test_a_bootstrap_is_trained_on_once(learning):
    """A second training, on little more, used to begin after the first iteration and to delay those that were due."""
    with LocalEvaluator(Simulator(unseen)) as evaluator:
        runs = Asynchronous(learning, evaluator)
        state, _ = runs.begin([0])
        runs.advance(state, 0, 1)
        assert not runs.under_way(0)["training_due"]
        runs.close()


@pytest.mark.slow
def test_a_run_whose_evaluations_outpace_training_says_so(tmp_path, monkeypatch):
    """It had a quarter fewer bins, and nothing told why."""
    over, train, told = threading.Event(), Host.train, []

    def slow(self, at):
        assert at.bootstrapping or over.wait(300)
        return train(self, at)

    def observe(event):
        told.append(event)
        if isinstance(event, Status) and event.phase == "finished":
            over.set()

    monkeypatch.setattr(Host, "train", slow)
    run(uneven, tmp_path / "run", "vq-elites", iterations=12, mode="async", observe=observe)
    [note] = [event.text for event in told if isinstance(event, Note) and "The map" in event.text]
    assert "updated 0 times, where a run in step updates it 2 times" in note
    assert note in (tmp_path / "run" / "log.txt").read_text()


@pytest.mark.slow
def test_a_training_that_was_going_on_is_due_again_after_a_restart(learning):
    with LocalEvaluator(Simulator(unseen)) as evaluator:
        runs = Asynchronous(learning, evaluator)
        state, _ = runs.begin([0])
        for iteration in range(20):
            state, _ = runs.advance(state, iteration, 1)
            saved = runs.under_way(0)
            if saved["training_due"]:
                break
        runs.close()
        assert saved["training_due"]
    trained, window = int(state.trainings[0]), int(state.dataset.since_update[0])
    assert window >= 16  # what it was to be trained on is still there
    with LocalEvaluator(Simulator(unseen)) as evaluator:
        again = Asynchronous(learning, evaluator)
        again.restore(state, [saved])
        assert evaluator.pending == len(saved["pending_ids"])
        while int(state.trainings[0]) == trained:
            state, _ = again.advance(state, int(state.iteration[0]), 1)
        again.close()


@pytest.mark.slow
def test_the_number_under_way_is_bounded_for_several_runs(learning):
    most = []
    with PoolEvaluator(Simulator(unseen), 3) as evaluator:
        runs = Asynchronous(learning, evaluator, watch=lambda run, result: most.append(evaluator.pending))
        state, info = runs.begin([0, 1])
        state, info = runs.advance(state, 0, 5)
        assert state.seed.shape == (2,)
        assert info.tell.rejected.shape == (2, 5)
        np.testing.assert_array_equal(state.iteration, [5, 5])
        for run in range(2):
            told = int(state.next_id[run]) - len(runs.under_way(run)["pending_ids"])
            assert told == 48 + 5 * 16
        runs.close()
    assert 16 < max(most) <= 2 * 16


@pytest.mark.slow
def test_progress_tells_of_workers_while_it_goes_on(tmp_path):
    events = []
    run(uneven, tmp_path / "run", "map-elites", 5, workers=2, mode="async", observe=events.append)
    last = [event for event in events if isinstance(event, Status)][-1]
    assert last.activity.finished >= 48 + 5 * 16


def test_a_run_of_a_cluster_is_looked_at_on_this_machine():
    there = Evaluating(None, 5.0, 1, cluster="127.0.0.1:1", num_gpus=1, mode="async")
    assert (there.here.cluster, there.here.timeout, there.here.retries) == (None, 5.0, 1)
    assert there.here.workers >= 1
    assert Evaluating(3, mode="async").here == Evaluating(3, mode="async")


@pytest.mark.parametrize(
    "options", [{"mode": "later"}, {"cluster": ""}, {"num_gpus": 1}, {"cluster": "auto", "num_cpus": 0}]
)
def test_options_that_make_no_sense_are_refused(options, tmp_path):
    with pytest.raises(ValueError, match=next(reversed(options))):
        run(kick, tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()
