"""Run folders as the explorer reads them: while they change, and whatever is wrong with them."""

import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from folders import write_run

from vqelites.explore.source import NotShownError
from vqelites.runs.explored import ExploredRun, _frames
from vqelites.runs.files import RunError
from vqelites.runs.run import Run
from vqelites.studies import catalogue, study
from vqelites.studies.explored import sources
from vqelites.tasks import Film


@pytest.fixture
def folder(tmp_path):
    return write_run(tmp_path / "run")


def test_a_run_is_read_as_it_was_written(folder):
    record = ExploredRun(folder).read()
    assert record.title == "vq-elites on ball, quick, seed 0"
    assert record.progress == "finished, 20 iterations"
    assert record.moments == (5, 10, 20)
    assert len(record.archive) == 60
    assert record.metrics["iteration"].iloc[-1] == 20
    assert "'ball' is not known here" in record.no_replay


def test_scenes_are_the_snapshots(folder):
    run = ExploredRun(folder)
    first, last = run.scene(5), run.scene(20)
    assert (len(first.ids), len(last.ids)) == (15, 60)
    assert first.evaluations == 60 * 6
    assert first.centres.shape == (64, 2)
    np.testing.assert_array_equal(last.descriptors, Run.load(folder).archive.descriptors)


def test_a_run_that_goes_on_shows_its_newest_map(tmp_path):
    path = write_run(tmp_path / "run", moments=(5, 10), saved=False)
    run = ExploredRun(path)
    before, record = run.stamp(), run.read()
    assert record.archive is None
    assert record.progress == "iteration 10 of 20, nothing saved yet"
    shutil.copy(path / "snapshots" / "000010.npz", path / "snapshots" / "000015.npz")  # not reached in metrics.csv
    assert run.stamp() != before
    assert run.read().moments == (5, 10)


def test_a_checkpoint_between_snapshots_is_shown_with_the_cells_of_before(tmp_path):
    path = write_run(tmp_path / "run")
    (path / "snapshots" / "000020.npz").unlink()
    run = ExploredRun(path)
    assert run.read().moments == (5, 10, 20)
    scene = run.scene(20)
    assert (len(scene.ids), scene.centres_iteration) == (60, 10)


@pytest.mark.parametrize("name", ["config.json", "archive.npz", "metrics.csv"])
def test_a_damaged_file_is_named_in_a_sentence(folder, name):
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: len(data) // 2])
    with pytest.raises(NotShownError, match=name):
        ExploredRun(folder).read()


def test_a_damaged_snapshot_is_named_in_a_sentence(folder):
    (folder / "snapshots" / "000010.npz").write_bytes(b"PK rubbish")
    run = ExploredRun(folder)
    assert run.read().moments == (5, 10, 20)
    with pytest.raises(NotShownError, match=r"000010\.npz is damaged"):
        run.scene(10)


def test_foreign_and_vanished_folders_are_sentences(folder, tmp_path):
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    with pytest.raises(NotShownError, match="not a run folder"):
        ExploredRun(foreign).read()
    run = ExploredRun(folder)
    before = run.stamp()
    shutil.rmtree(folder)
    assert run.stamp() != before
    with pytest.raises(NotShownError, match="no folder"):
        run.read()
    with pytest.raises(NotShownError, match="no folder"):
        run.scene(5)


def test_a_task_that_is_not_known_is_a_sentence_when_an_elite_is_replayed(folder):
    with pytest.raises(NotShownError, match="'ball' is not known here"):
        ExploredRun(folder).replay(int(Run.load(folder).archive.ids[0]))


def test_a_task_in_jax_that_is_not_known_is_a_sentence(tmp_path):
    record = ExploredRun(write_run(tmp_path / "run", in_jax=True)).read()
    assert "There is no task named 'ball'" in record.no_replay
    assert "--task-file" in record.no_replay


class Ball:
    """A simulator that renders."""

    def simulate(self, solution, seed):
        return 0.0, np.zeros(6), np.zeros(2)

    def render(self, solution, seed):
        return np.full((4, 8, 8, 3), 255, np.uint8)


