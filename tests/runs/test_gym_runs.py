"""Environments of Gymnasium run, resumed and verified like any simulator, and replayed by processes that know nothing
but the folder."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import tiny
from matplotlib import animation, pyplot
from PIL import Image

pytest.importorskip("gymnasium", reason="needs the extra gym: pip install 'vqelites[gym]'")

import vqelites
from vqelites import GymTask, cli
from vqelites.runs.files import RunError
from vqelites.runs.run import Run
from vqelites.runs.taskfiles import make_task
from vqelites.runs.verify import replay_all
from vqelites.tasks import Interface

FILE = Path(__file__).parents[1] / "gym_tasks.py"
SEARCH = ["--search.batch-size", 16, "--search.bootstrap", 48, "--no-draw", "--quiet"]
MODEL = ["--cells", 20, "--epochs", 2, "--model.bootstrap-epochs", 2, "--model.minibatch", 16]


def call(*arguments):
    """Its exit code."""
    try:
        cli.main([str(argument) for argument in arguments])
    except SystemExit as end:
        return end.code or 0
    return 0


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """A run of MAP-Elites, which is compiled quickly."""
    folder = tmp_path_factory.mktemp("walked") / "run"
    options = ["--task-file", FILE, "--algorithm", "map-elites", "--workers", 2, "--iterations", 3, "--out", folder]
    assert call("run", "walker", *options, *SEARCH) == 0
    return folder


def replayed(process, row):
    """The fitness that `vqelites replay` says an elite had, if it says that it is the stored one."""
    said = re.search(rf"Elite {row} of .*: fitness (\S+), as stored", " ".join(tiny.finish(process).split()))
    return float(said[1])


@pytest.mark.slow
def test_a_new_process_replays_elites_exactly(walked, cache, tmp_path):
    run = Run.load(walked)
    best = int(np.argmax(run.archive.fitness))
    first = tiny.command(cache, "replay", walked, "--task-file", FILE, "--out", tmp_path / "best.gif")
    second = tiny.command(cache, "replay", walked, 2, "--task-file", FILE, "--out", tmp_path / "second.mp4")
    assert replayed(first, best) == pytest.approx(run.archive.fitness[best], rel=1e-5)
    assert replayed(second, 2) == pytest.approx(run.archive.fitness[2], rel=1e-5)
    with Image.open(tmp_path / "best.gif") as film:
        assert 20 < film.n_frames <= 61  # frames that are alike are shown as one
        assert film.size == (600, 400)
    assert (tmp_path / "second.mp4").stat().st_size > 1000
    again = replay_all(run)
    assert again.exact == again.elites == len(run.archive)


def test_another_fitness_than_stored_is_said_and_an_error(walked, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(GymTask, "_seeds", lambda self, seed: [seed + 1])
    assert call("replay", walked, 0, "--task-file", FILE, "--out", tmp_path / "other.gif") == 1
    assert "it is NOT the same" in capsys.readouterr().out


def test_a_window_plays_the_film_until_it_is_closed(walked, monkeypatch, tmp_path, capsys):
    """As where there is a display: what would be seen in the window is written to a file instead."""
    playing = []

    class Seen(animation.FuncAnimation):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            playing.append(self)

    monkeypatch.setattr(animation, "FuncAnimation", Seen)
    monkeypatch.setattr(pyplot, "get_backend", lambda: "TkAgg")
    monkeypatch.setattr(pyplot, "show", lambda: playing[0].save(tmp_path / "window.gif", writer="pillow"))
    assert call("replay", walked, 0, "--task-file", FILE) == 0
    assert "as stored" in capsys.readouterr().out
    assert playing[0].event_source.interval == 20  # the walker's 50 frames per second
    with Image.open(tmp_path / "window.gif") as film:
        assert 20 < film.n_frames <= 61
    pyplot.close("all")


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["0", "--out", "film.avi"], "ends in .gif or .mp4"),
        (["0"], "There is no display"),  # as in tests
        (["99", "--out", "film.gif"], "The archive has elites 0 to"),
    ],
)
def test_what_cannot_be_shown_is_said(walked, asked, told, capsys):
    assert call("replay", walked, *asked, "--task-file", FILE) == 2
    assert told in capsys.readouterr().err


@pytest.mark.slow
def test_one_with_functions_is_given_again_in_python(tmp_path):
    limits = {"truth_low": (-3,), "truth_high": (3,), "bins": (9,)}
    task = GymTask("CartPole-v1", vector=4, steps=30, truth=lambda episode: episode.observations[-1][:1], **limits)
    small = {"batch_size": 16, "bootstrap": 48, "iterations": 3}
    whole = vqelites.run(task, "map-elites", out=tmp_path / "whole", **small)
    part = vqelites.run(task, "map-elites", out=tmp_path / "part", stop=lambda: True, **small)
    assert part.config.task == "CartPole-v1"
    assert not part.finished
    assert vqelites.resume(tmp_path / "part", task).finished
    np.testing.assert_array_equal(whole.archive.solutions, Run.load(tmp_path / "part").archive.solutions)
    with pytest.raises(ValueError, match=r"CartPole-v1 has an interface of its own; low"):
        vqelites.run(task, out=tmp_path / "other", low=-2)


@pytest.mark.parametrize("task", ["gym:LunarLandr-v3", "gym:LunarLandr-v3,behavior=frame"])
def test_a_wrong_id_is_said_before_any_work(task, tmp_path, capsys):
    assert call("run", task, "--out", tmp_path / "run") == 2
    assert "Did you mean LunarLander-v3" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_missing_extra_is_all_that_is_said(monkeypatch, tmp_path, capsys):
    """It was followed by advice about task files."""
    monkeypatch.setitem(sys.modules, "Box2D", None)  # as if it were not installed
    for name in [name for name in sys.modules if name.startswith("gymnasium.envs.box2d")]:
        monkeypatch.delitem(sys.modules, name)
    assert call("run", "gym:LunarLander-v3", "--out", tmp_path / "run") == 2
    assert " ".join(capsys.readouterr().err.split()).endswith('pip install "vqelites[gym]".')


def test_a_folder_whose_environment_cannot_be_made_here_can_be_looked_at():
    """An extra may be missing, or the task file that registers it; whoever wants to simulate is told so."""
    task = make_task("gym:NoSuchThing-v0", Interface(3, behavior_shape=(2,), truth_dim=0))
    assert task.behavior_shape == (2,)
    for tried in (task.source.simulate, task.source.render):
        with pytest.raises(RunError, match=r"cannot be simulated here: .*'NoSuchThing-v0'.*its file with --task-file"):
            tried(np.zeros(3), 0)


@pytest.mark.slow
def test_a_name_is_all_that_a_folder_needs(tmp_path, cache, capsys):
    """Options of the command line are part of it: stopped, resumed, verified and replayed without another word."""
    folder = tmp_path / "run"
    options = ["--behavior", "last observation", "--steps", 60, "--iterations", 3, "--out", folder]
    assert call("run", "gym:LunarLander-v3", *options, "--minutes", 1e-6, *SEARCH, *MODEL) == 0
    run = Run.load(folder)
    assert run.config.task == "gym:LunarLander-v3,behavior=last observation,steps=60"
    assert not run.finished
    assert call("show", folder) == 0
    assert f"continue with `vqelites resume {folder}`" in " ".join(capsys.readouterr().out.split())
    assert call("resume", folder, "--workers", 2, "--no-draw", "--quiet") == 0
    assert call("verify", folder) == 0
    best = int(np.argmax(Run.load(folder).archive.fitness))
    process = tiny.command(cache, "replay", folder, "--out", tmp_path / "best.gif")
    assert replayed(process, best) == pytest.approx(Run.load(folder).archive.fitness[best], rel=1e-5)
