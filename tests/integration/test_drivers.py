"""The shells around the loop, compiled (runs in turn or side by side), host and in step, do the same."""

import dataclasses
import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites import drive, schedule
from vqelites.algorithms import Effort, aurora, aurora_plus, cvt_map_elites, map_elites, vq_elites
from vqelites.archives import UnstructuredArchive
from vqelites.dataset import Dataset
from vqelites.descriptors import VQVAE, AutoEncoder
from vqelites.drive import devices
from vqelites.evaluation import LocalEvaluator, Simulator, evaluation_seeds
from vqelites.tasks import AbstractTask, PlanarArm
from vqelites.types import Bins, SolutionSpace

pytestmark = pytest.mark.also_shipped
TASK = PlanarArm(joints=4, behavior="joints")
EFFORT = Effort(iterations=6, batch_size=16, bootstrap=32, bootstrap_epochs=3)
WINDOW = Dataset(window=16, archive=16)  # as many as the bootstrap: then all trainings are one program


def unstructured():
    return UnstructuredArchive(48, 32, initial=0.05)


def rebuilt(qd):
    """The same with rebuilds between its trainings in these few iterations; AURORA's own come after every ten."""
    plan = schedule.growing_gaps(EFFORT.iterations, 3, rebuild_every=3, cooperate=qd.schedule.cooperate)
    return dataclasses.replace(qd, schedule=plan)


ALGORITHMS = {
    "map-elites": lambda: map_elites(TASK, TASK.cells, effort=EFFORT),
    "cvt-map-elites": lambda: cvt_map_elites(TASK, 32, effort=EFFORT),
    "vq-elites": lambda: vq_elites(
        TASK, VQVAE(TASK.behavior_shape, 2, 32), update_every=2, epochs=2, dataset=WINDOW, effort=EFFORT
    ),
    "aurora": lambda: rebuilt(
        aurora(TASK, AutoEncoder(TASK.behavior_shape, 2, bounded=False), unstructured(), epochs=3, effort=EFFORT)
    ),
    "aurora-plus": lambda: rebuilt(
        aurora_plus(TASK, AutoEncoder(TASK.behavior_shape, 2), unstructured(), epochs=3, cooperate=1 / 3, effort=EFFORT)
    ),
}
LEARNED = ["vq-elites", "aurora", "aurora-plus"]


@eqx.filter_jit
def evaluate(task, solutions):
    return task.evaluate(jax.vmap(jax.random.key)(jnp.zeros(len(solutions), jnp.uint32)), solutions)


def simulate(solutions, seeds):
    assert isinstance(solutions, np.ndarray)
    result = evaluate(TASK, solutions)
    return np.asarray(result.fitness), np.asarray(result.behavior), np.asarray(result.truth)


def in_step(qd, simulate=simulate):
    return drive.InStep(qd, LocalEvaluator(Simulator(simulate, batch=True)))


def assert_close(a, b, rtol=2e-5, atol=2e-5):
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=rtol, atol=atol), a, b)


def assert_same(a, b):
    jax.tree.map(np.testing.assert_array_equal, a, b)


def first(tree):
    return jax.tree.map(lambda x: x[0], tree)


class Faulty(AbstractTask):
    """The same arm, but whatever starts upwards breaks the simulator."""

    arm: PlanarArm
    space: SolutionSpace
    cells: jax.Array
    bins: Bins
    behavior_shape: tuple[int, ...] = eqx.field(static=True)
    truth_low: tuple[float, ...] = eqx.field(static=True)
    truth_high: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, arm):
        self.arm, self.space, self.cells, self.bins = arm, arm.space, arm.cells, arm.bins
        self.behavior_shape, self.truth_low, self.truth_high = arm.behavior_shape, arm.truth_low, arm.truth_high

    def evaluate(self, keys, solutions):
        result = self.arm.evaluate(keys, solutions)
        return eqx.tree_at(lambda r: r.fitness, result, jnp.where(solutions[:, 0] > 0, jnp.nan, result.fitness))

    def draw(self, axes, solutions):
        self.arm.draw(axes, solutions)


