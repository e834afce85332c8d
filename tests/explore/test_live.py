"""`vqelites run --explore`: a real search, followed in a real browser."""

import re
import signal
import subprocess
import sys

import pytest
from chromium import browser, needs_chromium

from vqelites.runs.run import Run

_TASK = """
import time
import numpy as np
import vqelites

@vqelites.simulator(name="slow", solution_dim=3, bounded=True)
def simulate(solution, seed):
    time.sleep(0.005)
    return -float((solution**2).sum()), np.cumsum(solution)
"""
_SMALL = [
    "--preset", "quick", "--iterations", "100", "--search.batch-size", "16", "--search.bootstrap", "64", "--no-draw",
    "--cells", "24", "--epochs", "2", "--model.bootstrap-epochs", "2", "--model.minibatch", "16",
]  # fmt: skip


@needs_chromium
@pytest.mark.long
def test_curves_and_map_move_while_the_run_goes_on(tmp_path):
    (tmp_path / "task.py").write_text(_TASK)
    command = [sys.executable, "-m", "vqelites", "run", "slow", "--task-file", "task.py", "--out", "run", "--explore"]
    with (
        subprocess.Popen([*command, *_SMALL], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process,
        browser() as page,
    ):
        try:
            url = re.search(r"Follow the run at (\S+)", process.stdout.readline())[1]
            page.tab.goto(url)
            moments = []
            while not moments or moments[-1] < 100:
                caption = page.tab.get_by_text(re.compile(r"elites after iteration \d+"))
                caption.wait_for(timeout=120_000)
                moment = int(re.search(r"iteration (\d+)", caption.inner_text())[1])
                moments += [moment] if moments[-1:] != [moment] else []
            page.tab.get_by_text("finished, 100 iterations").wait_for(timeout=60_000)
            assert len(moments) > 3
            assert page.wrong == []
            said = iter(process.stdout.readline, "")
            assert "The page stays until Ctrl-C.\n" in said  # said after what the page shows was written
            process.send_signal(signal.SIGINT)
            rest, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    assert rest == ""
    assert Run.load(tmp_path / "run").finished
