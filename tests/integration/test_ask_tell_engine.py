"""Ask/tell is the host shell turned inside out: every algorithm, the same folders, nothing lost."""

import inspect
import os
import signal
import threading
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from asking import new, run, simulate

import vqelites
from vqelites import AskTell, VQElites
from vqelites.archives import InsertStatus
from vqelites.drive.leafwise import awaited
from vqelites.experiments.config import Search, VQElitesSettings
from vqelites.optimizer import now, saved
from vqelites.optimizer.observe import reminding
from vqelites.runs import checkpoints, commands, taskfiles
from vqelites.runs.files import RunError
from vqelites.runs.run import Run

pytestmark = pytest.mark.filterwarnings("ignore:The model has learned next to nothing")  # in 2 epochs
SEARCH = {"batch_size": 16, "iterations": 20, "bootstrap": 32}
TRUTH = {"truth_low": (-1, -1), "truth_high": (1, 1), "bins": (6, 6)}
LEARNED = {"latent_dim": 2, "bootstrap_epochs": 2, "minibatch": 16, "epochs": 2}
ALGORITHMS = {
    "map-elites": SEARCH,
    "cvt-map-elites": SEARCH | {"cells": 24},
    "vq-elites": SEARCH | LEARNED | {"cells": 24, "update_every": 2},
    "aurora": SEARCH | LEARNED | {"target": 20, "capacity": 40},
    "aurora-plus": SEARCH | LEARNED | {"target": 20, "capacity": 40},
}
QUICK = ("map-elites",)  # compiling the others takes long; the other tests here save VQ-Elites too


def one(solution, seed):
    fitness, behavior = simulate(solution[None])
    return fitness[0], behavior[0], solution[:2]


def started(algorithm):
    return AskTell(algorithm, solution_dim=3, behavior_shape=4, **TRUTH, **ALGORITHMS[algorithm])


def told(qd, evaluations, sizes=(16,)):
    while qd.evaluations < evaluations:
        for size in sizes:
            solutions = qd.ask(size)
            qd.tell(*simulate(solutions), truth=solutions[:, :2])
    return qd


@pytest.mark.parametrize(
    "algorithm", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in ALGORITHMS]
)
def test_every_algorithm_is_the_run_of_the_same_simulator_and_can_be_saved(algorithm, tmp_path):
    """Bit for bit: asked in batches of its size, as a run does; then shown, loaded, and resumed by the simulator."""
    whole = vqelites.run(
        one, algorithm, solution_dim=3, **TRUTH, **ALGORITHMS[algorithm], out=tmp_path / "run", draw=False
    )
    qd = told(started(algorithm), 32 + 11 * 16)
    qd.save(tmp_path / "saved")
    loaded = AskTell.load(tmp_path / "saved")
    assert (loaded.iteration, loaded.evaluations) == (11, 32 + 11 * 16)
    told(loaded, 32 + 20 * 16)
    assert_same(loaded.archive, whole.archive)
    columns = [name for name in whole.metrics.columns if name != "seconds"]
    np.testing.assert_array_equal(loaded.history[columns], whole.metrics[columns])
    assert commands.show(tmp_path / "saved") == 0
    assert_same(vqelites.resume(tmp_path / "saved", one, draw=False).archive, whole.archive)


def assert_same(a, b):
    for name, values in vars(a).items():
        np.testing.assert_array_equal(values, getattr(b, name), err_msg=name)


def test_the_bootstrap_fills_the_archive_once():
    """It was inserted as it came, then offered again to the same archive at its end: duplicates in what is stored."""
    qd = run(new(), 1)
    assert len(qd.archive) > 0
    assert qd._now.state.seeds.valid.sum() == 16
    run(qd, 1)
    stored = qd._now.host.qd.archive.stored(qd._now.state.archive)
    ids = np.concatenate([np.asarray(group.id)[np.asarray(group.valid)] for group in stored])
    assert len(np.unique(ids)) == len(ids) > 0
    assert int(qd._now.state.dataset.written) == 0


