"""The contract of every evaluator: what comes out depends on solutions and seeds alone."""

import functools
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import simulators

from vqelites.evaluation import (
    ClusterEvaluator,
    Failure,
    Kind,
    LocalEvaluator,
    PoolEvaluator,
    Simulator,
    Value,
    evaluation_seeds,
)

EVALUATORS = {
    "local": LocalEvaluator,
    "one worker": functools.partial(PoolEvaluator, workers=1),
    "three workers": functools.partial(PoolEvaluator, workers=3),
}


@pytest.fixture(params=[*EVALUATORS, pytest.param("cluster", marks=pytest.mark.long)])
def make(request):
    if request.param == "cluster":
        return functools.partial(ClusterEvaluator, address=request.getfixturevalue("cluster").address)
    return EVALUATORS[request.param]


def solutions_for(count, faults=(), seed=0):
    """Solutions (n, 2), fine but for the first ones, with ids in no order."""
    generator = np.random.default_rng(seed)
    solutions = np.stack([np.zeros(count), generator.random(count)], axis=1)
    solutions[: len(faults), 0] = faults
    return generator.permutation(count) + 100, solutions


def as_numbers(results):
    """Results in a form that can be compared bit for bit."""
    return [
        (result.id, result.attempts)
        + (
            (result.outcome.fitness, result.outcome.behavior.tolist(), result.outcome.truth.tolist())
            if isinstance(result.outcome, Value)
            else (result.outcome.kind, result.outcome.reason)
        )
        for result in results
    ]


def expected(simulate, ids, solutions, seeds):
    """A slow reference: one after the other, without an evaluator."""
    rows = [simulate(solution, seed) for solution, seed in zip(solutions, seeds, strict=True)]
    return [
        (name, 1, np.float32(f).item(), np.float32(b).tolist(), np.float32(t).tolist())
        for name, (f, b, t) in zip(ids.tolist(), rows, strict=True)
    ]


@pytest.mark.parametrize("batch", [False, True])
def test_results_are_those_of_the_simulator_in_the_order_of_ids(make, batch):
    ids, solutions = solutions_for(50)
    seeds = evaluation_seeds(3, ids)
    simulator = Simulator(simulators.batch if batch else simulators.noisy, batch=batch, behavior_shape=simulators.SHAPE)
    with make(simulator) as evaluator:
        for part in (slice(0, 1), slice(1, 50)):
            results = evaluator.evaluate(ids[part], solutions[part], seeds[part])
            assert as_numbers(results) == expected(simulators.noisy, ids[part], solutions[part], seeds[part])
        assert evaluator.evaluate([], np.zeros((0, 2)), []) == []


@pytest.mark.parametrize("batch", [False, True])
def test_an_evaluation_that_fails_costs_that_one(make, batch):
    faults = [simulators.RAISE, simulators.NAN, simulators.NONE, simulators.SHORT]
    ids, solutions = solutions_for(30, faults)
    seeds = evaluation_seeds(0, ids)
    simulate = simulators.batch if batch else simulators.tame
    simulator = Simulator(simulate, batch=batch, behavior_shape=simulators.SHAPE, truth_dim=simulators.TRUTH)
    with make(simulator, retries=2) as evaluator:
        results = evaluator.evaluate(ids, solutions, seeds)
        activity = evaluator.activity
    assert as_numbers(results[4:]) == expected(simulators.noisy, ids[4:], solutions[4:], seeds[4:])
    assert [result.attempts for result in results[:4]] == [3] * 4
    if not batch:  # how a batch says that it is None is up to it
        kinds = [result.outcome.kind for result in results[:4]]
        assert kinds == [Kind.RAISED, Kind.NONSENSE, Kind.NONSENSE, Kind.NONSENSE]
        assert activity.failed == {Kind.RAISED: 1, Kind.NONSENSE: 3}
    assert activity.finished == 30
    assert sum(activity.failed.values()) == 4
    assert activity.repeated >= 8


def test_what_fails_once_succeeds_when_retried(make, tmp_path):
    ids, solutions = solutions_for(6)
    simulator = Simulator(simulators.SecondTime(tmp_path, simulators.RAISE).simulate)
    with make(simulator, retries=1) as evaluator:
        results = evaluator.evaluate(ids, solutions, range(6))
    assert [result.attempts for result in results] == [2] * 6
    assert all(isinstance(result.outcome, Value) for result in results)


