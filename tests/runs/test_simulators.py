"""Simulators in plain Python as tasks: run, killed, resumed, shown, verified, with any number of workers."""

import functools
import os
import re
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pytest
import tiny
from kicks import kick, unreliable

import vqelites
from vqelites.runs import commands
from vqelites.runs.config import Saving
from vqelites.runs.events import Note, Status
from vqelites.runs.files import RunError
from vqelites.runs.run import Run
from vqelites.runs.verify import replay_all
from vqelites.tasks import Interface, registry

FILE = Path(__file__).parents[2] / "examples" / "my_simulator.py"
SMALL = {
    "batch_size": 16, "bootstrap": 48, "cells": 20, "epochs": 2, "bootstrap_epochs": 2, "minibatch": 16,
}  # fmt: skip
SEARCH = {"batch_size": 16, "bootstrap": 48, "bootstrap_epochs": 2, "minibatch": 16}
OWN = {
    "map-elites": {"batch_size": 16, "bootstrap": 48},
    "cvt-map-elites": {"batch_size": 16, "bootstrap": 48, "cells": 20},
    "vq-elites": SMALL,
    "aurora": SEARCH | {"target": 20, "capacity": 40, "epochs": 2},
    "aurora-plus": SEARCH | {"target": 20, "capacity": 40, "epochs": 2},
}


def run(simulate, out, algorithm="vq-elites", iterations=7, **options):
    known = {"solution_dim": 4, "truth_low": (-2, -2), "truth_high": (2, 2), "bins": (6, 6), "draw": False}
    return vqelites.run(simulate, algorithm, out=out, iterations=iterations, **known, **OWN[algorithm], **options)


resume = functools.partial(vqelites.resume, draw=False)


def assert_same_archive(one, other):
    for name, values in vars(one.archive).items():
        np.testing.assert_array_equal(values, getattr(other.archive, name), err_msg=name)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run(kick, tmp_path_factory.mktemp("whole") / "run")


def test_a_function_leaves_a_run_folder_like_any_task(whole):
    assert whole.finished
    assert (whole.config.task, whole.config.interface.behavior_shape, whole.config.interface.truth_dim) == (
        "kick",
        (4,),
        2,
    )
    table = whole.metrics
    assert list(table["evaluations"]) == [48 + 16 * i for i in range(8)]
    assert 0 < table["coverage"].iloc[-1] <= 1
    assert table["qd_score"].iloc[-1] == pytest.approx(whole.archive.fitness.sum(), rel=1e-5)
    assert np.isfinite(table["loss"].iloc[5])
    assert len(np.unique(whole.archive.ids)) == len(whole.archive) == table["size"].iloc[-1]


def test_snapshots_follow_the_elites_by_their_ids(whole):
    assert [moment.iteration for moment in whole.snapshots] == [1, 2, 3, 4, 5, 6, 7]
    last = whole.snapshots[-1]
    np.testing.assert_array_equal(last.ids, whole.archive.ids)
    np.testing.assert_array_equal(last.descriptors, whole.archive.descriptors)
    assert last.codes.shape == (20, 2)


def test_an_elite_of_a_noisy_simulator_does_again_exactly_what_is_stored(whole):
    """Its randomness is keyed by its id."""
    registry.simulator(name="kick", solution_dim=4)(kick)
    again, count = Run.load(whole.folder.path), len(whole.archive)
    assert str(replay_all(again)) == f"{count} of {count} elites do again exactly what is stored of them."
    np.testing.assert_array_equal(again.replay(0).behavior[0], whole.archive.behavior[0])


def test_elites_of_a_run_are_looked_up_by_behavior(whole):
    """Only ask/tell could."""
    np.testing.assert_array_equal(whole.lookup(whole.archive.behavior), np.arange(len(whole.archive)))
    assert whole.lookup(whole.archive.behavior[2]) == 2
    np.testing.assert_allclose(whole.describe(whole.archive.behavior), whole.archive.descriptors, atol=1e-6)


def test_a_run_can_be_looked_at_without_its_simulator(whole, capsys):
    again = Run.load(whole.folder.path)
    assert commands.show(again.folder.path) == 0
    assert "kick" in capsys.readouterr().out
    with pytest.raises(RunError, match="'kick' is not known here"):
        again.replay(0)
    assert again.state().iteration == 7