def test_solutions_that_were_not_asked_for_can_be_added():
    qd = run(new(), 3)
    waiting = qd.ask(16)
    mine = np.full((2, 3), 0.01)
    report = qd.add(mine, np.array([100.0, -100.0]), simulate(mine)[1])
    assert report.status[0] in (InsertStatus.NEW, InsertStatus.IMPROVED)
    assert report.status[1] == InsertStatus.REJECTED
    assert qd.archive.best(1).fitness == [100]
    assert qd.evaluations == 50
    qd.tell(*simulate(waiting))
    assert qd.evaluations == 66
    assert len(np.unique(qd.archive.ids)) == len(qd.archive)
    with pytest.raises(ValueError, match=r"solutions must have shape \(n, 3\)"):
        qd.add(np.zeros((2, 4)), [0, 0], np.zeros((2, 4)))


def test_given_solutions_are_asked_first():
    given = np.random.default_rng(0).uniform(-1, 1, (20, 3)).astype(np.float32)
    qd = new(start=given)
    np.testing.assert_array_equal(qd.ask(16), given[:16])
    qd.tell(*simulate(given[:16]))
    again = qd.ask(16)
    np.testing.assert_array_equal(again[:4], given[16:])
    assert (again[4:] != given[0]).any(axis=1).all()


def test_told_says_what_became_of_every_solution():
    qd = run(new(), 2)
    solutions = qd.ask(24)  # crosses the end of an iteration
    before = qd.archive.fitness.sum()
    report = qd.tell(*simulate(solutions))
    assert report.status.shape == report.gain.shape == (24,)
    assert ((report.gain > 0) | (report.status != InsertStatus.IMPROVED)).mean() > 0.9
    assert report.added + report.replaced <= (report.status > 0).sum()
    assert before != qd.archive.fitness.sum()


def test_ctrl_c_in_tell_loses_nothing_and_the_batch_can_be_told_again(monkeypatch):
    """It comes in the middle of a training, at the end of an iteration."""
    qd, undisturbed = run(new(), 3), run(new(), 3)
    solutions = qd.ask(16)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(now, "Told", interrupted)  # made last, when the row of history is there already
        with pytest.raises(KeyboardInterrupt):
            qd.tell(*simulate(solutions))
    assert qd.evaluations == 48
    qd.tell(*simulate(solutions))
    run(undisturbed, 1)
    assert_same(qd.archive, undisturbed.archive)
    assert len(qd.history) == 3


def test_a_word_is_said_before_and_after_training():
    said = []
    qd = new(observe=said.append)
    run(qd, 2)
    assert said[0] == "Training on the 32 behaviors of the bootstrap; the first time, compiling takes a moment."
    assert said[1].startswith("Trained in ")
    assert len(said) == 2
    run(qd, 2)
    assert len(said) == 4  # after the second iteration


def test_a_long_training_is_told_of_every_ten_seconds():
    """It was silent for as long as it took."""
    said = []
    waiting = reminding(said.append, "Training")
    for seconds in (0, 9.9, 10.1, 15, 20.0, 0.5, 10.5):  # the second training has its own clock
        waiting(seconds)
    assert said == ["Training: 10 s so far.", "Training: 20 s so far.", "Training: 10 s so far."]


def test_ctrl_c_ends_the_waiting_for_a_long_training_at_once():
    """It was heard only when all was computed: for images minutes later."""
    square = jnp.ones((600, 600))
    long = jax.jit(lambda x: jax.lax.fori_loop(0, 300, lambda _, x: jnp.tanh(x @ x), x)).lower(square).compile()
    held = long(square)  # about a second
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        awaited(held)
    assert not held.is_ready()
    assert awaited(held).shape == (600, 600)


def test_history_has_a_row_for_the_bootstrap_and_every_iteration():
    qd = run(new(), 5)
    history = qd.history
    assert list(history["evaluations"]) == [32, 48, 64, 80]
    assert history["size"].iloc[-1] == len(qd.archive)
    assert history["qd_score"].iloc[-1] == pytest.approx(qd.archive.stats.qd_score, rel=1e-5)
    assert history["coverage"].isna().all()
    assert history["loss"].notna().tolist() == [True, False, True, False]
    assert list(new(bootstrap=0).history["size"]) == [0]


