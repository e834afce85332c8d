"""Episodes: policies act in environments until they are over, and what is seen of that."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vqelites.tasks.gym.environments import World, shrunk
from vqelites.tasks.gym.options import GymOptions
from vqelites.tasks.gym.policies import Act


@dataclass
class Episode:
    """One episode of T steps, as it is passed to a user's functions for behavior and truth."""

    seed: int
    observations: list[np.ndarray]  # T + 1, each as `Eyes` gives it
    actions: list[Any] = field(default_factory=list)  # T
    rewards: list[float] = field(default_factory=list)  # T
    info: dict[str, Any] = field(default_factory=dict)  # after the last step
    terminated: bool = False  # by the environment
    truncated: bool = False  # by the limit of steps

    @property
    def fitness(self) -> float:
        """The return."""
        return float(np.sum(self.rewards))

    @property
    def over(self) -> bool:
        """Whether no step is left."""
        return self.terminated or self.truncated

    def take_step(self, world: World, action: Any) -> None:
        """One more."""
        observation, reward, self.terminated, self.truncated, self.info = world.step(action)
        self.observations.append(observation)
        self.actions.append(action)
        self.rewards.append(reward)


def play(
    worlds: Sequence[World], act: Act, seeds: Sequence[int], look: Callable[[World], None] = lambda world: None
) -> list[Episode]:
    """An episode in each environment, all in step, with a `look` at each before and after every step.

    An environment whose episode is over stays as it is.
    """
    episodes = [Episode(seed, [world.reset(seed)]) for world, seed in zip(worlds, seeds, strict=True)]
    for world in worlds:
        look(world)
    running = list(range(len(worlds)))
    while running:
        actions = act(np.stack([episode.observations[-1] for episode in episodes]))
        for i in running:
            episodes[i].take_step(worlds[i], actions[i])
            look(worlds[i])
        running = [i for i in running if not episodes[i].over]
    return episodes


class Behavior:
    """What is seen of an episode, by the name in the options."""

    def __init__(self, options: GymOptions):
        self.name = options.behavior
        video = options.behavior == "video"
        self.moments = options.moments or (8 if video else 32)
        self.pixels = options.pixels or (32 if video else 64)

    @property
    def drawn(self) -> bool:
        """Whether the environment must draw."""
        return self.name in ("frame", "video")

    def __call__(self, world: World, episode: Episode) -> np.ndarray:
        """Of an episode, and the environment as that left it.

        Observations (moments, ...) and videos (moments, H, W, 3) are spread evenly over it, however long it was.
        """
        if self.name == "last observation":
            return episode.observations[-1]
        if self.name == "frame":
            return shrunk(world.frame(), self.pixels)
        chosen = np.linspace(0, len(episode.actions), self.moments).round().astype(int)
        if self.name == "observations":
            return np.stack([episode.observations[moment] for moment in chosen])
        frames = self._filmed(world, episode, set(chosen.tolist()))
        return np.stack([frames[moment] for moment in chosen])

    def _filmed(self, world: World, episode: Episode, moments: set[int]) -> dict[int, np.ndarray]:
        """The same episode once more: only now it is known how long it is, and drawing every step would take long."""
        world.reset(episode.seed)
        frames = {0: shrunk(world.frame(), self.pixels)}
        for moment, action in enumerate(episode.actions, start=1):
            world.step(action)
            if moment in moments:
                frames[moment] = shrunk(world.frame(), self.pixels)
        return frames