def test_non_finite_results_are_counted_in_the_bootstrap_too_and_never_enter():
    qd = map_elites(TASK, TASK.cells, effort=EFFORT)
    runs = drive.Compiled(qd, Faulty(TASK))
    state, begun = runs.begin(jnp.arange(2))
    state, info = runs.advance(state, 0, 6)

    def faulty(solutions, seeds):
        result = evaluate(Faulty(TASK), solutions)
        return np.asarray(result.fitness), np.asarray(result.behavior), np.asarray(result.truth)

    _, host = in_step(qd, faulty).begin(jnp.arange(1))
    assert host.tell.rejected[0] == begun.tell.rejected[0] > 5
    assert (np.asarray(info.tell.rejected).sum(axis=1) > 5).all()
    elites = state.archive.elites
    assert (np.asarray(elites.solution[..., 0])[np.asarray(elites.valid)] <= 0).all()


class Case:
    """One algorithm with its compiled driver; compilation is what takes time here, so all tests share it."""

    def __init__(self, name):
        self.name, self.traces = name, 0
        self.qd = ALGORITHMS[name]()
        self.runs = self.driver(self.qd)
        self.begun, _ = self.runs.begin(jnp.array([3, 4]))

    def driver(self, qd):
        return drive.Compiled(qd, TASK, self.measure)

    def measure(self, elites):
        self.traces += 1
        return {"size": elites.size}

    def advance(self, state, iteration, count):
        """As the driver does, without consuming the given state."""
        return self.runs.advance(jax.tree.map(jnp.copy, state), iteration, count)

    def stepped(self, state, iteration, count):
        """The same one by one: whoever needs no whole chunk uses the program that the others have compiled."""
        for step in range(iteration, iteration + count):
            state, _ = self.advance(state, step, 1)
        return state


@pytest.fixture(  # compiling the others takes a minute each
    scope="module",
    params=[pytest.param(name, marks=() if name == "map-elites" else pytest.mark.slow) for name in ALGORITHMS],
)
def case(request):
    return Case(request.param)


def test_every_iteration_from_the_same_state_agrees_between_compiled_and_host(case):
    """Every kind of update included: iteration 0 trains AURORA, 1 trains VQ-Elites, 2 rebuilds AURORA."""
    assert_agrees_with_host(case, case.runs)


@pytest.mark.slow
def test_side_by_side_as_on_a_gpu_it_agrees_too(case, monkeypatch):
    asked = []
    monkeypatch.setattr(devices, "side_by_side", lambda runs: asked.append(runs) or True)
    assert_agrees_with_host(case, drive.Compiled(case.qd, TASK))  # measures nothing: no program of `case` is used
    assert set(asked) == {2}


def assert_agrees_with_host(case, compiled):
    host, state, trained = in_step(case.qd), case.begun, []
    for iteration in range(case.qd.schedule.iterations):
        by_host, host_info = host.advance(jax.tree.map(lambda x: x[:1], state), iteration, 1)
        state, info = compiled.advance(jax.tree.map(jnp.copy, state), iteration, 1)
        assert_close(first(state), first(by_host))
        assert_close(*(first((found.tell, found.update)) for found in (info, host_info)))
        trained.append(bool(host_info.update.learn.epochs[0, 0] > 0))
    due = [bool(case.qd.schedule.at(iteration).learn) for iteration in range(len(trained))]
    assert trained == (due if case.name in LEARNED else [False] * len(due))
    assert any(trained) == (case.name in LEARNED)
    assert bool(case.qd.schedule.at(2).rebuild) == ("aurora" in case.name)


@pytest.mark.parametrize("pieces", [(1, 7, 3, 5, 16, 2, 14, 31, 1), (16,), (5,)])
def test_told_in_any_pieces_is_told_at_once_bit_for_bit(case, pieces):
    """Asked per batch, as the shell in step does; pieces end inside batches, at their ends and beyond."""
    whole, _ = in_step(case.qd).begin(jnp.array([3]))
    whole, _ = in_step(case.qd).advance(whole, 0, 6)
    host, sizes = drive.Host(case.qd), itertools.cycle(pieces)
    state, rows = tried(host, host.begin(3), 32)
    while len(rows.ids):
        size = next(sizes)
        state, _ = host.tell(state, rows.part(0, size))
        rows = rows.part(size, len(rows.ids))
        if not len(rows.ids) and host.evaluations(state) < 32 + 6 * 16:
            state, rows = tried(host, state, 16)
    assert_same(first(whole), state.state)


