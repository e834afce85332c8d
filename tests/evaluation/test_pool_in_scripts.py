"""Pools in scripts of their own: how they start, and that nothing is left of them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from children import alive, wait_until, workers_of

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes in /proc")

SCRIPT = """
import sys, time
import numpy as np
from vqelites.evaluation import PoolEvaluator, Simulator

def simulate(solution, seed):
    if seed == 1:
        time.sleep(1000)
    return 1.5, solution

{guard}
    evaluator = PoolEvaluator(Simulator(simulate), workers=2)
    [result] = evaluator.evaluate([0], np.zeros((1, 2)), [0])
    print(result.outcome.fitness, flush=True)
    {then}
"""


def script(tmp_path, guard='if __name__ == "__main__":', then="pass"):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT.format(guard=guard, then=then))
    return subprocess.Popen(
        [sys.executable, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def test_a_script_that_forgets_to_close_ends_all_the_same(tmp_path):
    process = script(tmp_path)
    assert process.communicate(timeout=60) == ("1.5\n", "")
    assert process.returncode == 0


def test_a_script_without_a_guard_is_told_so(tmp_path):
    process = script(tmp_path, guard="if True:")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert 'needs its own code under `if __name__ == "__main__":`' in errors


def test_code_without_a_file_works_as_in_a_notebook():
    code = SCRIPT.format(guard="if True:", then="evaluator.close()")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("1.5\n", "")


HANGS = "evaluator.submit([0], np.zeros((1, 2)), [1]); evaluator.next()"


def test_a_killed_run_leaves_no_workers_behind(tmp_path):
    process = script(tmp_path, then=HANGS)
    assert process.stdout.readline() == "1.5\n"
    wait_until(lambda: len(workers_of(process.pid)) == 2)
    pids = workers_of(process.pid)
    process.kill()
    process.communicate()
    wait_until(lambda: not any(map(alive, pids)))


def test_ctrl_c_does_not_reach_workers_that_are_still_starting(tmp_path):
    process = script(tmp_path, then="evaluator.close()")
    wait_until(lambda: len(workers_of(process.pid)) == 2)
    for pid in workers_of(process.pid):
        os.kill(pid, signal.SIGINT)
    assert process.communicate(timeout=60) == ("1.5\n", "")


def test_ctrl_c_reaches_the_script_and_not_its_workers(tmp_path):
    process = script(tmp_path, then=HANGS)
    assert process.stdout.readline() == "1.5\n"
    pids = workers_of(process.pid)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=60)
    assert errors.count("Traceback") == 1
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert not any(map(alive, pids))
