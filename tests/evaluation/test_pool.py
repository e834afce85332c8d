"""Workers that die, hang and are killed: each costs at most the evaluation whose fault it was."""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import simulators
from children import alive, wait_until, workers_of
from test_evaluators import as_numbers, solutions_for

from vqelites.evaluation import (
    EvaluatorError,
    Kind,
    LocalEvaluator,
    PoolEvaluator,
    Simulator,
    Value,
    base,
    evaluation_seeds,
)

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes in /proc")
TIMEOUT = 2.0


def evaluated(evaluator, count=6):
    """A few fine evaluations, which must come back as ever."""
    ids, solutions = solutions_for(count)
    seeds = evaluation_seeds(0, ids)
    results = evaluator.evaluate(ids, solutions, seeds)
    with LocalEvaluator(Simulator(simulators.noisy)) as local:
        assert as_numbers(results) == as_numbers(local.evaluate(ids, solutions, seeds))


def all_ready(evaluator, workers):
    wait_until(lambda: evaluator.activity.workers == workers)


@pytest.mark.parametrize(
    ("fault", "value", "kind", "reason"),
    [
        (simulators.HANG, 0.0, Kind.TIMED_OUT, "took more than 2 s"),
        (simulators.LEAVE, 0.0, Kind.DIED, "ended its worker (exit code 0)"),
        (simulators.LEAVE, 1.0, Kind.DIED, "ended its worker (exit code 1)"),
        (simulators.CRASH, 0.0, Kind.DIED, "ended its worker (signal 11, Segmentation fault)"),
    ],
)
def test_an_evaluation_that_takes_its_worker_along_costs_that_one(fault, value, kind, reason):
    with PoolEvaluator(Simulator(simulators.faulty), workers=2, timeout=TIMEOUT) as evaluator:
        evaluated(evaluator, 40)  # fast, so that what follows is sent in chunks
        ids, solutions = solutions_for(40)
        solutions[25] = fault, value
        results = evaluator.evaluate(ids, solutions, range(40))
        activity = evaluator.activity
        evaluated(evaluator)
    failure = results.pop(25)
    assert (failure.outcome.kind, failure.outcome.reason) == (kind, reason)
    assert all(isinstance(result.outcome, Value) for result in results)
    assert activity.failed == {kind: 1}
    assert (activity.running, activity.working) == (0, 0)
    assert 1 <= activity.replaced <= 2  # in company, then alone


@pytest.mark.parametrize("fault", [simulators.HANG, simulators.CRASH])
def test_a_batch_that_does_not_come_back_is_tried_one_by_one(fault):
    simulator = Simulator(simulators.hanging_batch, batch=True)
    with PoolEvaluator(simulator, workers=2, timeout=TIMEOUT) as evaluator:
        ids, solutions = solutions_for(12, [fault])
        results = evaluator.evaluate(ids, solutions, range(12))
    assert results[0].outcome.kind is (Kind.TIMED_OUT if fault == simulators.HANG else Kind.DIED)
    assert all(isinstance(result.outcome, Value) for result in results[1:])


@pytest.mark.parametrize("fault", [simulators.HANG, simulators.CRASH])
def test_what_dies_once_succeeds_when_retried(fault, tmp_path):
    simulator = Simulator(simulators.SecondTime(tmp_path, fault).simulate)
    with PoolEvaluator(simulator, workers=1, timeout=TIMEOUT, retries=1) as evaluator:
        [result] = evaluator.evaluate([0], [[0.0, 0.5]], [1])
    assert isinstance(result.outcome, Value)
    assert result.attempts == 2


def test_idle_workers_that_are_killed_are_replaced():
    """Pebble breaks its pool here."""
    with PoolEvaluator(Simulator(simulators.noisy), workers=2) as evaluator:
        evaluated(evaluator)
        all_ready(evaluator, 2)
        for pid in workers_of():
            os.kill(pid, signal.SIGKILL)
        evaluated(evaluator)
        assert evaluator.activity.replaced == 2


def test_workers_that_are_killed_while_they_start_are_replaced():
    """Pebble breaks its pool here too."""
    with PoolEvaluator(Simulator(simulators.noisy), workers=2) as evaluator:
        wait_until(lambda: len(workers_of()) == 2)  # their names are there a moment after they are
        for pid in workers_of():
            os.kill(pid, signal.SIGKILL)
        evaluated(evaluator)
        assert evaluator.activity.replaced == 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_an_evaluation_whose_worker_is_killed_is_repeated_and_not_counted(tmp_path, number):
    simulator = Simulator(simulators.Announced(tmp_path, seconds=1.0).simulate)
    with PoolEvaluator(simulator, workers=1) as evaluator:
        evaluator.submit([3], [[0.0, 0.5]], [1])
        for kills in range(3):
            wait_until(lambda kills=kills: len(list(tmp_path.iterdir())) > kills)
            [pid] = workers_of()
            os.kill(pid, number)
        [result] = evaluator.results()
        activity = evaluator.activity
    assert isinstance(result.outcome, Value)
    assert result.attempts == 1
    assert (activity.repeated, activity.replaced, sum(activity.failed.values())) == (3, 3, 0)


