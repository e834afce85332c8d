"""The whole way on the command line: a study of both arms, interrupted and continued, and its report in a browser."""

import os
import signal
import subprocess
import sys

import pytest
from browser import CHROMIUM, opened

from vqelites.studies.load import load_study

STUDY = [
    "study", "arm", "arm-constrained", "--algorithms", "vq-elites", "map-elites", "aurora", "aurora-plus",
    "--seeds", "3", "--preset", "quick", "--iterations", "20",
]  # fmt: skip


def command(*arguments):
    return subprocess.Popen(
        [sys.executable, "-c", "from vqelites.cli import main; main()", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "XLA_FLAGS": "", "COLUMNS": "200"},  # these train long enough for optimised programs
    )


@pytest.mark.long
def test_a_study_of_both_arms_and_its_report(tmp_path):
    root = tmp_path / "study"
    process = command(*STUDY, "--out", root)
    for line in process.stdout:
        if line.startswith("[3/24 runs finished] map-elites"):
            process.send_signal(signal.SIGINT)
            break
    output, _ = process.communicate(timeout=900)
    assert process.returncode == 128 + signal.SIGINT, output
    assert "The same command continues it." in output

    process = command(*STUDY, "--out", root)
    output, _ = process.communicate(timeout=1800)
    assert process.returncode == 0, output
    assert "vq-elites on arm," not in output  # finished before, not computed again
    assert "Finished: 24 runs" in output

    data = load_study(root)
    assert data.notes == ()
    assert len(data.results) == 24
    assert (data.results.groupby(["task", "algorithm"]).size() == 3).all()
    assert (data.results["coverage"] > 0.1).all()

    output, _ = (process := command("report", root)).communicate(timeout=600)
    assert process.returncode == 0, output
    page = (root / "report.html").read_text()
    # The setting; of each task curves, archives, gallery, elites at work; decoded codes and their drift.
    assert page.count("<figure") == 2 + 2 * (1 + 4 + 1 + 1) + 2 * 2
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: all but opening the report was tested")
    found = opened(root / "report.html", tmp_path)
    assert found.console == []
    assert found.requests == []


@pytest.mark.long
def test_a_study_configured_otherwise_is_refused_with_a_message(tmp_path):
    arguments = ["study", "planar-arm", "--algorithms", "map-elites", "--seeds", "1", "--preset", "quick"]
    first = command(*arguments, "--iterations", "10", "--out", tmp_path / "study", "--quiet")
    output, _ = first.communicate(timeout=300)
    assert (first.returncode, output) == (0, "")
    again = command(*arguments, "--iterations", "20", "--out", tmp_path / "study")
    output, _ = again.communicate(timeout=300)
    assert again.returncode == 2
    assert output.startswith("vqelites: ")
    assert "settings.search.iterations 10 -> 20" in output
    assert "Traceback" not in output