def test_more_may_be_submitted_while_results_arrive(make):
    ids, solutions = solutions_for(60)
    seeds = evaluation_seeds(0, ids)
    with make(Simulator(simulators.noisy)) as evaluator:
        evaluator.submit(ids[:5], solutions[:5], seeds[:5])
        assert evaluator.pending == 5
        given, found = 5, []
        for result in evaluator.results():
            found.append(result)
            if given < 60:
                evaluator.submit(ids[given : given + 1], solutions[given : given + 1], seeds[given : given + 1])
                given += 1
        assert evaluator.pending == 0
        assert evaluator.next() is None
    assert sorted(as_numbers(found)) == sorted(expected(simulators.noisy, ids, solutions, seeds))


def test_an_id_may_be_used_again_once_its_result_was_taken(make):
    with make(Simulator(simulators.noisy)) as evaluator:
        first, again = (evaluator.evaluate([5], np.ones((1, 2)), [1]) for _ in range(2))
    assert as_numbers(first) == as_numbers(again)


def test_a_simulator_cannot_spoil_solutions_or_earlier_values(make):
    ids, solutions = solutions_for(5)
    before = solutions.copy()
    with make(Simulator(simulators.spoils_its_input)) as evaluator:
        results = evaluator.evaluate(ids, solutions, range(5))
        solutions[:] = 0  # nor can whoever submitted them
    assert as_numbers(results) == expected(simulators.noisy, ids, before, range(5))


def test_activity_counts(make):
    ids, solutions = solutions_for(20)
    with make(Simulator(functools.partial(simulators.nap, seconds=0.01))) as evaluator:
        assert evaluator.activity.finished == 0
        evaluator.evaluate(ids, solutions, range(20))
        activity = evaluator.activity
    assert activity.workers >= 1
    assert activity.finished == 20
    assert (activity.queued, activity.running, activity.working) == (0, 0, 0)
    assert 0.2 <= activity.busy < 20
    assert (activity.repeated, activity.replaced, dict(activity.failed)) == (0, 0, {})


def test_activity_tells_another_thread_what_is_going_on(make):
    ids, solutions = solutions_for(30)
    seen = []
    with make(Simulator(simulators.nap)) as evaluator, ThreadPoolExecutor(1) as other:
        everything = other.submit(evaluator.evaluate, ids, solutions, range(30))
        while not everything.done():
            seen.append(evaluator.activity)
            time.sleep(0.01)
        everything.result()
    assert any(0 < now.working == now.workers <= now.running and now.queued and now.finished for now in seen)
    finished = [activity.finished for activity in seen]
    assert finished == sorted(finished)


def test_misuse_is_told(make):
    one = np.ones((1, 2))
    with make(Simulator(simulators.noisy)) as evaluator:
        with pytest.raises(ValueError, match=r"solutions must be numbers of shape \(n, s\).*\(2,\)"):
            evaluator.submit([0], np.ones(2), [0])
        with pytest.raises(ValueError, match="solutions must be numbers"):
            evaluator.submit([0], [["a"]], [0])
        with pytest.raises(ValueError, match=r"ids must be 1 whole numbers.*\(2,\)"):
            evaluator.submit([0, 1], one, [0])
        with pytest.raises(ValueError, match="seeds must be 1 whole numbers, one per solution, but are float64"):
            evaluator.submit([0], one, [0.5])
        with pytest.raises(ValueError, match="same id more than once"):
            evaluator.submit([1, 1], np.ones((2, 2)), [0, 0])
        assert evaluator.pending == 0
        evaluator.submit([7], one, [0])
        with pytest.raises(ValueError, match=r"ids \[7\] are pending already"):
            evaluator.submit([7], one, [0])
        with pytest.raises(RuntimeError, match="1 results are pending"):
            evaluator.evaluate([8], one, [0])


def test_closing_drops_what_is_pending(make):
    with make(Simulator(simulators.nap)) as evaluator:
        evaluator.submit(range(40), np.ones((40, 2)), range(40))
        evaluator.next()
    evaluator.close()
    assert evaluator.pending == 0
    assert evaluator.next() is None
    with pytest.raises(RuntimeError, match="closed"):
        evaluator.submit([0], np.ones((1, 2)), [0])


def test_a_failure_has_no_value(make):
    with make(Simulator(simulators.faulty)) as evaluator:
        [result] = evaluator.evaluate([0], [[simulators.RAISE, 0.5]], [0])
    assert isinstance(result.outcome, Failure)
    assert result.outcome.reason.startswith("ValueError: cannot stand 0.5 (simulators.py, line")