def test_elites_can_be_found_and_looked_at():
    qd = run(new(), 5)
    archive = qd.archive
    assert repr(qd).startswith(f"<vq-elites: {len(archive)} elites after 80 evaluations")
    assert repr(archive).startswith(f"<{len(archive)} elites, fitness ")
    assert archive.stats.max_fitness == archive.fitness.max() == archive.best().fitness[0]
    assert (np.diff(archive.best(5).fitness) <= 0).all()
    assert len(archive.best(10**6)) == len(archive)
    assert set(archive.sample(50, seed=0).ids) <= set(archive.ids)
    np.testing.assert_array_equal(qd.lookup(archive.behavior), np.arange(len(archive)))
    np.testing.assert_array_equal(archive.nearest(archive.descriptors), np.arange(len(archive)))
    assert len(qd.plot().axes) >= 1
    with pytest.raises(ValueError, match="archive is empty"):
        new().archive.sample(1)
    with pytest.raises(ValueError, match="count must be a whole number of at least 1, but is -1"):
        archive.best(-1)  # were all but the worst


def test_a_file_is_no_folder_to_save_into(tmp_path):
    """It was "[Errno 17] File exists"."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(RunError, match="is a file; choose another folder"):
        new().save(tmp_path / "file")


def test_every_setting_of_the_command_line_can_be_reached():
    qd = new(tournament=3, drift=False, overlap=0.9, replay=8, memory=64, beta=0.5, learning_rate=1e-3)
    algorithm = qd._now.host.qd
    assert (algorithm.tournament, algorithm.addition.drift) == (3, False)
    assert (algorithm.dataset.overlap, algorithm.dataset.replay) == (0.9, 8)
    assert algorithm.descriptor.training.learning_rate == np.float32(1e-3)


def test_a_record_of_settings_is_taken_as_runs_take_it():
    """The same record as `vqelites.run(settings=...)`; it was "There is no setting named 'settings'"."""
    record = replace(VQElitesSettings(), cells=24, search=Search(tournament=3))
    qd = VQElites(solution_dim=3, behavior_shape=4, settings=record, batch_size=8)
    algorithm = qd._now.host.qd
    assert (algorithm.tournament, algorithm.batch_size, algorithm.descriptor.codes) == (3, 8, 24)


def test_the_class_of_one_algorithm_is_that_alone_and_shows_its_arguments():
    """`help(VQElites)` showed `**options`."""
    assert {"solution_dim", "low", "bounded", "settings"} <= set(inspect.signature(VQElites).parameters)
    with pytest.raises(ValueError, match="VQElites is vq-elites alone"):
        VQElites("aurora", solution_dim=3, behavior_shape=4)


def test_hand_coded_algorithms_say_what_they_need():
    with pytest.raises(ValueError, match="MAP-Elites needs hand-coded cells"):
        AskTell("map-elites", solution_dim=3, behavior_shape=4)
    with pytest.raises(ValueError, match="CVT-MAP-Elites needs a truth"):
        AskTell("cvt-map-elites", solution_dim=3, behavior_shape=4)
    qd = started("map-elites")
    with pytest.raises(ValueError, match=r"truth must be told .*, as an array \(4, 2\): the algorithm needs it"):
        qd.tell(*simulate(qd.ask(4)))


def test_looking_up_behavior_where_the_truth_says_where_solutions_belong_is_refused():
    """It used to return the elite nearest to a truth of zeros."""
    qd = told(started("map-elites"), 32)
    for method in (qd.lookup, qd.describe):
        with pytest.raises(ValueError, match=r"solutions are placed by their truth.*archive\.nearest\(truth\)"):
            method(np.zeros((1, 4)))
    np.testing.assert_array_equal(qd.archive.nearest(qd.archive.truth), np.arange(len(qd.archive)))


def test_a_crash_while_saving_leaves_what_was_saved_before(tmp_path, monkeypatch):
    """It was lost between two renames."""
    qd = run(new(), 3)
    qd.save(tmp_path / "run")
    for place in ("checkpoints.save", "contents.save_archive", "checkpoints.forget_old"):
        module, name = place.split(".")

        def crash(*arguments, **options):
            raise MemoryError

        run(qd, 1)
        with monkeypatch.context() as patch:
            patch.setattr(getattr(saved, module), name, crash)
            with pytest.raises(MemoryError):
                qd.save(tmp_path / "run")
        assert VQElites.load(tmp_path / "run").evaluations in (48, qd.evaluations)
    qd.save(tmp_path / "run")
    assert_same(VQElites.load(tmp_path / "run").archive, qd.archive)
    assert len(checkpoints.found(Run.load(tmp_path / "run").folder)) == 2


def test_snapshots_of_an_optimizer_saved_there_before_are_replaced(tmp_path):
    """A script that was changed and run again left those of its first run in the folder."""
    run(new(), 4).save(tmp_path / "saved")
    qd = new()
    for _ in range(4):
        solutions = qd.ask(16)
        qd.tell(solutions[:, 0], simulate(solutions)[1])
    qd.save(tmp_path / "saved")
    last = Run.load(tmp_path / "saved").snapshots[-1]
    np.testing.assert_array_equal(last.fitness, qd.archive.fitness)


def test_bit_flips_in_a_saved_folder_are_found(tmp_path):
    """They used to load with other content."""
    run(new(), 3).save(tmp_path / "run")
    files = [path for path in (tmp_path / "run" / "checkpoints").rglob("*") if path.is_file()]
    largest = max(files, key=lambda path: path.stat().st_size)
    data = bytearray(largest.read_bytes())
    data[len(data) // 2] ^= 1
    largest.write_bytes(data)
    with pytest.raises(RunError, match=r"altered: the checksum of .* does not fit"):
        VQElites.load(tmp_path / "run")


def test_saving_before_anything_was_told_and_again_after(tmp_path):
    qd = new()
    qd.save(tmp_path / "run")
    assert VQElites.load(tmp_path / "run").evaluations == 0
    solutions = qd.ask(16)
    qd.tell(*simulate(solutions), truth=solutions[:, :1])
    qd.save(tmp_path / "run")
    np.testing.assert_array_equal(VQElites.load(tmp_path / "run").archive.truth, qd.archive.truth)


def test_runs_of_jax_tasks_have_no_ask_and_tell(tmp_path):
    vqelites.run("planar-arm", "map-elites", iterations=1, bootstrap=16, batch_size=8, out=tmp_path / "run", draw=False)
    with pytest.raises(RunError, match="vqelites resume"):
        AskTell.load(tmp_path / "run")


def test_added_solutions_keep_to_the_bounds():
    qd = run(new(bounded=True), 1)
    with pytest.raises(ValueError, match="outside of low and high"):
        qd.add(np.full((1, 3), 5.0), [0.0], np.zeros((1, 4)))


def test_one_behavior_can_be_looked_up():
    qd = run(new(), 3)
    assert qd.lookup(qd.archive.behavior[4]) == 4
    np.testing.assert_allclose(qd.describe(qd.archive.behavior[4]), qd.archive.descriptors[4], atol=1e-6)


@pytest.mark.slow
def test_a_saved_loop_is_resumed_by_the_one_simulator_of_a_task_file(tmp_path):
    """It has no name that a run could ask for."""
    run(new(), 3).save(tmp_path / "run")
    file = tmp_path / "mine.py"
    file.write_text(
        "import numpy as np, vqelites\n"
        "@vqelites.simulator(solution_dim=3)\n"
        "def mine(x, seed):\n"
        "    return -np.square(x).sum(), np.append(x, np.sin(3 * x[0]))\n"
    )
    with pytest.raises(RunError, match="Pass a --task-file with one simulator"):
        vqelites.resume(tmp_path / "run")
    taskfiles.load_task_file(file)
    assert vqelites.resume(tmp_path / "run", draw=False).finished


def test_aurora_says_what_its_sizes_are_called():
    with pytest.raises(ValueError, match="AURORA has no cells: `target`"):
        AskTell("aurora-plus", solution_dim=3, behavior_shape=4, cells=20)
