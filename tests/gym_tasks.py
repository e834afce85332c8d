"""Environments of Gymnasium for tests; as a task file it registers them."""

import numpy as np

from vqelites import GymTask
from vqelites.tasks import registry


def hull(episode):
    """Angle of the walker's hull and its speed, at the end."""
    return np.clip(episode.observations[-1][[0, 2]], -1, 1)


def walker():
    """A walker that falls; its world would keep traces of the episode before if it were not made anew."""
    limits = {"truth_low": (-1, -1), "truth_high": (1, 1), "bins": (6, 6)}
    return GymTask("BipedalWalker-v3", behavior="last observation", steps=60, truth=hull, **limits)


if __name__.startswith("vqelites_task_file"):
    registry.register("walker", "a walker that falls")(walker)
