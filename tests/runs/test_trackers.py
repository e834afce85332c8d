"""Trackers show every metric, the pictures and the elites; they can neither break nor slow a run."""

import itertools
import json
import threading
import time

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


@pytest.fixture(autouse=True)
def _offline(monkeypatch):
    """Nothing leaves this machine."""
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setattr(tracking, "_EVERY", 0.01)


def run(out, **options):
    """A tiny run."""
    return vqelites.run("planar-arm", "map-elites", settings=TINY.settings, out=out, **{"observe": silent, **options})


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """A run that nobody follows."""
    return run(tmp_path_factory.mktemp("alone") / "run")


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


def test_tensorboard_has_every_metric_the_pictures_and_the_elites(tmp_path):
    done = run(tmp_path / "run", track="tensorboard")
    curves, images = scalars(tmp_path / "run" / "track" / "tensorboard")
    close(curves, known(done))
    assert images == {path.stem for path in (tmp_path / "run" / "figures").glob("*.png")} >= {"curves", "archive"}
    [place] = (tmp_path / "run" / "track" / "tensorboard").glob("*/archive/tensors.tsv")
    np.testing.assert_allclose(np.loadtxt(place, ndmin=2), done.archive.descriptors, rtol=1e-5)


def test_weights_and_biases_has_them_too_offline(tmp_path):
    done = run(tmp_path / "run", track=["wandb"])
    rows, files, _ = history(tmp_path / "run" / "track" / "wandb")
    curves = {}
    for row in rows:
        for name, value in row.items():
            if name in done.metrics.columns and name != "iteration":
                curves.setdefault(name, {})[row["iteration"]] = value
    close(curves, known(done))
    shown = {name.removeprefix("figures/").split(".")[0] for row in rows for name in row if name.startswith("figures/")}
    assert shown == {path.stem for path in (tmp_path / "run" / "figures").glob("*.png")}
    assert files == ["archive.npz"]


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


def test_a_finished_run_can_be_shown_afterwards(alone):
    folder = alone.folder.path
    assert not (folder / "track").exists()
    vqelites.resume(folder, track="tensorboard", observe=silent)
    close(scalars(folder / "track" / "tensorboard")[0], known(alone))


class Faulty(track.AbstractTracker):
    """Does the same whatever it is told."""

    def __init__(self, do):
        self.do = do

    def rows(self, rows):
        self.do()

    def figure(self, path, iteration):
        self.do()

    def archive(self, path, elites, iteration):
        self.do()

    def close(self):
        self.do()


def broken():
    """As an API that changed."""
    raise ConnectionError("no route to the tracker")


@pytest.mark.parametrize("when", ["when it is made", "when it is used"])
def test_an_error_in_a_tracker_is_told_and_the_run_goes_on(tmp_path, monkeypatch, alone, when):
    made = (lambda *_: broken()) if when == "when it is made" else (lambda *_: Faulty(broken))
    monkeypatch.setattr(track, "make", made)
    told = []
    tracked = run(tmp_path / "tracked", track="tensorboard", observe=told.append)
    notes = [event.text for event in told if isinstance(event, Note)]
    assert len(notes) == 1
    assert "The tracker tensorboard failed" in notes[0]
    assert "no route to the tracker" in notes[0]
    assert "no route to the tracker" in (tmp_path / "tracked" / "log.txt").read_text()
    np.testing.assert_array_equal(tracked.archive.solutions, alone.archive.solutions)


def test_a_tracker_that_hangs_is_left_behind(tmp_path, monkeypatch):
    forever = threading.Event()
    monkeypatch.setattr(track, "make", lambda *_: Faulty(forever.wait))
    monkeypatch.setattr(tracking, "_PATIENCE", 0.5)
    told, began = [], time.monotonic()
    done = run(tmp_path / "run", track="tensorboard", observe=told.append)
    assert time.monotonic() - began < 60
    assert done.finished
    assert any("left behind" in event.text for event in told if isinstance(event, Note))
    forever.set()


def test_the_command_line_takes_trackers_by_name(tmp_path):
    options = ["--out", str(tmp_path / "run"), "--track", "tensorboard", "--quiet"]
    with pytest.raises(SystemExit) as ended:
        cli.main(["run", *flags("map-elites", iterations=15), *options])
    assert ended.value.code == 0
    close(scalars(tmp_path / "run" / "track" / "tensorboard")[0], known(vqelites.Run.load(tmp_path / "run")))


def test_wrong_names_and_missing_packages_are_told_before_any_work(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"no tracker named 'tensorbord'\. Did you mean tensorboard"):
        run(tmp_path / "run", track="tensorbord")
    monkeypatch.setattr(track.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r'needs wandb: pip install "vqelites\[track\]"'):
        run(tmp_path / "run", track="wandb")
    assert not (tmp_path / "run").exists()
