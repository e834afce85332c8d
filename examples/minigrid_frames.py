"""Everywhere in a room, from pictures alone: MiniGrid of Farama, told apart by the last frame.

    pip install "vqelites[gym]"
    python examples/minigrid_frames.py
    vqelites show runs/minigrid-frames

Nobody says that the place of the agent matters: it is what the frames differ in.
"""

import gymnasium
import numpy as np

import vqelites


class Compass(gymnasium.ObservationWrapper):
    """The agent sees where it is and where it looks, instead of the tiles before it, and the time as a wave."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Box(-1, 1, (5,))

    def observation(self, observation):
        """Column and row, heading, and time."""
        grid = self.env.unwrapped
        place = 2 * np.array(grid.agent_pos) / (grid.width - 1) - 1
        angle = grid.agent_dir * np.pi / 2
        return np.array([*place, np.cos(angle), np.sin(angle), np.sin(0.3 * grid.step_count)], np.float32)


def tile(episode):
    """Column and row of the agent at the end, by what it saw: the truth, for metrics only."""
    return episode.observations[-1][:2]


def main(out="runs/minigrid-frames", **sizes):
    """About 5,000 evaluations; `sizes` are hyperparameters to change."""
    task = vqelites.GymTask(
        "MiniGrid-Empty-16x16-v0",
        behavior="frame",  # 64 x 64 x 3
        wrapper=Compass,
        steps=64,
        truth=tile,
        truth_low=(-1, -1),
        truth_high=(1, 1),
        bins=(16, 16),
    )
    run = vqelites.run(task, out=out, workers=2, **({"cells": 300, "iterations": 30} | sizes))
    print(run.archive.stats)
    return run


if __name__ == "__main__":
    main()
