"""Explorers beside a search, and the cells that a search has: with real runs."""

import threading

import numpy as np
import pytest

import vqelites
from vqelites.explore.page import Explorer
from vqelites.runs.events import silent
from vqelites.runs.explored import ExploredRun
from vqelites.runs.run import Run

SMALL = {"iterations": 30, "batch_size": 16, "bootstrap": 64, "observe": silent}


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["map-elites", "cvt-map-elites"])
def test_hand_coded_cells_are_those_of_the_run(algorithm, tmp_path):
    own = {"cells": 40} if algorithm == "cvt-map-elites" else {}
    run = vqelites.run("planar-arm", algorithm, preset="quick", out=tmp_path / "run", **own, **SMALL)
    page = Explorer([ExploredRun(tmp_path / "run")])
    [view] = page.views
    np.testing.assert_array_equal(view.scene.centres, run.state().archive.cells)
    assert len(view.map.cells.data["xs"]) == len(run.archive)  # every elite has its own


@pytest.mark.long
def test_two_explorers_and_a_search_do_not_disturb_each_other(tmp_path):
    """The search finds what it finds alone, bit for bit, and both pages end with its last map."""
    own = {"cells": 24, "epochs": 2, "bootstrap_epochs": 2, **SMALL}
    alone = vqelites.run("planar-arm", out=tmp_path / "alone", preset="quick", **own)
    path, over, pages = tmp_path / "watched", threading.Event(), []

    def look():
        page = Explorer([ExploredRun(path)])
        pages.append(page)
        while not over.is_set():
            page.follow()
            over.wait(0.01)
        page.follow()

    watchers = [threading.Thread(target=look) for _ in range(2)]
    for watcher in watchers:
        watcher.start()
    watched = vqelites.run("planar-arm", out=path, preset="quick", **own)
    over.set()
    for watcher in watchers:
        watcher.join()

    def names(run):
        files = (str(file.relative_to(run.folder.path)) for file in run.folder.path.rglob("*"))
        return sorted(file for file in files if "/state/" not in file)  # where orbax chooses the names

    assert names(watched) == names(alone)
    for column in alone.metrics.columns.drop("seconds"):
        np.testing.assert_array_equal(watched.metrics[column], alone.metrics[column])
    np.testing.assert_array_equal(watched.archive.solutions, alone.archive.solutions)
    assert Run.load(path).finished
    for page in pages:
        assert not len(page.views[0].message)
        assert f"{len(alone.archive)} elites after iteration 30" in page.views[0].caption.object
