"""Runs of simulators in plain Python as people see them: pictures, progress, summaries, logs."""

import re

import numpy as np
import pytest
import small_simulators
from PIL import Image

import vqelites
from vqelites.runs import commands
from vqelites.runs.events import Status
from vqelites.runs.files import RunError
from vqelites.tasks import registry

_SEARCH = {"iterations": 10, "batch_size": 8, "bootstrap": 48}
_MODEL = {"bootstrap_epochs": 2, "epochs": 2, "minibatch": 16}


@pytest.fixture(scope="module")
def blind(tmp_path_factory):
    """Of a simulator of which nothing is known, with what was told meanwhile."""
    told = []
    out = tmp_path_factory.mktemp("blind") / "run"
    run = vqelites.run(
        small_simulators.blind, preset="quick", out=out, solution_dim=3, cells=24, observe=told.append,
        **_SEARCH, **_MODEL,
    )  # fmt: skip
    return run, [event for event in told if isinstance(event, Status)]


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Of one with a truth, bins and a drawing, which nobody registered."""
    out = tmp_path_factory.mktemp("seen") / "run"
    known = small_simulators.SEEN
    return vqelites.run(
        small_simulators.Seen(), "map-elites", preset="quick", out=out, solution_dim=3, **known, **_SEARCH
    )


def pictures(run):
    return sorted(path.stem for path in run.folder.figures.iterdir())


@pytest.mark.slow
def test_without_a_truth_pictures_are_of_learned_space_and_of_behaviors(blind):
    run, _ = blind
    assert pictures(run) == ["codes", "curves", "gallery", "latent"]
    assert "could not be drawn" not in (run.folder.path / "log.txt").read_text()


@pytest.mark.slow
def test_a_simulator_that_draws_draws_its_own_elites(seen):
    assert pictures(seen) == ["archive", "curves", "elites", "gallery"]
    image = np.asarray(Image.open(seen.folder.figures / "elites.png").convert("RGB"), int)
    assert (np.ptp(image, axis=2) > 100).sum() > 500  # lines in many colours


def test_a_drawing_that_fails_leaves_the_other_pictures(tmp_path):
    class Clumsy(small_simulators.Seen):
        def draw(self, axes, solutions):
            raise RuntimeError("no pencil")

    known = small_simulators.SEEN
    run = vqelites.run(Clumsy(), "map-elites", preset="quick", out=tmp_path / "run", solution_dim=3, **known, **_SEARCH)
    assert pictures(run) == ["archive", "curves", "gallery"]
    assert "no pencil" in (run.folder.path / "log.txt").read_text()


def test_show_says_what_the_simulator_is_and_leaves_out_what_nobody_knows(blind, seen, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    run, _ = blind
    assert commands.show(run.folder.path) == 0
    text = capsys.readouterr().out
    assert "A simulator: 3 numbers in a solution, behavior of shape 8x2, no truth, evaluated in this process." in text
    assert f"Evaluations that failed or were not finite, kept out: {run.rejected}; log.txt says why." in text
    assert re.search(r"qd_score +│ +\d", text)
    for name in ("coverage", "pqd", "edr"):
        assert f"│ {name} " not in text
    assert commands.show(seen.folder.path) == 0
    text = capsys.readouterr().out
    assert "behavior of shape 8x2, truth of 2 numbers in 6x6 bins, evaluated in this process." in text
    assert re.search(r"coverage +│ +0\.\d", text)


def test_the_log_names_the_five_most_frequent_reasons_and_counts_the_others(tmp_path):
    def fragile(solution, seed):
        if solution[0] > 0:
            letters = "".join(chr(97 + int(digit)) for digit in f"{solution[0]:.6f}"[2:])
            raise ValueError(f"broke at {solution[0]:.6f} in {letters}")  # reasons that differ in numbers only are one
        return 0.0, solution, solution[:2]

    limits = {"truth_low": (-2, -2), "truth_high": (2, 2), "bins": (4, 4)}
    run = vqelites.run(
        fragile, "map-elites", preset="quick", out=tmp_path / "run", solution_dim=2, bounded=True, **limits, **_SEARCH
    )
    lines = (run.folder.path / "log.txt").read_text().splitlines()
    first = lines[: next(i for i, line in enumerate(lines) if "saved after iteration 0" in line)]
    assert sum("broke at" in line for line in first) == 5
    assert any(re.search(r"more reasons for failures: \d+$", line) for line in first)


class Homesick(small_simulators.Seen):
    """Works only in the process in which it was made."""

    def __reduce__(self):
        return _lost, ()


def _lost():
    raise RuntimeError("where am I?")


def test_a_pool_that_cannot_go_on_ends_the_run_with_a_message(tmp_path):
    """The evaluator's error used to pass as a traceback where the shapes were stated, so that nothing was probed."""
    known = {**small_simulators.SEEN, "behavior_shape": (8, 2)}
    with pytest.raises(RunError, match=r"where am I\?.*vqelites resume"):
        vqelites.run(
            Homesick(), "map-elites", preset="quick", out=tmp_path / "run", solution_dim=3, workers=1, **known,
            **_SEARCH,
        )  # fmt: skip
    assert "failed: " in (tmp_path / "run" / "log.txt").read_text()


def test_a_busy_simulator_is_told_with_what_its_evaluator_does(blind):
    _, told = blind
    assert told[0].phase == "starting"
    for event in told:
        assert event.activity is not None
        assert event.activity.finished <= 48 + 8 * 10
    assert told[-1].activity.finished == 48 + 8 * 10


def test_nothing_was_registered_for_these_runs():
    assert not {"blind", "Seen", "fragile"} & set(registry.names())
