"""Nodes and workers that are lost, join, or do not fit: on a real Ray cluster of several local nodes."""

import contextlib
import importlib.util
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import simulators
from children import wait_until
from test_evaluators import as_numbers, solutions_for
from test_pool_in_a_storm import SHAPED, TIMEOUT, expected_failures

import vqelites
from vqelites.evaluation import (
    ClusterEvaluator,
    EvaluatorError,
    Kind,
    LocalEvaluator,
    Simulator,
    Value,
    base,
    dispatcher,
    evaluation_seeds,
)
from vqelites.evaluation.crew import LostError, connected, translated
from vqelites.runs import checkpoints
from vqelites.runs.recovery import newest
from vqelites.runs.run import Run

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes in /proc")
SMALL = {"object_store_memory": 80 * 2**20, "include_dashboard": False}


def named(text):
    """Processes of this user whose command holds a text."""
    found = []
    for path in Path("/proc").iterdir():
        try:
            if path.name.isdecimal() and text in (path / "cmdline").read_text():
                found.append(int(path.name))
        except OSError:
            pass
    return found


def stations(cluster):
    """Workers of this cluster, by its raylets: others may run on this machine."""
    raylets = {node.all_processes["raylet"][0].process.pid for node in cluster.list_all_nodes()}
    return [pid for pid in named("ray::Station") if parent_of(pid) in raylets]