def test_a_notebook_replays_with_the_simulator_that_its_run_was_given(folder, monkeypatch):
    """Only simulators that are known by a name were found."""
    monkeypatch.setattr("vqelites.explore.page.live", lambda sources: sources)  # it needs a browser
    run = Run.load(folder, Ball())
    [source] = run.explore()
    assert source.read().no_replay == ""
    assert source.replay(int(run.archive.ids[0])).shape == (4, 8, 8, 3)


def test_what_can_neither_render_nor_draw_says_so(folder):
    given = Run.load(folder, lambda solution, seed: (0.0, np.zeros(6), np.zeros(2))).simulator
    assert ExploredRun(folder, simulator=given).read().no_replay == "ball can neither render nor draw an elite."


@pytest.mark.parametrize("shown", [np.full((3, 8, 8, 3), 255, np.uint8), Film(np.full((3, 8, 8, 3), 255, np.uint8))])
def test_frames_that_a_simulator_renders_are_shown(shown):
    frames = _frames(shown)
    assert frames.shape == (3, 8, 8, 3)
    assert (frames == 1).all()


def test_what_is_no_frames_is_a_sentence():
    with pytest.raises(NotShownError, match="`render` returned str"):
        _frames("a window")


class _Exploding:
    def __reduce__(self):
        return (Path.touch, (Path("exploded"),))


def test_no_pickle_is_loaded(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez(folder / "archive.npz", allow_pickle=True, ids=np.array([_Exploding()], object), about=np.array("{}"))
    with pytest.raises(NotShownError):
        ExploredRun(folder).read()
    (folder / "snapshots" / "000010.npz").write_bytes(pickle.dumps(_Exploding()))
    with pytest.raises(NotShownError):
        ExploredRun(folder).scene(10)
    assert not (tmp_path / "exploded").exists()


def test_links_out_of_the_given_folder_are_not_followed(tmp_path):
    inside = write_run(tmp_path / "study" / "run")
    outside = write_run(tmp_path / "secret")
    (tmp_path / "study" / "link").symlink_to(outside)
    with pytest.raises(NotShownError, match="leads out of"):
        ExploredRun(tmp_path / "study" / "link", root=tmp_path / "study").read()
    shutil.rmtree(inside / "snapshots")
    (inside / "snapshots").symlink_to(outside / "snapshots")
    with pytest.raises(NotShownError, match="leads out of"):
        ExploredRun(inside).read()


def test_a_folder_that_is_not_there_is_an_error_at_once(tmp_path, folder):
    with pytest.raises(RunError, match="no folder"):
        sources([tmp_path / "nowhere"])
    assert [source.name for source in sources([folder, folder])] == [str(folder)]


def test_a_study_offers_all_its_runs_begun_or_not(tmp_path):
    planned = catalogue.comparison(["planar-arm"], ["vq-elites"], preset="quick", seeds=2)
    root = tmp_path / "study"
    root.mkdir()
    study.write(planned, root)
    write_run(planned.groups[0].folder(root, 1))
    waiting, begun = sources([root])
    assert begun.name == f"{root}: vq-elites on planar-arm, seed 1"
    assert begun.read().moments == (5, 10, 20)
    with pytest.raises(NotShownError, match="There is no folder"):
        waiting.read()


def test_a_folder_of_runs_offers_them(tmp_path, folder):
    """It was said to be no run folder."""
    write_run(tmp_path / "another")
    (tmp_path / "notes").mkdir()
    assert [source.name for source in sources([tmp_path])] == [str(tmp_path / "another"), str(folder)]
    (tmp_path / "link").symlink_to(write_run(tmp_path.parent / f"{tmp_path.name}-outside"))
    with pytest.raises(NotShownError, match="leads out of"):
        sources([tmp_path])[1].read()


def test_reading_leaves_a_folder_as_it_was(folder):
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    run = ExploredRun(folder)
    run.read()
    run.scene(10)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
