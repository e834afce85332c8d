"""What a saved page holds of a run."""

import numpy as np
import pytest
from folders import write_run

from vqelites.explore import columns, packing
from vqelites.explore.page import Explorer
from vqelites.runs.explored import ExploredRun


@pytest.fixture
def run(tmp_path):
    return ExploredRun(write_run(tmp_path / "run"))


def test_a_damaged_snapshot_is_left_out_of_a_saved_page(run):
    (run.path / "snapshots" / "000005.npz").write_bytes(b"rubbish")
    record = run.read()
    moments, scenes = packing.scenes(run, record, run.scene(20))
    assert moments == [10, 20]
    assert [len(scene["id"]) for scene in scenes] == [30, 60]


def test_elites_that_were_replaced_have_no_row_in_the_archive(run):
    record = run.read()
    record.archive.ids[3] = -1
    scene = packing.scene(record, run.scene(5))
    assert scene["stored"].tolist() == [0, 1, 2, -1, *range(4, 15)]


@pytest.mark.parametrize("room", [1, 2, 7, 20, 30])
def test_the_moments_of_a_file_are_spread_evenly_and_have_the_one_that_is_shown(room):
    moments = list(range(10, 210, 10))
    kept = packing._fitting(moments, 150, room)
    assert 150 in kept
    assert room <= len(kept) <= room + 1 or kept == moments
    if room > 1:
        assert (kept[0], kept[-1]) == (10, 200)


@pytest.mark.parametrize("latent", [1, 2, 3])
def test_a_scene_has_every_column_that_the_archive_has_not(tmp_path, latent):
    run = ExploredRun(write_run(tmp_path / "deep", latent=latent))
    record, scene = run.read(), run.scene(20)
    packed, stored = packing.scene(record, scene), packing.archive(record, None)
    for name in columns.names(record, scene):
        kind, _, number = name.rpartition(" ")
        own = packed["columns"][name] if name in packed["columns"] else stored[kind][packed["stored"], int(number) - 1]
        np.testing.assert_allclose(own, columns.values(record, scene, name), rtol=1e-6)
    assert (packed["cells"] is not None) == (latent == 2)


def test_behaviors_that_are_too_large_are_left_out_which_the_page_says(run, monkeypatch):
    monkeypatch.setattr("vqelites.explore.elite_view._MOST_BYTES", 100)
    assert "Behaviors were too large to be saved" in Explorer([run]).as_html().getvalue().decode()


def test_a_run_that_was_never_saved_can_be_exported(tmp_path):
    run = ExploredRun(write_run(tmp_path / "begun", moments=(5, 10), saved=False))
    text = Explorer([run]).as_html().getvalue().decode()
    assert "A saved page with all snapshots" in text
    assert "too large" not in text