def parent_of(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def kill(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Trouble:
    """A node joins and is lost again, and workers are killed, whatever they do, from a thread.

    An evaluation that is hit ten times is taken to be the cause. There are fewer kills than that, so that none is
    blamed however slow the machine.
    """

    def __init__(self, cluster, kills=5):
        self._cluster, self._kills, self._stop = cluster, kills, threading.Event()
        self._node = cluster.add_node(num_cpus=1, node_ip_address="127.0.0.4", **SMALL)
        self._thread = threading.Thread(target=self._make)
        self.kills = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()

    def _make(self):
        dice = random.Random(0)
        while self.kills < self._kills and not self._stop.wait(dice.uniform(1, 3)):
            if workers := stations(self._cluster):
                kill(dice.choice(workers))
                self.kills += 1
            if self.kills == 2 and self._node is not None:
                self._lose_node()
        if self._node is not None:
            self._lose_node()

    def _lose_node(self):
        self._cluster.remove_node(self._node, allow_graceful=False)
        self._node = None


@pytest.mark.parametrize(
    ("count", "shots"),
    [pytest.param(600, 6, marks=pytest.mark.long), pytest.param(100_000, 200, marks=pytest.mark.soak)],
)
def test_a_storm_of_faults_lost_workers_and_a_lost_node_changes_no_value_and_no_count(cluster, count, shots, tmp_path):
    """5 % raise, hang, kill their process or return nonsense; workers are killed, and a node joins and is lost."""
    dice = random.Random(count)
    faults = [simulators.RAISE, simulators.NAN, simulators.NONE, simulators.HANG, simulators.LEAVE, simulators.CRASH]
    ids, solutions = solutions_for(count)
    for i in dice.sample(range(count), count // 20):
        solutions[i, 0] = dice.choice(faults)
    seeds = evaluation_seeds(0, ids)
    shooting = simulators.Shot(simulators.faulty, tmp_path, count // shots)
    simulator = Simulator(shooting.simulate, **SHAPED)
    # Most workers sleep, in an evaluation that hangs or until a process is up: four of them share a CPU.
    options = {"timeout": 2 * TIMEOUT, "num_cpus": 0.25}
    with ClusterEvaluator(simulator, cluster.address, **options) as evaluator, Trouble(cluster) as trouble:
        results = evaluator.evaluate(ids, solutions, seeds)
        activity = evaluator.activity
    with LocalEvaluator(Simulator(simulators.tame, **SHAPED)) as local:
        alone = local.evaluate(ids, solutions, seeds)
    fine = [isinstance(result.outcome, Value) for result in results]
    assert fine == (solutions[:, 0] == simulators.FINE).tolist()
    values, reference = ([r for r, ok in zip(found, fine, strict=True) if ok] for found in (results, alone))
    assert as_numbers(values) == as_numbers(reference)
    assert activity.finished == count
    assert (activity.running, activity.queued) == (0, 0)
    assert activity.failed == expected_failures(solutions[:, 0])
    shot = len(list(tmp_path.iterdir()))
    assert shot == sum(map(shooting.hits, seeds)) > shots / 2
    assert trouble.kills
    print(f"\n{count} evaluations, {shot} workers killed while they evaluate, {trouble.kills} at any time, {activity}")


HAND_CODED = {"batch_size": 20, "bootstrap": 60, "iterations": 5, "truth_low": (-1,), "truth_high": (1,), "bins": (20,)}
TINY = {"cells": 40, "epochs": 1, "bootstrap_epochs": 1, "update_every": 20}
LEARNED = {"batch_size": 50, "bootstrap": 200, "iterations": 4, **TINY}


@pytest.mark.parametrize(
    ("algorithm", "settings", "kills"),
    [("map-elites", HAND_CODED, 2), pytest.param("vq-elites", LEARNED, 5, marks=pytest.mark.long)],
)
def test_a_run_on_a_cluster_in_trouble_is_the_run_of_one_process(cluster, algorithm, settings, kills, tmp_path):
    """Bit for bit, though evaluations fail, workers are killed and a node joins and is lost."""
    search = {"algorithm": algorithm, "solution_dim": 2, **settings, "draw": False}
    (tmp_path / "shot").mkdir()
    simulator = simulators.Shot(simulators.stormy, tmp_path / "shot", 100)
    with Trouble(cluster, kills) as trouble:
        options = {"cluster": cluster.address, "timeout": TIMEOUT}
        run = vqelites.run(simulator, **search, **options, out=tmp_path / "cluster")
    alone = vqelites.run(simulators.calm, **search, out=tmp_path / "alone")
    seeds = evaluation_seeds(0, range(settings["bootstrap"] + settings["iterations"] * settings["batch_size"]))
    faults = sum(simulators.fault_of(seed) != simulators.FINE for seed in seeds)
    assert run.rejected == alone.rejected == faults > len(seeds) / 40
    for name, values in vars(run.archive).items():
        np.testing.assert_array_equal(values, getattr(alone.archive, name), err_msg=name)
    assert len(list((tmp_path / "shot").iterdir())) == sum(map(simulator.hits, seeds)) > 2
    assert trouble.kills


def told_once(done):
    """Ids of an asynchronous run whose results are in, each of which counts once."""
    under_way = checkpoints.extra(done.folder, newest(done.folder))["pending_ids"]
    told = np.setdiff1d(np.arange(int(done.state().next_id)), under_way)
    assert len(told) == done.metrics["evaluations"].iloc[-1]
    assert np.isin(done.archive.ids, told).all()
    assert len(np.unique(done.archive.ids)) == len(done.archive)
    return told


@pytest.mark.long
def test_an_asynchronous_run_on_a_cluster_in_trouble_counts_every_evaluation_once(cluster, tmp_path):
    """Which ones there are depends on when results arrive, but every one of them counts."""
    search = {"algorithm": "map-elites", "solution_dim": 2, **HAND_CODED, "draw": False}
    options = {"cluster": cluster.address, "timeout": TIMEOUT, "mode": "async"}
    (tmp_path / "shot").mkdir()
    simulator = simulators.Shot(simulators.stormy, tmp_path / "shot", 100)
    with Trouble(cluster, kills=2):
        run = vqelites.run(simulator, **search, **options, out=tmp_path / "run")
    told = evaluation_seeds(0, told_once(run))
    assert len(told) == 160
    assert run.rejected == sum(simulators.fault_of(seed) != simulators.FINE for seed in told) > 3
    assert any((tmp_path / "shot").iterdir())


def test_a_worker_killed_before_it_has_loaded_the_simulator_is_not_blamed_on_an_evaluation(
    cluster, tmp_path, monkeypatch
):
    """On a busy machine that takes seconds, and ten such kills were enough for a failure."""
    monkeypatch.setattr(base, "_KILLS", 1)
    slow = Simulator(simulators.LoadsSlowly(tmp_path))
    with ClusterEvaluator(slow, cluster.address, workers=1) as evaluator:
        evaluator.submit([0], [[1.0, 2.0]], [0])
        wait_until(lambda: any(tmp_path.iterdir()))
        [station] = stations(cluster)
        kill(station)
        [result] = evaluator.results()
        assert evaluator.activity.replaced == 1
    assert isinstance(result.outcome, Value)


def test_a_node_that_joins_is_used_and_its_loss_is_noticed(cluster):
    with ClusterEvaluator(Simulator(simulators.nap), cluster.address) as evaluator:
        wait_until(lambda: (evaluator.activity.nodes, evaluator.activity.workers) == (2, 3))
        node = cluster.add_node(num_cpus=2, node_ip_address="127.0.0.5", **SMALL)
        wait_until(lambda: (evaluator.activity.nodes, evaluator.activity.workers) == (3, 5))
        ids, solutions = solutions_for(100)
        evaluator.submit(ids, solutions, range(100))
        cluster.remove_node(node, allow_graceful=False)
        results = list(evaluator.results())
        wait_until(lambda: (evaluator.activity.nodes, evaluator.activity.workers) == (2, 3))
        activity = evaluator.activity
    assert sorted(result.id for result in results) == sorted(ids)
    assert all(isinstance(result.outcome, Value) and result.attempts == 1 for result in results)
    assert activity.replaced == 2


def test_there_are_as_many_workers_as_were_asked_for(cluster):
    with ClusterEvaluator(Simulator(simulators.nap), cluster.address, workers=2) as evaluator:
        wait_until(lambda: evaluator.activity.workers == 2)
        time.sleep(dispatcher._LOOK)
        assert evaluator.activity.workers == 2
    wait_until(lambda: not stations(cluster))


def test_an_evaluation_that_ends_its_worker_again_and_again_fails(cluster, monkeypatch):
    """Killed with its station each time, as by a system short of memory."""
    monkeypatch.setattr(base, "_KILLS", 3)

    def kills_its_station(solution, seed):
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(10)

    with ClusterEvaluator(Simulator(kills_its_station), cluster.address, workers=1) as evaluator:
        [result] = evaluator.evaluate([0], [[1.0]], [0])
    assert result.outcome.kind is Kind.DIED
    assert "was killed 3 times" in result.outcome.reason


def test_a_module_of_ones_own_reaches_workers_that_cannot_import_it(cluster, tmp_path):
    (tmp_path / "own_helper.py").write_text("FACTOR = 3\n\ndef times(x):\n    return FACTOR * x\n")
    (tmp_path / "own_simulator.py").write_text(
        "import own_helper\n\ndef simulate(solution, seed):\n"
        "    return float(own_helper.times(solution[0])), solution\n"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        import own_simulator
    finally:
        sys.path.remove(str(tmp_path))
    for path in tmp_path.glob("own_*.py"):
        path.unlink()
    importlib.invalidate_caches()
    with ClusterEvaluator(Simulator(own_simulator.simulate), cluster.address, workers=1) as evaluator:
        [result] = evaluator.evaluate([0], [[2.0, 1.0]], [0])
    assert result.outcome.fitness == 6.0


def test_a_simulator_that_cannot_be_sent_is_told_before_any_work(cluster):
    lock = threading.Lock()
    with pytest.raises(EvaluatorError, match=r"cannot be sent to worker processes: .*lock.*first used"):
        ClusterEvaluator(Simulator(lambda solution, seed: (lock, solution)), cluster.address)


def test_a_simulator_that_cannot_be_loaded_there_is_an_error(cluster):
    with ClusterEvaluator(Simulator(simulators.CannotLoad()), cluster.address, workers=1) as evaluator:
        evaluator.submit([0], [[1.0]], [0])
        for _ in range(2):
            with pytest.raises(EvaluatorError, match="cannot be loaded in a worker process: OSError: no licence"):
                evaluator.next()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("127.0.0.1:1", r"127.0.0.1:1 does not answer .*ray start --head"),
        ("nowhere", "HOST:PORT of its head, but got 'nowhere'"),
        ("127.0.0.2:99999999", "does not answer"),
    ],
)
def test_an_address_that_does_not_answer_is_told_at_once(address, message, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    began = time.monotonic()
    with pytest.raises(EvaluatorError, match=message):
        ClusterEvaluator(Simulator(simulators.noisy), address)
    assert time.monotonic() - began < 10


@pytest.mark.filterwarnings("error")
def test_starting_a_cluster_frightens_nobody(monkeypatch):
    """JAX warned of a deadlock when Ray started its processes."""
    ray = pytest.importorskip("ray")

    def init(**_):
        warnings.warn("os.fork() was called. This will likely lead to a deadlock.", RuntimeWarning, stacklevel=2)

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    assert connected("auto") is ray


def test_a_second_cluster_is_refused(cluster):
    with ClusterEvaluator(Simulator(simulators.noisy), cluster.address, workers=1):
        with pytest.raises(EvaluatorError, match=f"connected to the cluster {cluster.address} already, not to 127"):
            ClusterEvaluator(Simulator(simulators.noisy), "127.0.0.1:1")
        with ClusterEvaluator(Simulator(simulators.noisy), "auto", workers=1):
            pass


def test_workers_that_fit_no_node_are_told(cluster):
    with pytest.raises(EvaluatorError, match=r"num_cpus=1, num_gpus=2; all nodes together have 3 CPU, 0 GPU"):
        ClusterEvaluator(Simulator(simulators.noisy), cluster.address, num_gpus=2)


def gpu_seen(solution, seed):
    time.sleep(0.2)  # so that no worker does all
    return float(os.environ["CUDA_VISIBLE_DEVICES"]), np.zeros(1)


def test_workers_that_need_a_gpu_go_to_the_node_that_has_some_and_see_one_each(cluster):
    """The GPUs are declared, not real: what is tested is what Ray is asked for, and what reaches the simulator."""
    node = cluster.add_node(num_cpus=2, num_gpus=2, node_ip_address="127.0.0.6", **SMALL)
    try:
        with ClusterEvaluator(Simulator(gpu_seen), cluster.address, num_gpus=1) as evaluator:
            wait_until(lambda: (evaluator.activity.nodes, evaluator.activity.workers) == (1, 2))
            results = evaluator.evaluate(*solutions_for(4), range(4))
    finally:
        cluster.remove_node(node, allow_graceful=False)
    assert {result.outcome.fitness for result in results} == {0.0, 1.0}


def test_another_version_on_a_node_is_told(cluster, monkeypatch):
    ours = {**dispatcher.versions(), "vqelites": "9.9"}
    monkeypatch.setattr(dispatcher, "versions", lambda: ours)
    with ClusterEvaluator(Simulator(simulators.noisy), cluster.address, workers=1) as evaluator:
        evaluator.submit([0], [[1.0, 2.0]], [0])
        with pytest.raises(EvaluatorError, match=r"The node .* has vqelites .* instead of 9.9. Install the same"):
            evaluator.next()


def test_errors_of_ray_are_translated():
    ray = pytest.importorskip("ray")
    for kind in (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError):
        told = translated(ray, kind("no space"))
        assert isinstance(told, EvaluatorError)
        assert "object store of a node is full" in str(told)
        assert "--object-store-memory" in str(told)
    assert isinstance(translated(ray, ray.exceptions.NodeDiedError("gone")), LostError)


FULL = """
import numpy as np
import ray
from vqelites.evaluation import ClusterEvaluator, EvaluatorError, Simulator

small = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False, "log_to_driver": False}
ray.init("local", **small, _system_config={"local_fs_capacity_threshold": 0.0})  # as if its disk were full

def wide(solution, seed):
    return 0.0, np.zeros(int(solution[0]), np.float32)

with ClusterEvaluator(Simulator(wide), "auto") as evaluator:
    evaluator.submit([0, 1], [[10], [30_000_000]], [0, 0])
    print(evaluator.next().outcome.behavior.shape)
    try:
        evaluator.next()
    except EvaluatorError as error:
        print(error)
"""


@pytest.mark.long
def test_a_full_object_store_is_told_and_what_came_before_is_kept(tmp_path):
    """On a cluster of its own, by a result that is larger than the store."""
    pytest.importorskip("ray")
    (tmp_path / "script.py").write_text(FULL)
    done = subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=300)
    assert done.stdout.startswith("(10,)"), done.stderr
    assert "The object store of a node is full" in done.stdout
    assert "--object-store-memory" in done.stdout


FILE = Path(__file__).parents[2] / "examples" / "my_simulator.py"


def command(*arguments):
    """`vqelites` in a process of its own."""
    call = [sys.executable, "-c", "from vqelites.cli import main; main()", *map(str, arguments)]
    return subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.long
@pytest.mark.parametrize("mode", ["step", "async"])
def test_a_driver_that_is_killed_goes_on_on_the_same_cluster(cluster, mode, tmp_path):
    """SIGKILL, then `resume`: in step the archive of one process, else every evaluation once; no worker is left."""
    sizes = ["--search.batch-size", 16, "--search.bootstrap", 48, "--iterations", 40, "--saving.every", 5, "--no-draw"]
    small = ["puck", "--task-file", FILE, "--algorithm", "cvt-map-elites", "--cells", 20, *sizes]
    process = command("run", *small, "--cluster", cluster.address, "--mode", mode, "--out", tmp_path / "run")
    wait_until(lambda: (tmp_path / "run" / "checkpoints" / "000010").exists() or process.poll() is not None, 300)
    process.kill()
    said, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL, said
    wait_until(lambda: not stations(cluster))
    resumed = command("resume", tmp_path / "run", "--task-file", FILE, "--no-draw")
    said, _ = resumed.communicate(timeout=300)
    assert resumed.returncode == 0, said
    assert "Finished" in said
    done = Run.load(tmp_path / "run")
    if mode == "async":
        assert len(told_once(done)) == 48 + 16 * 40
        return
    alone = command("run", *small, "--out", tmp_path / "alone")
    assert alone.communicate(timeout=300)
    for name, values in vars(done.archive).items():
        np.testing.assert_array_equal(values, getattr(Run.load(tmp_path / "alone").archive, name), err_msg=name)


def resident(pid):
    """Megabytes."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@pytest.mark.soak
def test_memory_of_driver_and_workers_stays_flat(cluster):
    """Over 200,000 evaluations."""
    ids, solutions = solutions_for(5_000)
    sizes = []
    with ClusterEvaluator(Simulator(simulators.noisy, **SHAPED), cluster.address) as evaluator:
        for part in range(40):
            evaluator.evaluate(ids + part * 5_000, solutions, range(5_000))
            sizes.append([resident(os.getpid()), max(map(resident, stations(cluster)))])
    (driver, worker), (driver_end, worker_end) = sizes[9], sizes[-1]
    told = f"driver {driver:.0f} and {driver_end:.0f}, worker {worker:.0f} and {worker_end:.0f}"
    print(f"\nmegabytes after 50,000 and 200,000 evaluations: {told}")
    assert driver_end < 1.05 * driver + 10
    assert worker_end < 1.05 * worker + 10
