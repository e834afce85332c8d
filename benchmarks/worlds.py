"""Gymnasium environments as functions of a policy's parameters, run by processes that are kept alive.

An episode always starts from the same seed, so a policy does the same every time.
"""

import functools
import itertools
import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np
from PIL import Image

EPISODE_SEED = 0
MINIGRID_STEPS = 64
FRAME, OBSERVATIONS = (64, 64, 3), (32, 8)

World = Literal["minigrid", "lander"]
Sensor = Literal["frame", "sparks", "observations", "nothing"]

# Inputs, hidden units and actions of each world's policy.
LAYERS: dict[str, tuple[int, ...]] = {"minigrid": (6, 16, 4), "lander": (8, 16, 4)}
TRUTH: dict[str, int] = {"minigrid": 2, "lander": 3}
BEHAVIOR: dict[Sensor, tuple[int, ...]] = {
    "frame": FRAME,  # the last one
    "sparks": FRAME,  # the same, with all the sparks that the lander's engines gave off
    "observations": OBSERVATIONS,  # of the lander, evenly spread over the episode
    "nothing": (0,),
}


class Outcomes(NamedTuple):
    """What n policies did."""

    fitness: np.ndarray  # (n,) the return
    behavior: np.ndarray  # (n, *shape) what the sensor recorded
    truth: np.ndarray  # (n, t) minigrid: column and row of the last tile; lander: x, y, 1 if on the ground


Evaluate = Callable[[np.ndarray], Outcomes]


class Policy:
    """A fully connected network, tanh between its layers, read from one flat vector; takes the best action."""

    def __init__(self, sizes: tuple[int, ...], vector: np.ndarray):
        self.layers, start = [], 0
        for inputs, outputs in itertools.pairwise(sizes):
            middle, end = start + inputs * outputs, start + (inputs + 1) * outputs
            self.layers.append((vector[start:middle].reshape(inputs, outputs), vector[middle:end]))
            start = end

    def __call__(self, x: np.ndarray) -> int:
        for weight, bias in self.layers[:-1]:
            x = np.tanh(x @ weight + bias)
        weight, bias = self.layers[-1]
        return int(np.argmax(x @ weight + bias))


def solution_dim(world: World) -> int:
    """How many parameters the policy has."""
    return sum((inputs + 1) * outputs for inputs, outputs in itertools.pairwise(LAYERS[world]))


@contextmanager
def pool(world: World, sensor: Sensor, workers: int = 2) -> Iterator[Evaluate]:
    """A function that evaluates policies (n, s) in processes of their own.

    Box2D warns while it is imported and crashes if warnings are errors: with `spawn` the processes do not inherit that.
    """
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as processes:

        def evaluate(solutions: np.ndarray) -> Outcomes:
            chunks = [solutions[i : i + 8] for i in range(0, len(solutions), 8)]
            parts = processes.map(functools.partial(episodes, world, sensor), chunks)
            return Outcomes(*(np.concatenate(column) for column in zip(*parts, strict=True)))

        yield evaluate


def episodes(world: World, sensor: Sensor, solutions: np.ndarray) -> Outcomes:
    """Run one episode with each policy (n, s), here and now."""
    episode = _minigrid_episode if world == "minigrid" else _lander_episode
    env = _environment(world, sensor)
    rows = [episode(env, sensor, Policy(LAYERS[world], solution)) for solution in solutions]
    return Outcomes(*(np.stack(column) for column in zip(*rows, strict=True)))


@functools.cache
def _environment(world: World, sensor: Sensor) -> gymnasium.Env:
    if world == "minigrid":
        import minigrid  # noqa: F401  (registers its environments)

        return gymnasium.make("MiniGrid-Empty-16x16-v0", max_steps=MINIGRID_STEPS, disable_env_checker=True)
    # Made for drawing, the lander gives off sparks that fade only as frames are drawn. The physics stay the same, but a
    # policy that hovers has 600 of them by the end, and its episode takes 25 times as long.
    mode = "rgb_array" if sensor == "sparks" else None
    return gymnasium.make("LunarLander-v3", render_mode=mode, disable_env_checker=True)


def _minigrid_episode(env: gymnasium.Env, sensor: Sensor, policy: Policy) -> tuple[Any, ...]:
    """The policy sees where the agent is, where it looks, and two waves; it may turn, go forward, or stay.

    Without the waves 7 of 10 random policies end where they began; with them it is every second.
    """
    grid: Any = env.unwrapped
    actions = (grid.actions.left, grid.actions.right, grid.actions.forward, grid.actions.done)
    headings = np.array([(1, 0), (0, 1), (-1, 0), (0, -1)])
    env.reset(seed=EPISODE_SEED)
    fitness, terminated, truncated = 0.0, False, False
    while not (terminated or truncated):
        place = 2 * np.array(grid.agent_pos) / (grid.width - 1) - 1
        waves = np.sin([grid.step_count, 0.3 * grid.step_count])
        action = policy(np.array([*place, *headings[grid.agent_dir], *waves]))
        _, reward, terminated, truncated, _ = env.step(actions[action])
        fitness += float(reward)
    # 4 pixels for each of 16 tiles, as minigrid's RGBImgObsWrapper(env, tile_size=4) gives them.
    frame = grid.get_frame(highlight=grid.highlight, tile_size=4) if sensor == "frame" else np.zeros(0)
    return np.float32(fitness), frame, np.array(grid.agent_pos, np.float32)


def _lander_episode(env: gymnasium.Env, sensor: Sensor, policy: Policy) -> tuple[Any, ...]:
    observation, _ = env.reset(seed=EPISODE_SEED)
    seen, fitness, terminated, truncated = [observation], 0.0, False, False
    while not (terminated or truncated):
        observation, reward, terminated, truncated, _ = env.step(policy(observation))
        seen.append(observation)
        fitness += float(reward)
    x, y, *_, left_leg, right_leg = observation
    # An episode terminates when the lander crashes, comes to rest, or leaves the picture to a side.
    grounded = abs(x) < 1 and (terminated or left_leg or right_leg)
    return np.float32(fitness), _lander_behavior(env, sensor, seen), np.array([x, y, grounded], np.float32)


def _lander_behavior(env: gymnasium.Env, sensor: Sensor, seen: list[np.ndarray]) -> np.ndarray:
    if sensor == "observations":
        return np.stack(seen)[np.linspace(0, len(seen) - 1, OBSERVATIONS[0]).round().astype(int)]
    if sensor == "nothing":
        return np.zeros(0)
    lander: Any = env.unwrapped
    mode, lander.render_mode = lander.render_mode, "rgb_array"
    picture = Image.fromarray(lander.render())
    lander.render_mode = mode
    return np.asarray(picture.resize(FRAME[:2], Image.Resampling.BOX))
