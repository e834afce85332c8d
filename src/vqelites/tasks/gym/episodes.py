"""Episodes: policies act in environments until they are over, and what is seen of that."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vqelites.tasks.gym.environments import Env, Eyes, frame, shrunk
from vqelites.tasks.gym.options import Options
from vqelites.tasks.gym.policies import Act


@dataclass
class Episode:
    """One episode of T steps, as functions of a user for behavior and truth get it."""

    seed: int
    observations: list[np.ndarray]  # T + 1, each as `Eyes` gives it
    actions: list[Any] = field(default_factory=list)  # T
    rewards: list[float] = field(default_factory=list)  # T
    info: dict[str, Any] = field(default_factory=dict)  # after the last step
    terminated: bool = False  # by the environment, not by the limit of steps

    @property
    def fitness(self) -> float:
        """The return."""
        return float(np.sum(self.rewards))


def play(
    envs: Sequence[Env], eyes: Eyes, act: Act, seeds: Sequence[int], look: Callable[[Env], None] = lambda env: None
) -> list[Episode]:
    """An episode in each environment, all in step, with a `look` at each before and after every step.

    An environment whose episode is over stays as it is.
    """
    episodes = [Episode(seed, [eyes(env.reset(seed=seed)[0])]) for env, seed in zip(envs, seeds, strict=True)]
    running = list(zip(envs, episodes, range(len(envs)), strict=True))
    for env in envs:
        look(env)
    while running:
        actions = act(np.stack([episode.observations[-1] for episode in episodes]))
        running = [(env, episode, i) for env, episode, i in running if _goes_on(env, eyes, episode, actions[i], look)]
    return episodes


def _goes_on(env: Env, eyes: Eyes, episode: Episode, action: Any, look: Callable[[Env], None]) -> bool:
    """Take a step; whether it was not the last."""
    observation, reward, episode.terminated, truncated, episode.info = env.step(action)
    episode.observations.append(eyes(observation))
    episode.actions.append(action)
    episode.rewards.append(float(reward))
    look(env)
    return not (episode.terminated or truncated)


class Behavior:
    """What is seen of an episode, by the name in the options."""

    def __init__(self, options: Options):
        self.name = options.behavior
        video = options.behavior == "video"
        self.moments = options.moments or (8 if video else 32)
        self.pixels = options.pixels or (32 if video else 64)

    @property
    def drawn(self) -> bool:
        """Whether the environment must draw."""
        return self.name in ("frame", "video")

    def __call__(self, env: Env, episode: Episode) -> np.ndarray:
        """Of an environment that is as the episode left it.

        Observations (moments, ...) and videos (moments, H, W, 3) are spread evenly over it, however long it was.
        """
        if self.name == "last observation":
            return episode.observations[-1]
        if self.name == "frame":
            return shrunk(frame(env), self.pixels)
        chosen = np.linspace(0, len(episode.actions), self.moments).round().astype(int)
        if self.name == "observations":
            return np.stack([episode.observations[moment] for moment in chosen])
        frames = self._filmed(env, episode, set(chosen.tolist()))
        return np.stack([frames[moment] for moment in chosen])

    def _filmed(self, env: Env, episode: Episode, moments: set[int]) -> dict[int, np.ndarray]:
        """The same episode once more: only now it is known how long it is, and drawing every step would take long."""
        env.reset(seed=episode.seed)
        frames = {0: shrunk(frame(env), self.pixels)}
        for moment, action in enumerate(episode.actions, start=1):
            env.step(action)
            if moment in moments:
                frames[moment] = shrunk(frame(env), self.pixels)
        return frames
