"""Gymnasium environments as functions of a policy's parameters, run by processes that are kept alive.

An episode always starts from the same seed, so a policy does the same every time.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces

from vqelites import GymTask
from vqelites.evaluation import PoolEvaluator, Simulator, arrays
from vqelites.tasks.gym import Episode

EPISODE_SEED = 0

World = Literal["minigrid", "lander"]
Sensor = Literal["frame", "observations", "nothing"]

TRUTH: dict[World, int] = {"minigrid": 2, "lander": 3}
BEHAVIOR: dict[Sensor, tuple[int, ...]] = {
    "frame": (64, 64, 3),  # the last one
    "observations": (32, 8),  # of the lander, evenly spread over the episode
    "nothing": (0,),
}


class Outcomes(NamedTuple):
    """What n policies did."""

    fitness: np.ndarray  # (n,) the return
    behavior: np.ndarray  # (n, *shape) what the sensor recorded
    truth: np.ndarray  # (n, t) minigrid: column and row of the last tile; lander: x, y, 1 if on the ground


Evaluate = Callable[[np.ndarray], Outcomes]


class Compass(gymnasium.Wrapper):
    """The policy sees where the agent is, where it looks, and two waves; it may turn, go forward, or stay.

    Without the waves 7 of 10 random policies end where they began; with them it is every second.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]):
        super().__init__(env)
        self.observation_space = spaces.Box(-1, 1, (6,))
        self.action_space = spaces.Discrete(4)

    def reset(self, **options: Any) -> tuple[np.ndarray, dict[str, Any]]:
        self.env.reset(**options)
        return self._seen(), {}

    def step(self, action: int) -> tuple[np.ndarray, Any, bool, bool, dict[str, Any]]:
        grid: Any = self.env.unwrapped
        actions = (grid.actions.left, grid.actions.right, grid.actions.forward, grid.actions.done)
        _, reward, terminated, truncated, _ = self.env.step(actions[action])
        return self._seen(), reward, terminated, truncated, {"tile": grid.agent_pos}

    def _seen(self) -> np.ndarray:
        grid: Any = self.env.unwrapped
        place = 2 * np.array(grid.agent_pos) / (grid.width - 1) - 1
        heading = [(1, 0), (0, 1), (-1, 0), (0, -1)][grid.agent_dir]
        return np.array([*place, *heading, *np.sin([grid.step_count, 0.3 * grid.step_count])], np.float32)


def minigrid(render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    """An empty room of 14 x 14 tiles, 4 pixels wide each."""
    name = "minigrid:MiniGrid-Empty-16x16-v0"
    return Compass(gymnasium.make(name, max_steps=64, tile_size=4, render_mode=render_mode, disable_env_checker=True))


def tile(episode: Episode) -> np.ndarray:
    """Column and row of the last one."""
    return np.array(episode.info["tile"], np.float32)


def landing(episode: Episode) -> np.ndarray:
    """Where it ends: x, y, and 1 if on the ground.

    An episode terminates when the lander crashes, comes to rest, or leaves the picture to a side.
    """
    x, y, *_, left_leg, right_leg = episode.observations[-1]
    return np.array([x, y, abs(x) < 1 and (episode.terminated or left_leg or right_leg)], np.float32)


def nothing(episode: Episode) -> np.ndarray:
    """For who is given the truth."""
    return np.zeros(0)


def task(world: World, sensor: Sensor) -> GymTask:
    """Policies with 16 hidden units in a world, seen by a sensor."""
    behavior: Any = nothing if sensor == "nothing" else sensor
    if world == "minigrid":
        return GymTask(minigrid, behavior=behavior, truth=tile)
    return GymTask("LunarLander-v3", behavior=behavior, truth=landing)


def solution_dim(world: World) -> int:
    """How many parameters the policy has."""
    return task(world, "nothing").interface.solution_dim


@contextmanager
def pool(world: World, sensor: Sensor, workers: int = 2) -> Iterator[Evaluate]:
    """A function that evaluates policies (n, s) in processes of their own."""
    with PoolEvaluator(Simulator(task(world, sensor).simulate), workers) as evaluator:

        def evaluate(solutions: np.ndarray) -> Outcomes:
            count = len(solutions)
            results = evaluator.evaluate(range(count), solutions, [EPISODE_SEED] * count)
            return Outcomes(*arrays(results, BEHAVIOR[sensor], TRUTH[world]))

        yield evaluate
