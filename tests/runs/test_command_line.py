"""The command line as people use it: help, lists, messages, and a task of their own."""

import io
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny

from vqelites import cli
from vqelites.evaluation import Activity, Kind
from vqelites.experiments import presets
from vqelites.runs import metrics_file, programs, progress
from vqelites.runs.config import Evaluating
from vqelites.runs.events import Note, Status
from vqelites.runs.progress import Display
from vqelites.runs.run import Run
from vqelites.tasks import registry

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_task.py"


@pytest.fixture(autouse=True)
def _wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")


def call(capsys, *arguments):
    """Exit code, output and errors of a command."""
    try:
        cli.main([str(argument) for argument in arguments])
        code = 0
    except SystemExit as end:
        code = end.code or 0
    captured = capsys.readouterr()
    assert "Traceback" not in captured.out + captured.err
    return code, captured.out, captured.err


def test_the_version_is_the_installed_one(capsys):
    code, output, _ = call(capsys, "--version")
    assert code == 0
    assert re.fullmatch(r"vqelites \d+\.\d+\.\d+\n", output)


def test_help_lists_the_commands(capsys):
    code, output, _ = call(capsys, "--help")
    assert code == 0
    for name in ("run", "resume", "show", "verify", "tasks", "algorithms"):
        assert f" {name} " in output


def test_help_of_a_run_shows_the_presets_numbers_and_what_they_mean(capsys):
    code, output, _ = call(capsys, "run", "arm", "--help")
    text = re.sub(r"[│\s]+", " ", output)
    assert code == 0
    assert "--cells INT cells: the codes of the codebook, and the largest size of the archive (default: 1500)" in text
    assert "--search.iterations INT iterations of the run; learning rate and cooperation" in text
    assert "--model.latent-dim INT numbers in a learned descriptor (default: 5)" in text
    _, quick, _ = call(capsys, "run", "arm", "--preset", "quick", "--algorithm", "aurora", "--help")
    assert "--k-csc FLOAT" in quick
    assert "(default: 600)" in quick
    assert "--cells" not in quick


def test_every_setting_of_every_algorithm_has_a_meaning(capsys):
    for name in presets.algorithms():
        _, output, _ = call(capsys, "run", "mobile-l", "--algorithm", name, "--help")
        text = re.sub(r"[│\s]+", " ", output)
        assert not re.search(r"--[\w.-]+ (INT|FLOAT|\{[^}]*\}(\|\w+)?) \((default|required)", text)