def test_an_evaluation_whose_worker_is_always_killed_fails_in_the_end():
    """As when it takes all memory and the system kills its worker every time."""
    with PoolEvaluator(Simulator(simulators.faulty), workers=2) as evaluator:
        ids, solutions = solutions_for(10, [simulators.SUICIDE])
        results = evaluator.evaluate(ids, solutions, range(10))
    assert results[0].outcome.kind is Kind.DIED
    assert results[0].outcome.reason.startswith("its worker was killed 10 times (signal 9, Killed)")
    assert all(isinstance(result.outcome, Value) for result in results[1:])


def test_workers_killed_one_after_the_other_are_not_blamed_on_one_evaluation(tmp_path, monkeypatch):
    """The first of the queue was begun again at once, hit again, and after some kills it had failed."""
    monkeypatch.setattr(base, "_KILLS", 3)
    simulator = Simulator(simulators.Announced(tmp_path, seconds=0.3).simulate)
    with PoolEvaluator(simulator, workers=1) as evaluator:
        evaluator.submit(range(4), np.zeros((4, 2)), range(4))
        for kills in range(4):
            wait_until(lambda kills=kills: len(list(tmp_path.iterdir())) > kills)
            [pid] = workers_of()
            os.kill(pid, signal.SIGKILL)
        results = list(evaluator.results())
    assert all(isinstance(result.outcome, Value) for result in results)


def test_a_time_out_ends_what_the_simulator_started(tmp_path):
    with PoolEvaluator(Simulator(simulators.Starts(tmp_path).simulate), workers=1, timeout=0.5) as evaluator:
        [result] = evaluator.evaluate([0], np.zeros((1, 2)), [0])
        [started] = tmp_path.iterdir()
        wait_until(lambda: not alive(int(started.name)))
    assert result.outcome.kind is Kind.TIMED_OUT


def test_a_worker_that_dies_is_noticed_although_what_it_started_holds_its_connection():
    with PoolEvaluator(Simulator(simulators.forks), workers=1) as evaluator:
        began = time.monotonic()
        [result] = evaluator.evaluate([0], np.zeros((1, 2)), [0])
    assert result.outcome.reason == "ended its worker (exit code 3)"
    assert time.monotonic() - began < 20


def test_a_time_out_is_that_of_one_evaluation_not_of_a_chunk():
    with PoolEvaluator(Simulator(simulators.nap), workers=1, timeout=1.0) as evaluator:
        results = evaluator.evaluate(range(30), np.zeros((30, 2)), range(30))
    assert all(isinstance(result.outcome, Value) for result in results)


def test_closing_ends_all_workers_even_those_that_hang():
    with PoolEvaluator(Simulator(simulators.faulty), workers=2) as evaluator:
        all_ready(evaluator, 2)
        pids = workers_of()
        evaluator.submit(range(2), np.full((2, 2), simulators.HANG), range(2))
        wait_until(lambda: evaluator.activity.running == 2)
        began = time.monotonic()
    assert time.monotonic() - began < 2
    assert len(pids) == 2
    assert not any(map(alive, pids))


def test_waiting_for_a_result_can_be_given_up():
    with PoolEvaluator(Simulator(simulators.nap), workers=1) as evaluator:
        evaluator.submit([0], np.zeros((1, 2)), [0])
        assert evaluator.next(timeout=0.001) is None
        assert evaluator.next().id == 0


def test_workers_do_not_import_jax():
    with PoolEvaluator(Simulator(simulators.modules), workers=1) as evaluator:
        [result] = evaluator.evaluate([0], np.zeros((1, 2)), [0])
    assert result.outcome.fitness == 0.0


def test_functions_without_a_name_are_sent_by_value():
    offset = 3.0
    with PoolEvaluator(Simulator(lambda solution, seed: (offset + seed, solution)), workers=1) as evaluator:
        [result] = evaluator.evaluate([0], np.zeros((1, 2)), [4])
    assert result.outcome.fitness == 7.0


def test_a_simulator_that_cannot_be_sent_is_told_at_once():
    lock = threading.Lock()
    with pytest.raises(EvaluatorError, match=r"cannot be sent to worker processes: .*lock"):
        PoolEvaluator(Simulator(lambda solution, seed: lock), workers=1)


def test_a_simulator_that_cannot_be_loaded_is_told_to_whoever_waits():
    with PoolEvaluator(Simulator(simulators.CannotLoad()), workers=2) as evaluator:
        for _ in range(2):
            evaluator.submit([evaluator.pending], np.zeros((1, 2)), [0])
            with pytest.raises(EvaluatorError, match="cannot be loaded in a worker process: OSError: no licence"):
                next(evaluator.results())


def test_workers_that_never_get_ready_are_not_replaced_for_ever():
    with PoolEvaluator(Simulator(simulators.leaves_while_loading()), workers=1) as evaluator:
        evaluator.submit([0], np.zeros((1, 2)), [0])
        with pytest.raises(EvaluatorError, match=r"ended before it was ready \(exit code 7\)"):
            evaluator.next()


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"workers": 1, "timeout": 0.0}, {"workers": 1, "retries": -1}])
def test_a_pool_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match="A pool needs workers >= 1"):
        PoolEvaluator(Simulator(simulators.noisy), **wrong)