def test_a_run_knows_the_simulator_it_was_given(whole):
    """Its elites could not be replayed unless the function was registered by name."""
    path = whole.folder.path
    for known in (whole, Run.load(path, kick), resume(path, kick)):
        np.testing.assert_array_equal(known.replay(0).behavior[0], whole.archive.behavior[0])


@pytest.mark.parametrize("algorithm", [name for name in OWN if name != "vq-elites"])
@pytest.mark.slow
def test_every_algorithm_runs_a_simulator_and_resumes_exactly(algorithm, tmp_path):
    run(kick, tmp_path / "whole", algorithm)
    stops = iter([False] * 3)
    part = run(kick, tmp_path / "part", algorithm, stop=lambda: next(stops, True), saving=Saving(every=1))
    assert not part.finished
    resume(tmp_path / "part", kick)
    tiny.assert_same(tmp_path / "whole", tmp_path / "part")


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_number_of_workers_does_not_change_results(whole, workers, tmp_path):
    assert_same_archive(whole, run(kick, tmp_path / "run", workers=workers))


def test_failures_cost_one_evaluation_each_and_are_told_with_their_reason(tmp_path):
    events = []
    local = run(unreliable, tmp_path / "local", observe=events.append)
    pool = run(unreliable, tmp_path / "pool", workers=2, retries=1)
    assert_same_archive(local, pool)
    assert local.rejected == pool.rejected == local.metrics["rejected"].sum() > 5
    log = (tmp_path / "local" / "log.txt").read_text()
    assert "raised: RuntimeError: missed the ball (kicks.py, line" in log
    assert "returned nonsense: behavior is not finite" in log
    notes = [event.text for event in events if isinstance(event, Note)]
    assert any("failed or not finite" in text for text in notes)
    assert (
        sum(re.search(r"- \d+ evaluations raised: RuntimeError: missed the ball", text) is not None for text in notes)
        == 1
    )
    busy = [event.activity for event in events if isinstance(event, Status)]
    assert busy[-1].finished == 48 + 7 * 16
    assert sum(busy[-1].failed.values()) == local.rejected


def test_a_decorated_function_is_run_as_its_decorator_says(tmp_path):
    """It had to be told its solution_dim again, and its run could be resumed by no name."""
    known = {"truth_low": (-2, -2), "truth_high": (2, 2), "bins": (6, 6)}
    decorated = vqelites.simulator(solution_dim=4, name="my-kick", **known)(kick)
    done = vqelites.run(decorated, "map-elites", out=tmp_path / "run", iterations=7, draw=False, **OWN["map-elites"])
    assert (done.config.task, done.config.interface.bins) == ("my-kick", (6, 6))
    assert done.replay(0).fitness[0] == done.archive.fitness[0]


