"""Trackers show every metric, the pictures and the elites; they can neither break nor slow a run."""

import itertools
import json
import sys

import numpy as np
import pytest

pytest.importorskip("tensorboardX", reason="needs the extra track: pip install 'vqelites[track]'")
pytest.importorskip("wandb", reason="needs the extra track: pip install 'vqelites[track]'")

from followed import history, scalars
from tiny import config, flags

import vqelites
from vqelites import cli, track
from vqelites.runs import tracking
from vqelites.runs.events import Note, silent

TINY = config("map-elites", iterations=15)


@pytest.fixture(autouse=True, scope="module")
def _offline():
    """Nothing leaves this machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WANDB_MODE", "offline")
        yield


def run(out, **options):
    """A tiny run."""
    return vqelites.run("planar-arm", "map-elites", settings=TINY.settings, out=out, **{"observe": silent, **options})


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A run that nobody follows."""
    return run(tmp_path_factory.mktemp("alone") / "run")


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """A run that both trackers follow, named on the command line."""
    out = tmp_path_factory.mktemp("followed") / "run"
    options = ["--out", str(out), "--track", "tensorboard", "wandb", "--quiet"]
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", *flags("map-elites", iterations=15), *options])
    assert ended.value.code == 0
    return vqelites.Run.load(out)


def after(chunks):
    """Stop after so many chunks."""
    asked = itertools.count()
    return lambda: next(asked) >= chunks


def known(run_):
    """All that metrics.csv knows, {metric: {iteration: value}}."""
    table = run_.metrics.set_index("iteration")
    return {name: column.dropna().to_dict() for name, column in table.items() if column.notna().any()}


def close(curves, expected):
    """Whether curves have the same points; TensorBoard keeps 32 bits of each value."""
    assert sorted(curves) == sorted(expected)
    for name, points in expected.items():
        assert sorted(curves[name]) == sorted(points)
        np.testing.assert_allclose([curves[name][i] for i in points], list(points.values()), rtol=1e-6)


@pytest.mark.slow
def test_tensorboard_has_every_metric_the_pictures_and_the_elites(followed):
    place = followed.folder.path / "track" / "tensorboard"
    curves, images = scalars(place)
    close(curves, known(followed))
    assert images == {path.stem for path in followed.folder.figures.glob("*.png")} >= {"curves", "archive"}
    [elites] = place.glob("*/archive/tensors.tsv")
    np.testing.assert_allclose(np.loadtxt(elites, ndmin=2), followed.archive.descriptors, rtol=1e-5)


@pytest.mark.slow
def test_weights_and_biases_has_them_too_offline(followed):
    rows, files, _ = history(followed.folder.path / "track" / "wandb")
    curves = {}
    for row in rows:
        for name in set(row) & set(followed.metrics.columns) - {"iteration"}:
            curves.setdefault(name, {})[row["iteration"]] = row[name]
    close(curves, known(followed))
    shown = {name.removeprefix("figures/").split(".")[0] for row in rows for name in row if name.startswith("figures/")}
    assert shown == {path.stem for path in followed.folder.figures.glob("*.png")}
    assert files == ["archive.npz"]


@pytest.mark.long
def test_a_resumed_run_continues_its_curves(tmp_path):
    """Also where it was killed before it could note what it had shown: nothing is shown twice."""
    out, places = tmp_path / "run", ["tensorboard", "wandb"]
    first = run(out, track=places, stop=after(1))
    assert 0 < first.iteration < 15
    kept = out / "track" / "tensorboard" / "shown.json"
    assert json.loads(kept.read_text()) == {"iteration": first.iteration}
    kept.write_text(json.dumps({"iteration": first.iteration - 3}))
    done = vqelites.resume(out, observe=silent)  # followed as before
    assert done.finished
    close(scalars(out / "track" / "tensorboard")[0], known(done))
    rows, files, ids = history(out / "track" / "wandb", sessions=2)
    assert [row["iteration"] for row in rows if "size" in row] == list(range(16))
    assert len(ids) == 1
    assert files == ["archive.npz"]


def notes_of(out, alone, **options):
    """What a run is told of its trackers; it must find what a run finds that nobody follows."""
    told = []
    done = run(out, track="tensorboard", observe=told.append, **options)
    np.testing.assert_array_equal(done.archive.solutions, alone.archive.solutions)
    return [event.text for event in told if isinstance(event, Note)]


@pytest.mark.slow
def test_a_finished_run_is_shown_afterwards_by_the_trackers_that_work(monkeypatch, alone):
    """Here W&B refuses its settings, which is told, and TensorBoard goes on."""
    monkeypatch.setenv("WANDB_MODE", "nonsense")
    told, folder = [], alone.folder.path
    assert not (folder / "track").exists()
    vqelites.resume(folder, track=["wandb", "tensorboard"], observe=told.append)
    close(scalars(folder / "track" / "tensorboard")[0], known(alone))
    [note] = [event.text for event in told if isinstance(event, Note) and "tracker" in event.text]
    assert note.startswith("The tracker wandb failed and is left out; the run goes on. ")
    assert "nonsense" in note
    assert note in (folder / "log.txt").read_text()


@pytest.mark.slow
def test_trackers_that_crash_are_told_of(tmp_path, monkeypatch, alone):
    monkeypatch.setattr(tracking, "_COMMAND", (sys.executable, "-c", "import os; os.abort()"))
    assert notes_of(tmp_path / "run", alone) == ["Trackers ended with exit code -6."]


def test_trackers_that_hang_are_ended(tmp_path, monkeypatch, alone):
    monkeypatch.setattr(tracking, "_COMMAND", (sys.executable, "-c", "import time; time.sleep(1000)"))
    monkeypatch.setattr(tracking, "_PATIENCE", 0.5)
    assert notes_of(tmp_path / "run", alone) == ["Trackers were not done 0.5 s after the run and were ended."]


def test_trackers_that_cannot_be_started_are_told_of(tmp_path, monkeypatch, alone):
    monkeypatch.setattr(tracking, "_COMMAND", (str(tmp_path / "nothing"),))
    [note] = notes_of(tmp_path / "run", alone)
    assert note.startswith("Trackers could not be started; the run goes on. FileNotFoundError")


def test_a_run_resumes_where_its_tracker_is_not_installed(tmp_path, monkeypatch):
    first = run(tmp_path / "run", stop=after(1))
    (tmp_path / "run" / "track" / "wandb").mkdir(parents=True)
    (tmp_path / "run" / "track" / "wandb" / "shown.json").write_text("{}")
    monkeypatch.setattr(track.importlib.util, "find_spec", lambda name: None)
    told = []
    assert vqelites.resume(first.folder.path, observe=told.append).finished
    notes = [event.text for event in told if isinstance(event, Note)]
    assert any("needs wandb" in note and "goes on without it" in note for note in notes)


def test_wrong_names_and_missing_packages_are_told_before_any_work(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"no tracker named 'tensorbord'\. Did you mean tensorboard"):
        run(tmp_path / "run", track="tensorbord")
    monkeypatch.setattr(track.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r'needs wandb: pip install "vqelites\[track\]"'):
        run(tmp_path / "run", track="wandb")
    assert not (tmp_path / "run").exists()
