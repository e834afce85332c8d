"""Many faults and kills at once: exact counts, and the values of one process. `make soak` runs the long version."""

import contextlib
import os
import random
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import simulators
from children import workers_of
from test_evaluators import as_numbers, solutions_for

import vqelites
from vqelites.evaluation import Kind, LocalEvaluator, PoolEvaluator, Simulator, Value, evaluation_seeds

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes in /proc")
TIMEOUT = 2.0
SHAPED = {"behavior_shape": simulators.SHAPE, "truth_dim": simulators.TRUTH}


def kill_now_and_then(stop, kills, dice):
    """Kill a worker from outside every second or two, whatever it does."""
    while not stop.wait(dice.uniform(0.5, 2.0)):
        pids = workers_of()
        if pids:
            with contextlib.suppress(ProcessLookupError):  # it may have ended by itself meanwhile
                os.kill(dice.choice(pids), signal.SIGKILL)
                kills.append(1)


@pytest.mark.slow
@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.soak)])
def test_a_storm_of_faults_and_kills_changes_no_value_and_no_count(count):
    """5 % raise, hang, kill their worker or return nonsense, while workers are killed from outside."""
    dice = random.Random(count)
    faults = [simulators.RAISE, simulators.NAN, simulators.NONE, simulators.HANG, simulators.LEAVE, simulators.CRASH]
    ids, solutions = solutions_for(count)
    for i in dice.sample(range(count), count // 20):
        solutions[i, 0] = dice.choice(faults)
    seeds = evaluation_seeds(0, ids)
    stop, kills = threading.Event(), []
    killer = threading.Thread(target=kill_now_and_then, args=(stop, kills, dice))
    with PoolEvaluator(Simulator(simulators.faulty, **SHAPED), 4, timeout=TIMEOUT, retries=1) as evaluator:
        killer.start()
        try:
            results = evaluator.evaluate(ids, solutions, seeds)
        finally:
            stop.set()
            killer.join()
        activity = evaluator.activity
    with LocalEvaluator(Simulator(simulators.tame, **SHAPED), retries=1) as local:
        alone = local.evaluate(ids, solutions, seeds)
    fine = [isinstance(result.outcome, Value) for result in results]
    assert fine == (solutions[:, 0] == simulators.FINE).tolist()
    values, reference = ([r for r, ok in zip(found, fine, strict=True) if ok] for found in (results, alone))
    assert as_numbers(values) == as_numbers(reference)
    assert activity.finished == count
    assert (activity.running, activity.working) == (0, 0)
    assert activity.failed == expected_failures(solutions[:, 0])
    assert kills
    print(f"\n{count} evaluations, {len(kills)} kills, {activity}")


def expected_failures(faults):
    kinds = {
        Kind.RAISED: [simulators.RAISE],
        Kind.NONSENSE: [simulators.NAN, simulators.NONE],
        Kind.TIMED_OUT: [simulators.HANG],
        Kind.DIED: [simulators.LEAVE, simulators.CRASH],
    }
    return {kind: int(np.isin(faults, codes).sum()) for kind, codes in kinds.items()}


LEARNED = {"cells": 40, "epochs": 1, "bootstrap_epochs": 1, "update_every": 20}
HAND_CODED = {"truth_low": (-1,), "truth_high": (1,), "bins": (20,)}


@pytest.mark.parametrize(
    ("algorithm", "own", "batch", "iterations"),
    [
        pytest.param("map-elites", HAND_CODED, 50, 4, marks=pytest.mark.long),
        pytest.param("vq-elites", LEARNED, 100, 90, marks=pytest.mark.soak, id="10000 evaluations"),
    ],
)
def test_a_run_in_a_storm_is_the_run_of_one_process(algorithm, own, batch, iterations, tmp_path):
    """Finished, with exact counts, and the same archive bit for bit, though workers are killed from outside too."""
    sizes = {"solution_dim": 2, "batch_size": batch, "bootstrap": 10 * batch, "iterations": iterations}
    options = {"algorithm": algorithm, **sizes, **own, "draw": False}
    stop, kills = threading.Event(), []
    killer = threading.Thread(target=kill_now_and_then, args=(stop, kills, random.Random(0)))
    killer.start()
    try:
        run = vqelites.run(simulators.stormy, **options, workers=4, timeout=TIMEOUT, out=tmp_path / "storm")
    finally:
        stop.set()
        killer.join()
    alone = vqelites.run(simulators.calm, **options, out=tmp_path / "alone")
    count = (10 + iterations) * batch
    assert run.metrics["evaluations"].iloc[-1] == count
    seeds = evaluation_seeds(0, range(count))
    assert (
        run.rejected
        == alone.rejected
        == sum(simulators.fault_of(seed) != simulators.FINE for seed in seeds)
        > 0.03 * count
    )
    for name, values in vars(run.archive).items():
        np.testing.assert_array_equal(values, getattr(alone.archive, name), err_msg=name)
    assert kills
