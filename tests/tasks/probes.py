"""A small environment with any kind of observation and action, and what random policies do in it and in others."""

import gymnasium
import numpy as np
from gymnasium import spaces

from vqelites import GymTask
from vqelites.evaluation import LocalEvaluator, Simulator, evaluation_seeds


class Probe(gymnasium.Env):
    """Shows a random observation of its space and pays 1 for every action of its space; over after 5 steps."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, observation_space, action_space, render_mode=None):
        self.observation_space, self.action_space, self.render_mode = observation_space, action_space, render_mode

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.count = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space}"
        self.count += 1
        return self.observation_space.sample(), 1.0, self.count == 5, False, {"count": self.count}

    def render(self):
        return None if self.render_mode is None else np.full((20, 30, 3), self.count, np.uint8)


BOX = spaces.Box(-1, 1, (3,))
GO = spaces.Discrete(2)


def probe(observation_space=BOX, action_space=GO, **options):
    def make(render_mode=None):
        return Probe(observation_space, action_space, render_mode)

    return GymTask(make, **options)


def solutions(task, count, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (count, task.interface.solution_dim)).astype(np.float32)


def evaluate(task, count=1, evaluator=LocalEvaluator, **options):
    """Values of random solutions, through the engine."""
    with evaluator(Simulator(task.simulate, task.batch), **options) as ready:
        results = ready.evaluate(range(count), solutions(task, count), evaluation_seeds(0, range(count)))
    return [result.outcome for result in results]
