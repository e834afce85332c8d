"""A study on a real cluster: run folders come back to this disk, and are those of this machine, bit for bit."""

import contextlib
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest
from small_studies import small

from vqelites.runs.events import Note
from vqelites.runs.files import RunError
from vqelites.runs.run import Run
from vqelites.studies import catalogue
from vqelites.studies.execute import run_study
from vqelites.studies.spread import Nodes


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A study of two runs, computed here one by one."""
    study, root = chosen(), tmp_path_factory.mktemp("alone")
    assert run_study(study, root, together=1)
    return root


def chosen():
    return small(catalogue.comparison(["planar-arm"], ["map-elites"], preset="quick", seeds=2))


def assert_same_runs(one, other):
    places = sorted(path.parent.relative_to(one) for path in one.rglob("config.json"))
    assert len(places) == 2
    for place in places:
        a, b = Run.load(one / place), Run.load(other / place)
        assert b.finished
        for x, y in zip(vars(a.archive).values(), vars(b.archive).values(), strict=True):
            assert x.tobytes() == y.tobytes()
        assert list(a.metrics["coverage"]) == list(b.metrics["coverage"])


def outposts():
    """Processes that compute runs."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if "ray::Outpost" in (path / "cmdline").read_text():
                found.append(int(path.name))
    return found


@pytest.mark.long
def test_runs_on_nodes_are_those_of_this_machine_though_one_is_killed(cluster, alone, tmp_path):
    heard, killed = [], []

    def kill_one():
        while not outposts():
            time.sleep(0.05)
        time.sleep(1)
        os.kill(outposts()[0], signal.SIGKILL)
        killed.append(1)

    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    assert run_study(chosen(), tmp_path, nodes=Nodes(cluster.address), watch=heard.append)
    assert killed
    assert_same_runs(alone, tmp_path)
    assert any(isinstance(progress.event, Note) and "goes on elsewhere" in progress.event.text for progress in heard)
    assert run_study(chosen(), tmp_path, nodes=Nodes(cluster.address))  # nothing is left to do
    assert not list(tmp_path.rglob(".*.tmp"))


@pytest.mark.long
def test_a_stopped_study_goes_on_from_the_folders_that_came_back(cluster, alone, tmp_path):
    heard = []
    nodes = Nodes(cluster.address)
    assert not run_study(chosen(), tmp_path, nodes=nodes, watch=heard.append, stop=lambda: len(heard) > 4)
    begun = [Run.load(path.parent) for path in tmp_path.rglob("config.json")]
    assert begun
    assert run_study(chosen(), tmp_path, nodes=nodes)
    assert_same_runs(alone, tmp_path)


def test_a_cluster_that_does_not_answer_leaves_the_study_as_it_was(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(RunError, match=r"127.0.0.1:1 does not answer"):
        run_study(chosen(), tmp_path, nodes=Nodes("127.0.0.1:1"))
    assert not list(tmp_path.rglob("config.json"))
    shutil.rmtree(tmp_path)