def test_lists_show_sizes_and_meanings(capsys):
    code, output, _ = call(capsys, "tasks")
    assert code == 0
    assert re.search(r"mobile-l\s+114\s+64x64x1\s+2-D\s+2025\s+577 of 900", output)
    for name in registry.names():
        assert registry.summary(name) in output.replace("\n", " ")
    _, output, _ = call(capsys, "algorithms")
    for name in presets.algorithms():
        assert re.search(rf"{name} +│? *\w+", output)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "planr-arm"], "There is no task named 'planr-arm'. Did you mean planar-arm"),
        (["run", "arm", "--algorithm", "aurra"], "There is no algorithm named 'aurra'. Did you mean aurora"),
        (["run", "arm", "--preset", "fast"], "There is no preset named 'fast'."),
        (["run", "arm", "--algorithm"], "argument --algorithm: expected one argument."),
        (["run", "arm", "--iterations", "0"], "iterations must be a whole number of at least 1, but is 0."),
        (["run", "arm", "--seed", "-1"], "seed must be a whole number from 0 to 4294967295, but is -1."),
        (["run", "arm", "--chunk", "0"], "Expected chunk, keep and every >= 1"),
        (["run", "arm", "--cooperate", "3"], "cooperate is a share of the run"),
        (["run", "arm", "--task-file", "nowhere.py"], "There is no task file nowhere.py."),
        (["resume", "nowhere"], "There is no folder nowhere."),
        (["show", "."], "is not a run folder: it has no config.json."),
        (["verify", "nowhere"], "There is no folder nowhere."),
    ],
)
def test_mistakes_get_one_clear_message(capsys, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, output, errors = call(capsys, *arguments)
    assert code == 2
    assert errors.startswith("vqelites: ")
    assert message in errors
    assert errors.count("\n") == 1
    assert output == ""
    assert not list(tmp_path.rglob("config.json"))


def test_a_nested_setting_that_makes_no_sense_is_named_as_users_know_it(capsys):
    """It was "Error parsing __tyro-dummy-inner__.settings.search"."""
    code, _, errors = call(capsys, "run", "arm", "--search.batch-size", "0")
    assert code == 2
    assert "batch_size must be a whole number of at least 1, but is 0." in re.sub(r"[│\s]+", " ", errors)
    assert "dummy" not in errors


def test_misspelt_options_suggest_the_right_ones(capsys):
    code, _, errors = call(capsys, "run", "arm", "--cellz", "10")
    assert code == 2
    assert "--cells" in errors


def broken(tmp_path, text, name="broken.py"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_a_broken_task_file_is_named_with_its_line(capsys, tmp_path):
    code, _, errors = call(capsys, "tasks", "--task-file", broken(tmp_path, "x = 1\ny = z\n"))
    assert code == 2
    assert "broken.py fails in line 2: NameError: name 'z' is not defined" in errors
    code, _, errors = call(capsys, "tasks", "--task-file", broken(tmp_path, "x = (\n"))
    assert code == 2
    assert "fails in line 1: SyntaxError" in errors


@pytest.mark.shipped  # exact replays: other compilers round otherwise in other programs
def test_a_task_of_ones_own_from_one_file(capsys, tmp_path, monkeypatch):
    folder = tmp_path / "run"
    options = tiny.flags("map-elites", iterations=20)[1:]
    code, output, errors = call(capsys, "run", "throw", *options, "--out", folder, "--task-file", EXAMPLE)
    assert code == 0, errors
    assert "map-elites on throw, seed 0: 20 iterations" in output
    assert f"Finished. The run is in {folder}" in output
    assert "\x1b" not in output
    run = Run.load(folder)
    assert "my_task" not in (folder / "config.json").read_text()
    assert len(run.archive) > 20
    names = ["archive.png", "curves.png", "elites.png", "gallery.png"]
    assert sorted(path.name for path in (folder / "figures").iterdir()) == names
    code, output, _ = call(capsys, "show", folder)
    assert "map-elites on throw, preset quick, seed 0: finished, 20 iterations" in output
    assert re.search(r"coverage +│ +0\.\d+ +│", output)
    assert f"Pictures in {folder / 'figures'}: {', '.join(names)}" in output.replace("\n", "")
    code, output, _ = call(capsys, "verify", folder)
    assert code == 0
    assert f"{len(run.archive)} of {len(run.archive)} elites do again exactly" in output
    _, output, _ = call(capsys, "tasks", "--task-file", EXAMPLE)
    assert re.search(r"throw\s+2\s+16x2\s+2-D\s+400\s+\d+ of 144", output)
    # In a process that does not know the task, the name alone is not enough.
    monkeypatch.delitem(registry._ENTRIES, "throw")
    programs._compiled.cache_clear()
    code, _, errors = call(capsys, "resume", folder)
    assert code == 2
    assert "There is no task named 'throw'." in errors
    assert "pass its file with --task-file" in errors


def test_an_existing_folder_needs_overwrite_and_quiet_is_quiet(capsys, tmp_path):
    folder = tmp_path / "run"
    options = ["run", *tiny.flags("map-elites", iterations=10), "--out", folder, "--no-draw"]
    assert call(capsys, *options, "--quiet") == (0, "", "")
    code, _, errors = call(capsys, *options)
    assert code == 2
    assert f"{folder} exists and is not empty. Continue that run with `vqelites resume {folder}`" in errors
    assert call(capsys, *options, "--overwrite")[0] == 0
    code, output, _ = call(capsys, "resume", folder, "--no-draw")
    assert code == 0
    assert "there is nothing left to compute" in output
    shutil.rmtree(folder / "checkpoints")
    (folder / "archive.npz").unlink()
    code, output, _ = call(capsys, "show", folder)
    assert "not finished: 10 of 10 iterations, saved up to 0" in output


def status(phase, iteration, seconds=1.0, activity=None, workers=None, cluster=None, **latest):
    config = replace(tiny.config("vq-elites", iterations=40), evaluating=Evaluating(workers, cluster=cluster))
    known = {name: np.array(latest.get(name, [np.nan] * 2)) for name in metrics_file.COLUMNS}
    return Status(config, (0, 1), phase, iteration, 40, seconds, known, activity)


def test_progress_in_plain_lines_shows_what_is_known():
    file = io.StringIO()
    with Display(file=file) as display:
        display(status("starting", 0))
        display(status("running", 10, 10.0, coverage=[0.25, 0.75], size=[4, 8]))
        display(status("running", 20, 12.0, coverage=[0.5, 0.7], size=[4, 8]))  # too soon for another line
        display(Note("something [odd]"))
        display(status("finished", 40, 14.0, coverage=[0.5, 0.5], pqd=[3, 3], size=[9, 9], loss=[0.5, 0.5]))
    lines = file.getvalue().splitlines()
    assert lines == [
        "vq-elites on planar-arm, 2 seeds: 40 iterations; the first compiles",
        "iteration 10/40  coverage 0.500  size 6",
        "something [odd]",
        "iteration 40/40  5 it/s  coverage 0.500  PQD 3.0  size 9  loss 0.5",
    ]


def test_progress_that_is_quiet_shows_nothing():
    file = io.StringIO()
    with Display("quiet", file=file) as display:
        display(status("running", 10))
        display(Note("hidden"))
    assert file.getvalue() == ""


def test_the_bar_shows_rate_and_metrics():
    file = io.StringIO()
    with Display("bar", file=file) as display:
        display.console.width = 160
        display(status("starting", 0))
        display(status("running", 10, 10.0, coverage=[0.25, 0.75]))
        display(
            status(
                "running",
                20,
                12.0,
                coverage=[0.5, 0.7],
                codes_used=[10, 12],
                perplexity=[7, 8],
                saturated=[0, 0.1],
                loss=[1, 3],
            )
        )
    last = file.getvalue()
    assert "vq-elites on planar-arm, 2 seeds" in last
    assert "20/40" in last
    assert "5 it/s  coverage 0.600  codes 11  perplexity 8  saturated 5%  loss 2" in last


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only when told to."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_a_bootstrap_tells_how_far_it_is_and_how_fast(clock):
    """It used to print `iteration 0/40` with nothing behind it, twice a second."""
    file = io.StringIO()
    with Display(file=file) as display:
        display(status("starting", 0, activity=Activity(), workers=2))
        for count in range(0, 48, 2):  # of 2 seeds with 64 each, half a second apart
            clock[0] += 0.5
            display(status("evaluating", 0, activity=Activity(2, queued=60 - count, finished=count), workers=2))
    assert file.getvalue().splitlines() == [
        "vq-elites on planar-arm, 2 seeds: 40 iterations; the first compiles",
        "bootstrap: 0 of 128 evaluations  2 workers, 60 queued",
        "bootstrap: 40 of 128 evaluations  4 evaluations/s  2 workers, 20 queued",
    ]


def test_progress_of_a_simulator_without_bins_shows_size_best_and_qd_score_and_failures_by_kind(clock):
    file = io.StringIO()
    failed = Counter({Kind.RAISED: 3, Kind.TIMED_OUT: 1, Kind.DIED: 0})
    latest = {"evaluations": [64, 64], "size": [20, 30], "max_fitness": [0.5, 0.7], "qd_score": [-12, -14]}
    with Display(file=file) as display:
        clock[0] = 100
        display(status("running", 10, activity=Activity(2, finished=1000), **latest))
        clock[0] = 101
        display(status("running", 20, 3.0, activity=Activity(2, finished=1500), **latest))  # too soon
        clock[0] = 110.5
        display(
            status(
                "evaluating", 20, 3.0, activity=Activity(1, queued=7, finished=2450, failed=failed), workers=1, **latest
            )
        )
        display(status("finished", 40, 9.0, activity=Activity(1, finished=2450, failed=failed), workers=1, **latest))
    assert file.getvalue().splitlines() == [
        "iteration 10/40  size 25  best 0.6  QD score -13",
        "iteration 20/40  5 it/s  100 evaluations/s  1 worker, 7 queued  4 failed (3 raised, 1 timed out)  size 25  "
        "best 0.6  QD score -13  0:00:04 left",
        "iteration 40/40  5 it/s  100 evaluations/s  4 failed (3 raised, 1 timed out)  size 25  best 0.6  QD score -13",
    ]


def test_progress_on_a_cluster_shows_nodes_workers_queue_and_failures(clock):
    file = io.StringIO()
    activity = Activity(12, queued=30, finished=98, failed=Counter({Kind.DIED: 2}), nodes=3)
    with Display(file=file) as display:
        display(status("evaluating", 0, activity=activity, cluster="auto"))
    line = "bootstrap: 98 of 128 evaluations  3 nodes, 12 workers, 30 queued  2 failed (2 died)"
    assert file.getvalue().splitlines() == [line]


def test_evaluations_per_second_forget_a_long_pause(clock):
    """Training or compiling may take minutes; soon afterwards it is the simulator's speed again."""
    speed = progress.Speeds()
    for moment, finished in ((0, 0), (1, 100), (60, 200), (61, 300), (71, 1300)):
        clock[0] = moment
        speed.see(status("evaluating", 0, activity=Activity(finished=finished)))
    assert speed.evaluations == 100


def test_the_bar_shows_what_a_simulator_does():
    file = io.StringIO()
    with Display("bar", file=file) as display:
        display.console.width = 160
        display(status("starting", 0, activity=Activity(), workers=2))
        display(status("evaluating", 0, activity=Activity(2, queued=5, finished=64), workers=2))
    assert "bootstrap: 64 of 128 evaluations  2 workers, 5 queued" in file.getvalue()
