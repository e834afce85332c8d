"""Environments of Gymnasium as simulators: real ones, and a small one with any kind of observation and action."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium", reason="needs the extra gym: pip install 'vqelites[gym]'")

from gymnasium import spaces  # noqa: E402
from probes import BOX, GO, Probe, evaluate, probe, solutions  # noqa: E402

from vqelites import GymTask  # noqa: E402
from vqelites.evaluation import PoolEvaluator, Value  # noqa: E402
from vqelites.tasks import SimulatorTask, registry  # noqa: E402


def assert_same(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert a.fitness == b.fitness
        np.testing.assert_array_equal(a.behavior, b.behavior)
        np.testing.assert_array_equal(a.truth, b.truth)


@pytest.mark.parametrize(
    ("space", "inputs", "shape"),
    [
        (BOX, 3, (32, 3)),
        (spaces.Box(-1, 1, ()), 1, (32, 1)),
        (spaces.Discrete(4), 4, (32, 4)),
        (spaces.MultiDiscrete([2, 3]), 5, (32, 5)),
        (spaces.MultiBinary(3), 3, (32, 3)),
        (spaces.Dict({"go": spaces.Discrete(2), "at": BOX, "say": spaces.Text(9)}), 5, (32, 5)),
        (spaces.Dict({"at": BOX, "in": spaces.Dict({"go": spaces.Discrete(2), "say": spaces.Text(9)})}), 5, (32, 5)),
        (spaces.Dict({"at": BOX, "in": spaces.Dict({"say": spaces.Text(9)})}), 3, (32, 3)),
        (spaces.Tuple([BOX, spaces.Discrete(2)]), 5, (32, 5)),
        (spaces.Tuple([BOX, spaces.Text(9), spaces.Tuple([GO, spaces.Sequence(GO)])]), 5, (32, 5)),
        (spaces.Box(0, 255, (4, 4, 3), np.uint8), 48, (32, 4, 4, 3)),
    ],
)
def test_every_kind_of_observation(space, inputs, shape):
    task = probe(space, policy="linear")
    assert task.interface.solution_dim == (inputs + 1) * 2
    [value] = evaluate(task)
    assert value.fitness == 5
    assert value.behavior.shape == shape


@pytest.mark.parametrize(
    ("space", "outputs"),
    [
        (spaces.Discrete(3, start=5), 3),
        (spaces.MultiDiscrete([2, 3]), 5),
        (spaces.MultiBinary(4), 4),
        (spaces.Box(np.array([-2, 0], np.float32), np.array([1, 9], np.float32)), 2),
        (spaces.Box(-np.inf, np.inf, (2, 2)), 4),
    ],
)
def test_every_kind_of_action_lies_in_its_space(space, outputs):
    task = probe(action_space=space, hidden=(4,))
    assert task.interface.solution_dim == 4 * 4 + 5 * outputs
    assert [value.fitness for value in evaluate(task, 8)] == [5] * 8


@pytest.mark.parametrize(
    ("behavior", "shape"),
    [
        ("observations", (32, 3)),
        ("last observation", (3,)),
        ("frame", (64, 64, 3)),
        ("video", (8, 32, 32, 3)),
        (lambda episode: [len(episode.actions), episode.info["count"], episode.terminated], (3,)),
    ],
)
def test_every_kind_of_behavior(behavior, shape):
    [value] = evaluate(probe(behavior=behavior))
    assert value.behavior.shape == shape
    if callable(behavior):
        assert value.behavior.tolist() == [5, 5, 1]
    if behavior in ("frame", "video"):
        assert value.behavior.dtype == np.uint8
        levels = value.behavior.reshape(-1, *value.behavior.shape[-3:])[:, 0, 0, 0]
        np.testing.assert_array_equal(levels, [5] if behavior == "frame" else np.linspace(0, 5, 8).round())


def test_episodes_of_any_length_are_spread_over_the_same_moments():
    task = GymTask("CartPole-v1", moments=4)
    whole = GymTask("CartPole-v1", behavior=lambda episode: [*episode.observations[0], *episode.observations[-1]])
    seen, ends = evaluate(task, 6), evaluate(whole, 6)
    assert len({value.fitness for value in seen}) > 1  # of different length, since every step pays 1
    for value, end in zip(seen, ends, strict=True):
        np.testing.assert_array_equal(value.behavior[[0, -1]].ravel(), end.behavior)


def test_the_limit_of_steps_is_the_environments_or_ones_own_or_a_thousand():
    def length(episode):
        return [len(episode.actions)]

    class Endless(Probe):
        def step(self, action):
            observation, reward, _, truncated, info = super().step(action)
            return observation, reward, False, truncated, info

    endless = GymTask(lambda: Endless(BOX, GO), behavior=length)
    assert evaluate(endless)[0].behavior == 1000
    assert evaluate(GymTask("Pendulum-v1", behavior=length))[0].behavior == 200
    assert evaluate(GymTask("Pendulum-v1", behavior=length, steps=7))[0].behavior == 7


def test_more_steps_than_an_environment_has_by_itself_are_taken():
    task = GymTask("Pendulum-v1", behavior=lambda episode: [len(episode.actions)], steps=230)
    assert evaluate(task)[0].behavior == 230  # not 200, its own limit


def test_a_limit_that_a_function_has_set_stays():
    def limited():
        return gymnasium.wrappers.TimeLimit(Probe(BOX, GO), 3)

    for steps, taken in ((None, 3), (2, 2), (4, 3)):
        task = GymTask(limited, behavior=lambda episode: [len(episode.actions)], steps=steps)
        assert evaluate(task)[0].behavior == taken


def test_several_episodes_are_averaged_and_start_differently():
    one, three = GymTask("Pendulum-v1", steps=5), GymTask("Pendulum-v1", steps=5, episodes=3)
    x, seed = solutions(one, 1)[0], 123
    singles = [one.simulate(x, s) for s in three._seeds(seed)]
    fitness, behavior = three.simulate(x, seed)
    assert fitness == np.mean([single[0] for single in singles])
    np.testing.assert_allclose(behavior, np.mean([single[1] for single in singles], axis=0))
    assert len({single[0] for single in singles}) == 3
    frames = evaluate(probe(behavior="frame", episodes=2))[0].behavior
    np.testing.assert_allclose(frames, 5 / 255)  # still between 0 and 1


@pytest.mark.parametrize("id", ["CartPole-v1", "Pendulum-v1"])
def test_environments_side_by_side_give_what_each_gives_alone(id):
    alone, together = (GymTask(id, steps=40, vector=vector, episodes=2) for vector in (1, 3))
    assert together.batch
    once = evaluate(alone, 7)
    assert_same(once, evaluate(together, 7))
    assert_same(once, evaluate(together, 7, PoolEvaluator, workers=2))


def test_workers_give_the_same_and_load_no_jax():
    task = GymTask("CartPole-v1", steps=40)
    assert_same(evaluate(task, 12), evaluate(task, 12, PoolEvaluator, workers=2))
    code = "import pickle, sys; pickle.loads(sys.stdin.buffer.read()); "
    code += "print(*(name for name in ('jax', 'vqelites') if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(task), capture_output=True, check=True)
    assert done.stdout.split() == [b"vqelites"]


def test_normalised_observations_are_the_same_in_every_process():
    task = GymTask("CartPole-v1", normalise=True, steps=40)
    again = GymTask("CartPole-v1", normalise=True, steps=40)
    assert_same(evaluate(task, 4), evaluate(again, 4, PoolEvaluator, workers=1))
    assert [value.fitness for value in evaluate(task, 8)] != [
        value.fitness for value in evaluate(GymTask("CartPole-v1", steps=40), 8)
    ]


def test_a_normalised_policy_sees_standardised_observations_and_behavior_stays_raw():
    seen = []

    def watch(solution):
        return lambda observation: seen.append(observation) or int(solution[0] > 0)

    wide = spaces.Box(np.array([100, -1], np.float32), np.array([104, 1], np.float32))
    values = evaluate(probe(wide, policy=watch, solution_dim=1, normalise=True), 40)
    np.testing.assert_allclose(np.mean(seen, axis=0), 0, atol=0.25)
    np.testing.assert_allclose(np.std(seen, axis=0), 1, atol=0.15)
    assert all((value.behavior[:, 0] > 99).all() for value in values)


def test_a_policy_may_see_pictures_that_a_wrapper_draws():
    """It saw nothing: the environment had been told not to draw."""
    wrappers = gymnasium.wrappers

    def drawn(render_mode=None):
        return wrappers.AddRenderObservation(Probe(BOX, GO, "rgb_array"), render_only=True)

    for behavior, shape in (("last observation", (20, 30, 3)), ("frame", (64, 64, 3))):
        [value] = evaluate(GymTask(drawn, policy="linear", behavior=behavior))
        np.testing.assert_array_equal(value.behavior, np.full(shape, 5, np.uint8), strict=True)


@pytest.fixture
def registered():
    """The id of an environment that only this process knows."""
    name = "OnlyHere-v0"
    gymnasium.register(name, lambda render_mode=None: Probe(BOX, GO, render_mode), max_episode_steps=4)
    yield name
    del gymnasium.registry[name]


def test_workers_know_the_ids_that_a_script_has_registered(registered):
    """They could not make the environment."""
    task = GymTask(registered)
    assert [value.fitness for value in evaluate(task, 4, PoolEvaluator, workers=2)] == [4] * 4


def test_a_policy_of_ones_own_may_have_a_memory():
    class Alternate:
        def __init__(self, solution):
            self.next = int(solution[0] > 0)

        def __call__(self, observation):
            self.next = 1 - self.next
            return self.next

    task = GymTask("CartPole-v1", policy=Alternate, solution_dim=1, behavior=lambda episode: episode.actions[:4])
    assert task.interface.solution_dim == 1
    assert task.simulate(np.array([1.0]), 0)[1] == [0, 1, 0, 1]
    assert task.simulate(np.array([1.0]), 0)[1] == [0, 1, 0, 1]


def test_truth_and_wrapper_of_ones_own():
    def tripled(env):
        return gymnasium.wrappers.TransformReward(env, lambda reward: 3 * reward)

    task = probe(wrapper=tripled, truth=lambda episode: [len(episode.actions)], truth_low=(0,), truth_high=(9,))
    [value] = evaluate(task)
    assert (value.fitness, value.truth.tolist()) == (15, [5])
    assert task.interface.truth_dim == 1


MUJOCO = ["HalfCheetah-v5", "Ant-v5", "Walker2d-v5", "Hopper-v5", "Swimmer-v5"]
REAL = ["LunarLander-v3", "BipedalWalker-v3", "MiniGrid-Empty-8x8-v0", "MiniGrid-DoorKey-8x8-v0", *MUJOCO]


@pytest.mark.parametrize("id", REAL)
def test_real_environments_do_again_what_they_did(id):
    """In one that was used before, and in a new one: what an elite did can be replayed."""
    task = GymTask(id, steps=60)
    once = evaluate(task, 3)
    assert all(isinstance(value, Value) for value in once)
    assert_same(once, evaluate(task, 3))
    assert_same(once, evaluate(GymTask(id, steps=60), 3))


def test_the_film_shows_the_episode_that_was_evaluated():
    task = GymTask("LunarLander-v3", steps=60)
    x = solutions(task, 1)[0]
    film = task.render(x, 5)
    assert film.fitness == task.simulate(x, 5)[0]
    assert film.frames.shape == (61, 400, 600, 3)
    assert film.rate == 50


def test_the_name_says_all_that_a_task_is_made_of():
    task = GymTask("Pendulum-v1", policy="mlp", hidden=(8, 8), behavior="last observation", steps=9, normalise=True)
    assert task.name == "gym:Pendulum-v1,hidden=8x8,normalise=true,behavior=last observation,steps=9"
    again = registry.make(task.name)
    assert again.source.options == task.options
    assert again.interface == task.interface
    assert GymTask("Pendulum-v1", hidden=(8,)).name == "gym:Pendulum-v1,hidden=8x"
    assert registry.make("gym:Pendulum-v1,hidden=8x").source.options.hidden == (8,)
    assert GymTask("Pendulum-v1", truth=lambda episode: [0]).name == "Pendulum-v1"  # nobody can make it again


def test_a_task_file_registers_a_function_that_makes_a_gym_task():
    """It was taken for a task in JAX, which takes no workers."""
    registry.register("my-pole", "a pole")(lambda: GymTask("CartPole-v1", vector=2))
    task = registry.make("my-pole")
    assert isinstance(task, SimulatorTask)
    assert task.batch
    assert task.space.dim == 114