def test_told_in_place_is_told_bit_for_bit_and_copies_no_archive(case):
    """With 100,000 cells copies were nearly all that a batch took."""
    host = drive.Host(case.qd)
    at, rows = tried(host, host.begin(3), 32)
    at, rows = tried(host, host.tell(at, rows)[0], 5)
    copied = jax.device_get(host.tell(at, rows)[0].state)
    solutions = at.state.archive.elites.solution
    place = solutions.unsafe_buffer_pointer()
    over, _ = host.tell(at, rows, in_place=True)
    assert_same(copied, over.state)
    assert over.state.archive.elites.solution.unsafe_buffer_pointer() == place
    assert solutions.is_deleted()


def tried(host, state, count):
    """The next solutions and what they did."""
    state, ids, solutions = host.ask(state, count)
    return state, drive.Rows(ids, solutions, *simulate(solutions, evaluation_seeds(3, ids)))


def test_the_same_seed_gives_the_same_result_bit_for_bit_and_another_seed_another(case):
    again, _ = case.driver(ALGORITHMS[case.name]()).begin(jnp.array([3, 4]))
    assert_same(case.begun, again)
    one = case.stepped(case.begun, 0, 3)
    assert_same(one, case.stepped(again, 0, 3))
    other = case.stepped(case.runs.begin(jnp.array([5, 6]))[0], 0, 3)
    assert (np.asarray(one.archive.elites.solution) != np.asarray(other.archive.elites.solution)).any()


@pytest.mark.slow
def test_on_a_cpu_a_run_is_the_same_alone_and_in_company(case):
    together = case.stepped(case.begun, 0, 3)
    alone = case.stepped(case.runs.begin(jnp.array([4]))[0], 0, 3)
    assert_same(jax.tree.map(lambda x: x[1:], together), alone)


@pytest.mark.slow
def test_a_run_in_chunks_is_the_run_in_one_piece(case):
    whole, _ = case.advance(case.begun, 0, 3)
    assert_same(whole, case.stepped(case.begun, 0, 3))


def test_whole_runs_agree_for_hand_coded_descriptors(case):
    if case.name in LEARNED:
        assert case.qd.schedule.learns
        return
    whole = case.stepped(case.begun, 0, 6)
    host = in_step(case.qd)
    state, _ = host.begin(jnp.array([3, 4]))
    state, _ = host.advance(state, 0, 6)
    assert_close(whole, state)


def test_elites_carry_the_id_of_their_solution(case):
    """Ids are given once, in the order asked; by its id the same solution comes out of the same state again."""
    host, asked = drive.Host(case.qd), {}
    state = host.begin(5)
    for count in (32, 16, 16):
        state, rows = tried(host, state, count)
        asked |= dict(zip(rows.ids.tolist(), rows.solutions, strict=True))
        state, _ = host.tell(state, rows)
    assert sorted(asked) == list(range(64))
    elites = case.qd.archive.elites(state.state.archive)
    kept = np.flatnonzero(np.asarray(elites.valid))
    assert len(kept) > 5
    for row in kept:
        np.testing.assert_array_equal(asked[int(elites.id[row])], elites.solution[row])


def test_one_trace_per_configuration(case):
    """Later chunks, other seeds and other values of sweepable numbers reuse the compiled program."""
    begun, _ = case.runs.begin(jnp.array([5, 6]))  # what earlier tests have compiled may be forgotten
    state, _ = case.advance(begun, 0, 1)
    before = case.traces
    state, _ = case.advance(state, 1, 1)
    swept = eqx.tree_at(lambda q: q.variation.iso, case.qd, jnp.asarray(0.05))
    swept = eqx.tree_at(lambda q: q.fresh_until, swept, jnp.asarray(0.5))
    case.driver(swept).advance(case.runs.begin(jnp.array([7, 8]))[0], 0, 1)
    assert case.traces == before


@pytest.mark.slow
def test_all_trainings_are_one_program():
    """Where the bootstrap is as large as what is trained on later: a training is most of what there is to compile."""
    traces = []
    dataset = Dataset(window=16, archive=16)
    qd = vq_elites(TASK, VQVAE(TASK.behavior_shape, 2, 32), update_every=2, epochs=2, dataset=dataset, effort=EFFORT)
    runs = drive.Compiled(qd, TASK, lambda elites: traces.append(elites) or {"size": elites.size})
    state, _ = runs.begin(jnp.array([3]))
    assert len(traces) == 1
    state, info = runs.advance(state, 0, 5)
    assert len(traces) == 2  # what was measured in the iterations between trainings
    assert (info.update.learn.epochs[0] > 0).tolist() == [False, True, False, True, False]
    assert info.measures["size"][0, -1] == state.archive.elites.size