def test_a_simulator_that_never_works_is_an_error_before_any_work(tmp_path):
    def broken(solution, seed):
        raise ValueError("no such robot")

    with pytest.raises(RunError, match=r"does not work.*no such robot"):
        run(broken, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_finished_run_can_be_extended_and_goes_on_exactly(whole, tmp_path):
    for name in ("a", "b"):
        shutil.copytree(whole.folder.path, tmp_path / name)
    extended = resume(tmp_path / "a", kick, iterations=11)
    assert (extended.iteration, extended.finished) == (11, True)
    resume(tmp_path / "b", kick, iterations=8)
    again = resume(tmp_path / "b", kick, iterations=11)
    assert_same_archive(extended, again)
    assert list(again.metrics["iteration"]) == list(range(12))
    assert np.isfinite(again.metrics["loss"].iloc[10])
    with pytest.raises(RunError, match="planned for 11 iterations already"):
        resume(tmp_path / "b", kick, iterations=8)


def test_a_time_budget_ends_a_run_that_can_be_resumed(whole, tmp_path):
    def slow(solution, seed):
        time.sleep(0.001)
        return kick(solution, seed)

    part = run(slow, tmp_path / "run", iterations=7, minutes=1e-6)
    assert not part.finished
    resume(tmp_path / "run", slow)
    assert_same_archive(whole, Run.load(tmp_path / "run"))


def test_a_run_starts_from_given_solutions_and_resumes_with_them(tmp_path):
    given = np.array([[0.5, 0.1, -0.2, 0.9], [0, 0, 0, 0]], np.float32)
    tried = []

    def watched(solution, seed):
        tried.append(solution)
        return kick(solution, seed)

    stops = iter([False])
    run(watched, tmp_path / "part", "map-elites", start=given, stop=lambda: next(stops, True))
    np.testing.assert_array_equal(tried[1:3], given)  # the first evaluation finds out the shapes
    resume(tmp_path / "part", kick)
    assert_same_archive(run(kick, tmp_path / "whole", "map-elites", start=given), Run.load(tmp_path / "part"))
    assert 0 in Run.load(tmp_path / "whole").archive.ids or 1 in Run.load(tmp_path / "whole").archive.ids


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "at least 1 worker"),
        ({"timeout": 1.0}, "needs workers"),
        ({"cellz": 3}, "no setting named 'cellz'. Did you mean cells"),
        ({"start": np.zeros((500, 4))}, "bootstrap=500"),
        ({"minutes": -1}, "positive number of minutes"),
        ({"bounded": "yes"}, "bounded must be True or False, but is 'yes'"),
        ({"behavior_shape": 2.5}, "behavior_shape must be whole numbers"),
        ({"low": "high"}, "low must be a number, or one for each parameter"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_any_work(options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        run(kick, tmp_path / "run", **options)
    assert not (tmp_path / "run" / "config.json").exists()


def test_numbers_of_numpy_and_a_shape_of_one_number_are_taken():
    """`behavior_shape=4` was "'int' object is not iterable", as was a truth of one number."""
    given = Interface(np.int64(4), behavior_shape=4, bounded=np.bool_(True), truth_low=-1, truth_high=1, bins=6)
    plain = Interface(4, behavior_shape=(4,), bounded=True, truth_low=(-1.0,), truth_high=(1.0,), bins=(6,))
    assert given == plain
    assert (type(given.solution_dim), type(given.bounded)) == (int, bool)
    with pytest.raises(ValueError, match=r"bins must be a whole number of at least 1, but is 2\.5"):  # became 2
        Interface(4, truth_low=-1, truth_high=1, bins=2.5)


def test_a_name_that_nobody_knows_is_said_to_be_one(tmp_path):
    """It was said to have an interface of its own."""
    with pytest.raises(RunError, match=r"There is no task named 'kick'.*--task-file"):
        vqelites.run("kick", solution_dim=4, out=tmp_path / "run")


def test_a_jax_task_takes_no_workers(tmp_path):
    with pytest.raises(RunError, match="takes no workers"):
        vqelites.run("planar-arm", workers=2, out=tmp_path / "run")
    with pytest.raises(ValueError, match="interface of its own"):
        vqelites.run("planar-arm", solution_dim=3, out=tmp_path / "run")
    with pytest.raises(ValueError, match="needs solution_dim"):
        vqelites.run(kick, out=tmp_path / "run")


def flags(folder, workers):
    values = {"search.batch_size": 16, "search.bootstrap": 48, "cells": 20, "epochs": 2, "model.bootstrap_epochs": 2}
    values |= {"iterations": 40, "chunk": 5, "saving.every": 5, "workers": workers}
    named = [text for name, value in values.items() for text in (f"--{name.replace('_', '-')}", value)]
    return ["puck", "--task-file", FILE, *named, "--out", folder, "--no-draw"]


@pytest.mark.slow
@pytest.mark.shipped
def test_the_example_survives_sigkill_with_1_2_and_4_workers(cache, tmp_path):
    """Run, kill -9, resume with another number of workers, show, verify: all end in the same archive."""
    for workers in (1, 2, 4):
        folder = tmp_path / f"workers-{workers}"
        process = tiny.command(cache, "run", *flags(folder, workers), start_new_session=True)
        while not (folder / "checkpoints" / "000010").exists():
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        tiny.finish(tiny.command(cache, "resume", folder, "--task-file", FILE, "--workers", 5 - workers, "--no-draw"))
        assert "puck" in tiny.finish(tiny.command(cache, "show", folder))
        assert "do again exactly" in tiny.finish(tiny.command(cache, "verify", folder, "--task-file", FILE))
        tiny.assert_same(tmp_path / "workers-1", folder)


def test_elites_can_be_evaluated_again_with_mean_and_spread_kept(whole, capsys):
    registry.simulator(name="kick", solution_dim=4)(kick)
    before = whole.archive.fitness.copy()
    found = Run.load(whole.folder.path).reevaluate(4)
    assert commands.reevaluate(whole.folder.path, 4) == 0
    assert found.fitness.shape == (len(whole.archive), 4)
    np.testing.assert_allclose(found.mean, found.stored, rtol=1e-6)  # what is random here is the behavior
    kept = Run.load(whole.folder.path).reevaluated
    np.testing.assert_array_equal(kept.fitness, found.fitness)
    assert list(kept.to_pandas().columns) == ["id", "stored", "mean", "spread", "failed"]
    np.testing.assert_array_equal(Run.load(whole.folder.path).archive.fitness, before)
    assert "were evaluated 4 more times" in capsys.readouterr().out


def test_luck_shows_when_elites_are_evaluated_again(tmp_path):
    def lucky(solution, seed):
        return np.random.default_rng(seed).normal(), *kick(solution, seed)[1:]

    done = run(lucky, tmp_path / "run")
    registry.simulator(name="lucky", solution_dim=4)(lucky)
    found = Run.load(done.folder.path).reevaluate(20)
    assert np.median(found.stored) > 0.5
    assert abs(found.mean.mean()) < 0.2
    assert abs(found.spread.mean() - 1) < 0.2


def test_a_bootstrap_can_be_interrupted_saved_and_resumed(whole, tmp_path):
    stops = iter([False, True])
    part = run(kick, tmp_path / "part", stop=lambda: next(stops, True), workers=2, timeout=20)
    assert (part.iteration, len(part.metrics)) == (0, 0)
    assert part.state().bootstrapping
    assert commands.show(tmp_path / "part") == 0
    resume(tmp_path / "part", kick, timeout=30)  # by as many workers as before
    tiny.assert_same(whole.folder.path, tmp_path / "part")


class Drawn:
    """A simulator that can show what a solution does."""

    def simulate(self, solution, seed):
        return kick(solution, seed)

    def render(self, solution, seed):
        return [kick(solution, seed)[1]]


def test_an_elite_is_rendered_with_the_randomness_it_had(whole):
    with pytest.raises(RunError, match="not known here"):
        Run.load(whole.folder.path).render(0)
    registry.simulator(name="kick", solution_dim=4)(Drawn)
    [frame] = Run.load(whole.folder.path).render(3)
    np.testing.assert_array_equal(np.float32(frame), whole.archive.behavior[3])
    del registry._ENTRIES["kick"]
    registry.simulator(name="kick", solution_dim=4)(kick)
    with pytest.raises(RunError, match="has no method `render"):
        Run.load(whole.folder.path).render(3)


def fickle():
    """A simulator that shows another shape after its first evaluation."""
    calls = iter([4])
    return lambda solution, seed: (0.0, np.zeros(next(calls, 3)), np.zeros(2))


def test_a_bootstrap_in_which_everything_fails_is_an_error_with_the_reason(tmp_path):
    """It used to finish with an empty archive."""
    reason = (
        r"None of the 48 evaluations of the bootstrap could be used.*behavior must have shape \(4,\), but has \(3,\)"
    )
    with pytest.raises(RunError, match=reason):
        run(fickle(), tmp_path / "run", "map-elites")


def test_resuming_with_another_simulator_is_refused_before_anything_is_spoilt(whole, tmp_path):
    stops = iter([False])
    run(kick, tmp_path / "part", stop=lambda: next(stops, True))
    with pytest.raises(RunError, match=r"does not work.*behavior must have shape \(4,\), but has \(7,\)"):
        resume(tmp_path / "part", lambda solution, seed: (0.0, np.zeros(7), np.zeros(2)))
    assert_same_archive(resume(tmp_path / "part", kick), whole)


@pytest.mark.parametrize("start", [np.zeros((5, 3)), np.zeros(4), np.full((2, 4), np.nan)])
def test_solutions_to_start_from_must_be_solutions(start, tmp_path):
    with pytest.raises(RunError, match=r"must be finite numbers of shape \(n, 4\)"):
        run(kick, tmp_path / "run", start=start)
    assert not (tmp_path / "run" / "config.json").exists()


@pytest.mark.parametrize("seed", [1.5, "a", -1, None])
def test_a_seed_is_a_whole_number(seed, tmp_path):
    with pytest.raises(ValueError, match="seed"):
        run(kick, tmp_path / "run", seed=seed)
