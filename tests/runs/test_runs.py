"""Runs in folders, in this process: groups of seeds, exact resume, what a loaded run offers, what can go wrong."""

import errno
import os
import re
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny

import vqelites
from vqelites.descriptors import chosen
from vqelites.experiments.build import build
from vqelites.runs import checkpoints, commands, runner, verify
from vqelites.runs.events import Note, Status
from vqelites.runs.files import RunError
from vqelites.runs.folder import locked
from vqelites.runs.programs import programs
from vqelites.runs.run import Run
from vqelites.runs.verify import problems, replay_all
from vqelites.tasks import PlanarArm, registry
from vqelites.types import Evaluation

pytestmark = pytest.mark.also_shipped
SEEDS = (3, 8)


def stop_after(calls):
    """Asked after the bootstrap and every chunk: say stop at the given call."""
    left = iter(range(calls))
    return lambda: next(left, None) is None


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Two seeds of VQ-Elites computed together, never interrupted."""
    parent = tmp_path_factory.mktemp("whole")
    config = tiny.config("vq-elites", iterations=40)
    outcome = runner.execute(config, {seed: parent / f"seed-{seed}" for seed in SEEDS})
    assert outcome == runner.Outcome(tuple(parent / f"seed-{seed}" for seed in SEEDS), 40, True)
    return parent


def test_the_folder_holds_what_the_loop_alone_computes(whole):
    config = Run.load(whole / "seed-3").config
    runs = programs(config, None, None).runs
    state, _ = runs.begin(jnp.array(SEEDS))
    for first in range(0, 40, 5):
        state, info = runs.advance(state, first, 5)
    for index, seed in enumerate(SEEDS):
        run = Run.load(whole / f"seed-{seed}")
        elites = jax.tree.map(lambda x, i=index: np.asarray(x[i]), state.archive.elites)
        assert run.archive.fitness.tobytes() == elites.fitness[elites.valid].tobytes()
        assert run.archive.behavior.tobytes() == elites.behavior[elites.valid].tobytes()
        assert np.array_equal(run.archive.cells, np.flatnonzero(elites.valid))
        last = run.metrics.iloc[-1]
        for name in ("size", "coverage", "pqd", "edr", "cds", "max_fitness", "entropy"):
            assert np.float32(last[name]) == info.measures[name][index, -1]
        assert last["elites_lost"] == info.update.lost[index, -1]


def test_metrics_have_a_row_per_iteration_and_training_only_where_one_was(whole):
    run = Run.load(whole / "seed-3")
    table = run.metrics
    assert list(table["iteration"]) == list(range(41))
    assert list(table["evaluations"]) == [64 + 16 * i for i in range(41)]
    trained = (table["iteration"] % 5 == 0) & (table["iteration"] <= 36)  # and the bootstrap, row 0; the end is frozen
    for name in ("loss", "perplexity", "codes_used"):
        assert (table[name].notna() == trained).all()
    assert (table["codes_used"].dropna() >= table["perplexity"].dropna() - 1e-4).all()
    assert (table["seconds"].diff().dropna() >= 0).all()
    assert table["size"].iloc[-1] == len(run.archive)


def test_codebooks_are_those_of_the_model(whole):
    run = Run.load(whole / "seed-8")
    assert [book.iteration for book in run.codebooks] == [10, 20, 30, 40]
    state, qd = run.state(), build(run.task, run.config.settings)
    last = run.codebooks[-1]
    assert last.codes.tobytes() == np.asarray(qd.descriptor.cells(state.descriptor)).tobytes()
    np.testing.assert_allclose(last.decoded, qd.descriptor.decode(state.descriptor, last.codes), atol=1e-6)


def test_an_elite_does_again_what_is_stored_of_it(whole):
    run = Run.load(whole / "seed-3")
    index = int(run.archive.fitness.argmax())
    elite = run.elite(index)
    assert elite.fitness == run.archive.fitness.max()
    assert run.replay(index).behavior.tobytes() == elite.behavior.tobytes()
    assert run.replay(index).fitness == elite.fitness
    with pytest.raises(IndexError, match="has elites 0 to"):
        run.elite(len(run.archive))


def test_a_finished_run_verifies_exactly(whole):
    run = Run.load(whole / "seed-3")
    assert problems(run) == []
    result = replay_all(run)
    assert (result.exact, result.same_machine) == (len(run.archive), True)
    assert result.good


def test_verify_finds_an_elite_that_lies(whole, tmp_path, monkeypatch):
    shutil.copytree(whole / "seed-3", tmp_path / "run")
    run = Run.load(tmp_path / "run")
    run.archive.fitness[2] += 1e-6
    result = replay_all(run)
    assert result.exact == result.elites - 1
    assert not result.good


@pytest.mark.parametrize(("share", "good"), [(0.04, True), (0.2, False)])
def test_elsewhere_nearly_all_elites_must_have_their_fitness_within_a_percent(whole, monkeypatch, share, good):
    run = Run.load(whole / "seed-3")
    monkeypatch.setattr(verify, "differences", lambda *_: ["device: one -> another"])
    run.archive.fitness[:] *= 1.005
    lying = int(share * len(run.archive))
    run.archive.fitness[:lying] += 0.1
    run.archive.behavior[:] += 0.3  # rounding that grew
    result = replay_all(run)
    assert (result.exact, result.close, result.good) == (0, len(run.archive) - lying, good)


def test_pictures_are_drawn_at_the_end(whole):
    names = {path.name for path in (whole / "seed-3" / "figures").iterdir()}
    assert {"curves.png", "archive.png", "latent.png", "elites.png", "gallery.png"} <= names


@pytest.mark.parametrize("calls", [3, *(pytest.param(calls, marks=pytest.mark.slow) for calls in (0, 1, 7))])
def test_a_group_that_was_interrupted_ends_as_if_it_had_not_been(whole, tmp_path, calls):
    folders = {seed: tmp_path / f"seed-{seed}" for seed in SEEDS}
    config = Run.load(whole / "seed-3").config
    outcome = runner.execute(config, folders, stop=stop_after(calls), draw=False)
    assert (outcome.iteration, outcome.finished) == (5 * calls, False)
    assert not Run.load(folders[3]).finished
    # Any of its folders stands for the whole group.
    assert runner.resume(folders[8], draw=False).finished
    for seed in SEEDS:
        tiny.assert_same(whole / f"seed-{seed}", folders[seed])


def test_a_group_goes_on_from_the_newest_checkpoint_that_is_good_in_every_folder(whole, tmp_path):
    folders = {seed: tmp_path / f"seed-{seed}" for seed in SEEDS}
    runner.execute(Run.load(whole / "seed-3").config, folders, stop=stop_after(5), draw=False)
    assert checkpoints.found(Run.load(folders[3]).folder) == [20, 25]
    shutil.rmtree(folders[3] / "checkpoints" / "000025" / "state")
    events = []
    runner.resume(folders[3], observe=events.append, draw=False)
    notes = [event.text for event in events if isinstance(event, Note)]
    assert len(notes) == 1
    assert str(folders[3] / "checkpoints" / "000025") in notes[0]
    started = next(event for event in events if isinstance(event, Status) and event.phase == "running")
    assert started.iteration == 25
    assert started.seeds == SEEDS
    for seed in SEEDS:
        tiny.assert_same(whole / f"seed-{seed}", folders[seed])


def test_a_folder_without_its_group_says_what_to_do(whole, tmp_path):
    shutil.copytree(whole / "seed-3", tmp_path / "seed-3")
    with pytest.raises(RunError, match=r"computed together with other seeds.*Missing in .*: seed-8.*start a new run"):
        runner.resume(tmp_path / "seed-3")
    shutil.copytree(whole / "seed-8", tmp_path / "other-name")
    with pytest.raises(RunError, match="Put all of them there under these names"):
        runner.resume(tmp_path / "other-name")
    shutil.copytree(whole / "seed-3", tmp_path / "seed-8")
    with pytest.raises(RunError, match="does not belong to the group"):
        runner.resume(tmp_path / "seed-3")


def test_resuming_a_finished_run_repairs_its_archive(whole, tmp_path):
    for seed in SEEDS:
        shutil.copytree(whole / f"seed-{seed}", tmp_path / f"seed-{seed}")
    (tmp_path / "seed-3" / "archive.npz").unlink()
    events = []
    assert runner.resume(tmp_path / "seed-3", observe=events.append, draw=False).finished
    assert any("nothing left to compute" in event.text for event in events if isinstance(event, Note))
    for seed in SEEDS:
        tiny.assert_same(whole / f"seed-{seed}", tmp_path / f"seed-{seed}")


@pytest.mark.parametrize("way", ["remove", "flip", "swap"])
def test_a_damaged_snapshot_is_named(whole, tmp_path, way):
    for seed in SEEDS:
        shutil.copytree(whole / f"seed-{seed}", tmp_path / f"seed-{seed}")
    path = tmp_path / "seed-3" / "snapshots" / "000025.npz"
    if way == "flip":
        data = path.read_bytes()
        path.write_bytes(data[:300] + bytes([data[300] ^ 1]) + data[301:])
    elif way == "swap":
        shutil.copy(path.with_name("000035.npz"), path)
    else:
        path.unlink()
    assert [str(path) in problem for problem in problems(Run.load(tmp_path / "seed-3"))] == [True]
    events = []
    runner.resume(tmp_path / "seed-3", observe=events.append, draw=False)
    assert any(str(path) in event.text and "not made again" in event.text for event in events if hasattr(event, "text"))


def test_only_the_newest_checkpoints_are_kept(whole):
    assert checkpoints.found(Run.load(whole / "seed-3").folder) == [30, 40]


def test_keep_1_and_a_crash_in_mid_save_leave_a_group_something_to_resume_from(whole, tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    save = checkpoints.save

    def killed_between_two_runs(folder, state, moment, under_way):
        if moment.iteration == 20 and folder.seed == SEEDS[1]:
            raise Killed
        save(folder, state, moment, under_way)

    folders = {seed: tmp_path / f"seed-{seed}" for seed in SEEDS}
    monkeypatch.setattr(checkpoints, "save", killed_between_two_runs)
    with pytest.raises(Killed):
        runner.execute(tiny.config("vq-elites", iterations=40, keep=1), folders, draw=False)
    monkeypatch.undo()
    assert runner.resume(folders[3], draw=False).finished
    for seed in SEEDS:
        tiny.assert_same(whole / f"seed-{seed}", folders[seed])
        assert checkpoints.found(Run.load(folders[seed]).folder) == [40]


def test_a_changed_environment_is_said(whole, tmp_path, monkeypatch):
    for seed in SEEDS:
        shutil.copytree(whole / f"seed-{seed}", tmp_path / f"seed-{seed}")
    monkeypatch.setenv("XLA_FLAGS", "--other")
    events = []
    runner.resume(tmp_path / "seed-3", observe=events.append, draw=False)
    assert any("xla_flags" in event.text and "last bits" in event.text for event in events if isinstance(event, Note))


def test_a_full_disk_keeps_the_last_good_checkpoint(whole, tmp_path, monkeypatch):
    def fill(event):
        if isinstance(event, Status) and event.iteration == 25:
            monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**6, 10**6 - 10, 10))

    folders = {seed: tmp_path / f"seed-{seed}" for seed in SEEDS}
    with pytest.raises(RunError, match=r"000030 needs .* disk has 0.0 MB.*Saved up to iteration 20.*vqelites resume"):
        runner.execute(Run.load(whole / "seed-3").config, folders, observe=fill, draw=False)
    monkeypatch.undo()
    assert runner.resume(folders[3], draw=False).finished
    for seed in SEEDS:
        tiny.assert_same(whole / f"seed-{seed}", folders[seed])


def test_a_checkpoint_that_finds_no_space_after_all_says_so(whole, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    folders = {seed: tmp_path / f"seed-{seed}" for seed in SEEDS}
    monkeypatch.setattr("vqelites.checkpoint.save", full)
    with pytest.raises(RunError, match=r"000010 could not be written: No space left on device\. Nothing was saved yet"):
        runner.execute(Run.load(whole / "seed-3").config, folders, draw=False)
    assert not list(tmp_path.glob("*/checkpoints/.*"))


def test_a_disk_too_small_is_noticed_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**6, 10**6 - 1000, 1000))
    with pytest.raises(RunError, match="the disk has 0 MB left, but the run needs about"):
        runner.execute(tiny.config("vq-elites", iterations=40), {0: tmp_path / "run"})
    assert not (tmp_path / "run" / "config.json").exists()


def test_a_run_that_memory_cannot_hold_is_refused_with_what_takes_it(tmp_path, monkeypatch):
    """CarRacing by its pixels: 442,435 weights and 884,736 numbers of behavior for each of 1,000 elites."""
    monkeypatch.setattr(runner, "memory_bytes", lambda: 1000)
    with pytest.raises(
        RunError, match=r"more than .* GB of memory.* solution has \d+ numbers and a behavior \d+, kept"
    ):
        runner.execute(tiny.config("vq-elites", iterations=40), {0: tmp_path / "run"})
    assert not (tmp_path / "run").exists()


def test_folders_are_checked_before_any_work(whole, tmp_path):
    config = Run.load(whole / "seed-3").config
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match="is a file"):
        runner.execute(config, {0: tmp_path / "file"})
    with pytest.raises(RunError, match="could not be written: Not a directory"):
        runner.execute(config, {0: tmp_path / "file" / "run"})
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    with pytest.raises(RunError, match=r"not empty.*--overwrite"):
        runner.execute(config, {0: tmp_path / "full"})
    with pytest.raises(RunError, match="folders of their own"):
        runner.execute(config, {0: tmp_path / "a", 1: tmp_path / "a"})
    with pytest.raises(RunError, match="same parent"):
        runner.execute(config, {0: tmp_path / "a", 1: tmp_path / "b" / "c"})
    with pytest.raises(ValueError, match="seed must be a whole number"):
        runner.execute(config, {-1: tmp_path / "a"})
    with pytest.raises(RunError, match="at least one seed"):
        runner.execute(config, {})


def test_overwriting_removes_the_old_run_and_nothing_else(whole, tmp_path):
    folders = {5: tmp_path / "a", 6: tmp_path / "b"}
    shutil.copytree(whole / "seed-3", folders[5])
    (folders[5] / "notes.txt").write_text("mine")
    config = Run.load(whole / "seed-3").config
    runner.execute(config, folders, overwrite=True, draw=False, stop=stop_after(2))
    assert (folders[5] / "notes.txt").read_text() == "mine"
    assert not (folders[5] / "codebook").exists()
    assert not (folders[5] / "figures").exists()
    run = Run.load(folders[5])
    assert (run.seed, len(run.metrics), run.iteration, run.finished) == (5, 11, 10, False)
    assert checkpoints.found(run.folder) == [10]


def test_two_processes_cannot_write_to_the_same_run(whole):
    with locked([whole / "seed-3"]), pytest.raises(RunError, match="Another process is writing"):
        runner.resume(whole / "seed-8")


class Noisy(PlanarArm):
    """The same solution does something else each time."""

    def evaluate(self, keys, solutions):
        result = super().evaluate(keys, solutions)
        return Evaluation(result.fitness + jax.vmap(jax.random.normal)(keys), result.behavior, result.truth)


def test_show_says_how_the_map_is_and_what_it_chose(whole, capsys):
    run = Run.load(whole / "seed-3")
    assert run.chosen == chosen(build(run.task, run.config.settings).descriptor, run.state().descriptor)
    commands.show(run.folder.path)
    output = capsys.readouterr().out
    assert "The map sees features in one unit." in output
    assert re.search(
        r"It has \d+ of 24 codes in use, perplexity \d+, \d+\.\d% of the descriptors at the limits\.", output
    )
    assert "Restarts" not in output


def test_a_random_task_does_again_what_is_stored_and_something_else_when_repeated(tmp_path):
    """The randomness of an evaluation belongs to the id of its solution."""
    registry.register("noisy-arm", "luck")(lambda: Noisy(behavior="joints"))
    run = vqelites.run(
        "noisy-arm", "map-elites", settings=tiny.config("map-elites", 5).settings, out=tmp_path / "run", draw=False
    )
    result, again = replay_all(run), run.reevaluate(30)
    assert (result.exact, result.good) == (len(run.archive), True)
    assert np.median(again.stored - again.mean) > 0.3
    assert abs(np.median(again.spread) - 1) < 0.2
