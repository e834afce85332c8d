"""A study on a real cluster: run folders come back to this disk, and are those of this machine, bit for bit."""

import contextlib
import os
import shutil
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import small_simulators
from small_studies import small

from vqelites.runs.config import Saving
from vqelites.runs.events import Note
from vqelites.runs.files import RunError
from vqelites.runs.run import Run
from vqelites.runs.taskfiles import load_task_file
from vqelites.studies import catalogue, spread
from vqelites.studies.execute import run_study
from vqelites.studies.outpost import sources
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


class LosesANode:
    """Takes a node away when a run on it has come back half done, and adds another when the study has no room left."""

    def __init__(self, cluster, root):
        self.cluster, self.root, self.notes, self.lost = cluster, root, [], False
        self.node = self._added("127.0.0.7")

    def _added(self, address):
        small = {"include_dashboard": False, "object_store_memory": 80 * 2**20}
        return self.cluster.add_node(num_cpus=4, node_ip_address=address, **small)

    def __call__(self, progress):
        if isinstance(progress.event, Note):
            self.notes.append(progress.event.text)
            if "has room for a run with num_cpus=4" in self.notes[-1]:
                self.node = self._added("127.0.0.8")
        elif not self.lost and any(self.root.rglob("checkpoints/[0-9]*")):
            self.lost = True
            self.cluster.remove_node(self.node, allow_graceful=False)


@pytest.mark.long
def test_a_study_that_loses_its_node_goes_on_on_one_that_joins_later(cluster, tmp_path):
    """A simulator from a task file, from the folders that came back to the runs of this machine, bit for bit."""
    small_simulators.register()
    search = {"iterations": 300, "batch_size": 8, "bootstrap": 48}
    study = small(catalogue.comparison(["seen"], ["map-elites"], preset="quick", seeds=2), search=search)
    often = [replace(group, config=replace(group.config, saving=Saving(every=10))) for group in study.groups]
    study = replace(study, groups=tuple(often))
    assert run_study(study, tmp_path / "alone", together=1)
    watch = LosesANode(cluster, tmp_path / "cluster")
    nodes = Nodes(cluster.address, num_cpus=4, task_file=Path(small_simulators.__file__))  # no other has room for that
    try:
        assert run_study(study, tmp_path / "cluster", nodes=nodes, watch=watch)
    finally:
        cluster.remove_node(watch.node, allow_graceful=False)
    *lost, waits = watch.notes
    # Until Ray has noticed, it may send the run to the lost node once more.
    assert 0 < len(lost) < 4
    assert all("its node was lost; it goes on elsewhere" in note for note in lost)
    assert "has room for a run with num_cpus=4" in waits
    assert_same_runs(tmp_path / "alone", tmp_path / "cluster")
    logs = [path.read_text() for path in (tmp_path / "cluster").rglob("log.txt")]
    assert sum("resumed after iteration" in log for log in logs) == 1


@pytest.mark.long
def test_another_version_on_a_node_ends_a_study(cluster, tmp_path, monkeypatch):
    """Runs of different versions could not be compared."""
    ours = {**spread.versions(), "vqelites": "9.9"}
    monkeypatch.setattr(spread, "versions", lambda: ours)
    with pytest.raises(RunError, match=r"The node .* has vqelites .* instead of 9.9. Install the same"):
        run_study(chosen(), tmp_path, nodes=Nodes(cluster.address))
    assert not list(tmp_path.rglob("config.json"))


def task_file_importing(module, folder):
    """A task file, loaded here, that imports from another file."""
    (folder / "tasks.py").write_text(f"import {module}\n\n{module}.register()\n")
    load_task_file(folder / "tasks.py")
    return folder / "tasks.py"


def one_run():
    search = {"iterations": 3, "batch_size": 8, "bootstrap": 16}
    return small(catalogue.comparison(["seen"], ["map-elites"], preset="quick", seeds=1), search=search)


def test_what_a_task_file_imports_from_its_folder_is_sent_along(cluster, tmp_path):
    (tmp_path / "beside.py").write_text(Path(small_simulators.__file__).read_text())
    task_file = task_file_importing("beside", tmp_path)
    assert list(sources(task_file)) == ["tasks.py", "beside.py"]
    assert run_study(one_run(), tmp_path / "study", nodes=Nodes(cluster.address, task_file=task_file))


def test_a_task_file_that_fails_on_a_node_is_told_at_once(cluster, tmp_path, monkeypatch):
    """It imports what is not installed there. The study took the node for lost, ten times."""
    for name in ("here", "elsewhere"):
        (tmp_path / name).mkdir()
    (tmp_path / "elsewhere" / "only_here.py").write_text(Path(small_simulators.__file__).read_text())
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    nodes = Nodes(cluster.address, task_file=task_file_importing("only_here", tmp_path / "here"))
    shutil.rmtree(tmp_path / "elsewhere")
    heard = []
    with pytest.raises(RunError, match=r"On the node .* fails in line 1: ModuleNotFoundError: .*only_here"):
        run_study(one_run(), tmp_path / "study", nodes=nodes, watch=heard.append)
    assert not any(isinstance(progress.event, Note) for progress in heard)


def test_runs_that_fit_no_node_are_told(cluster, tmp_path):
    with pytest.raises(RunError, match=r"room for a run with num_cpus=1, num_gpus=1; all nodes together have 3 CPU, 0"):
        run_study(chosen(), tmp_path, nodes=Nodes(cluster.address, num_gpus=1))


def test_a_cluster_that_does_not_answer_leaves_the_study_as_it_was(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(RunError, match=r"127.0.0.1:1 does not answer"):
        run_study(chosen(), tmp_path, nodes=Nodes("127.0.0.1:1"))
    assert not list(tmp_path.rglob("config.json"))
    shutil.rmtree(tmp_path)
