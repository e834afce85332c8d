"""An environment of Gymnasium as a simulator: `GymTask("LunarLander-v3")` goes wherever a simulator does."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from vqelites.tasks.families import spelled
from vqelites.tasks.film import Film
from vqelites.tasks.gym.environments import FRAMES, Env, World, make_env, register_again, registered
from vqelites.tasks.gym.episodes import Behavior, Episode, play
from vqelites.tasks.gym.options import GymOptions, option_names
from vqelites.tasks.gym.policies import Network, Own, Scaled
from vqelites.tasks.options import check_names

if TYPE_CHECKING:
    from vqelites.tasks.simulated import Interface

_LOOKS = 1000  # random steps whose observations say what is normal
OwnPolicy = Callable[[np.ndarray], Callable[[np.ndarray], Any]]


class GymTask:
    """Policies in an environment of Gymnasium: fitness is the return, behavior a record of the episode.

    `env` is an id, or a function that makes the environment and takes `render_mode` where frames are needed; `wrapper`
    is put around it. `policy` is a name or a function `policy(solution)` that returns a function from an observation
    to an action; then `solution_dim` must be given. `behavior` is a name, or a function of an `Episode` that returns
    an array of one shape; `truth` is such a function too. Everything else is a field of `GymOptions` (`steps`,
    `episodes`, ...) or of `Interface` (`low`, `high`, `bounded`, `truth_low`, `truth_high`, `bins`).
    """

    def __init__(
        self,
        env: str | Callable[..., Env],
        policy: str | OwnPolicy = "mlp",
        behavior: str | Callable[[Episode], Any] = "observations",
        *,
        wrapper: Callable[[Env], Env] | None = None,
        truth: Callable[[Episode], Any] | None = None,
        **more: Any,
    ):
        named: dict[str, Any] = {
            name: value for name, value in (("policy", policy), ("behavior", behavior)) if not callable(value)
        }
        self.env, self.wrapper, self.truth = env, wrapper, truth
        self.options = GymOptions(**named, **{name: more.pop(name) for name in option_names() if name in more})
        self._own_policy = policy if callable(policy) else None
        self._own_behavior = behavior if callable(behavior) else None
        self._see = Behavior(self.options)
        self._policy = self._made_policy(self._worlds[0], more.pop("solution_dim", None))
        self.interface: Interface = self._interface(more)

    @property
    def name(self) -> str:
        """`gym:ID,OPTIONS`, from which it can be made again; without functions among its parts only."""
        functions = (self.wrapper, self.truth, self._own_behavior, self._own_policy)
        if isinstance(self.env, str) and functions == (None,) * 4:
            return f"gym:{spelled(self.env, self.options)}"
        return self.env if isinstance(self.env, str) else getattr(self.env, "__name__", "GymTask")

    @property
    def batch(self) -> bool:
        """Whether it takes several solutions at once."""
        return self.options.vector > 1

    def simulate(self, solution: np.ndarray, seed: Any) -> tuple[Any, ...]:
        """Fitness, behavior and, if there is one, truth; of solutions (n, s) and seeds (n,) if there are several."""
        if not self.batch:
            return self._evaluate(solution[None], [seed])[0]
        return tuple(map(np.stack, zip(*self._evaluate(solution, seed), strict=True)))

    def render(self, solution: np.ndarray, seed: int) -> Film:
        """The episodes of one solution, every step drawn."""
        frames: list[np.ndarray] = []
        with contextlib.closing(World(lambda: self._made(FRAMES))) as world:
            played = []
            for one in self._seeds(seed):
                act = self._policy(solution[None])
                played += play([world], act, [one], lambda world: frames.append(world.frame()))
            fitness = float(np.mean([episode.fitness for episode in played]))
            return Film(np.stack(frames), float(world.env.metadata.get("render_fps", 30)), fitness)

    def _evaluate(self, solutions: np.ndarray, seeds: Sequence[int]) -> list[tuple[Any, ...]]:
        """What each solution (n, s) did."""
        jobs = [(row, seed) for row, first in enumerate(seeds) for seed in self._seeds(first)]
        seen = []
        for start in range(0, len(jobs), self.options.vector):
            rows, several = zip(*jobs[start : start + self.options.vector], strict=True)
            seen += self._play(solutions[list(rows)], several)
        each = self.options.episodes
        return [self._mean(seen[i : i + each]) for i in range(0, len(seen), each)]

    def _play(self, solutions: np.ndarray, seeds: Sequence[int]) -> list[tuple[Any, ...]]:
        """Fitness, behavior and perhaps truth of an episode of each solution, side by side."""
        worlds = self._worlds[: len(seeds)]
        episodes = play(worlds, self._policy(solutions), seeds)
        results = []
        for world, episode in zip(worlds, episodes, strict=True):
            behavior = self._see(world, episode) if self._own_behavior is None else self._own_behavior(episode)
            results.append((episode.fitness, behavior, *([] if self.truth is None else [self.truth(episode)])))
        return results

    def _mean(self, episodes: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Over all episodes of a solution; a single one stays as it is, with frames in 8 bits."""
        if len(episodes) == 1:
            return episodes[0]
        arrays = [[np.asarray(part) for part in column] for column in zip(*episodes, strict=True)]
        scaled = [[part / 255 if part.dtype == np.uint8 else part for part in column] for column in arrays]
        return tuple(np.mean(column, axis=0) for column in scaled)

    def _seeds(self, seed: int) -> list[int]:
        """One per episode; that of the first is that of the evaluation."""
        others = np.random.SeedSequence(int(seed)).generate_state(self.options.episodes - 1)
        return [int(seed), *(int(other) >> 1 for other in others)]

    def _made(self, render_mode: str | None) -> Env:
        env = make_env(self.env, render_mode, self.options.steps)
        if self.wrapper is None:
            return env
        wrapped = self.wrapper(env)
        if not isinstance(wrapped, gymnasium.Env):
            raise TypeError(f"A wrapper must return the environment it has wrapped, but returned {wrapped!r}.")
        return wrapped

    @cached_property
    def _worlds(self) -> list[World]:
        """Made when they are first needed, in each process of its own."""
        mode = FRAMES if self._own_behavior is None and self._see.drawn else None
        return [World(lambda: self._made(mode), rarely_drawn=mode is not None) for _ in range(self.options.vector)]

    def _made_policy(self, world: World, dim: int | None) -> Any:
        """With the number of parameters that was given, if one was."""
        if self._own_policy is not None:
            if dim is None:
                raise ValueError("A policy of your own needs solution_dim, the number of its parameters.")
            made: Any = Own(self._own_policy, dim)
        else:
            hidden = self.options.hidden if self.options.policy == "mlp" else ()
            made = Network(world.eyes.shape, hidden, world.env.action_space)
            made.check(made.dim if dim is None else dim)
        if self.options.normalise:
            return Scaled(made, *_usual(world))
        pixels = world.eyes.image and self._own_policy is None
        return Scaled(made, np.zeros(()), np.full((), 255.0)) if pixels else made

    def _interface(self, known: dict[str, Any]) -> "Interface":
        from vqelites.tasks.simulated import Interface

        names = [*option_names(), "wrapper", "truth", *(field.name for field in fields(Interface))]
        hint = "Arguments of the environment itself go through `def make(render_mode=None)`, which makes it."
        check_names("GymTask", known, names, hint)
        return Interface(self._policy.dim, **({"truth_dim": 0} if self.truth is None else {}) | known)

    def __getstate__(self) -> dict[str, Any]:
        """For other processes: environments are made there anew, and only this one asks for the interface."""
        kept = {name: value for name, value in vars(self).items() if name not in ("_worlds", "interface")}
        return kept | {"registered": registered(self._worlds[0].env)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        register_again(kept.pop("registered"))
        vars(self).update(kept)


def _usual(world: World) -> tuple[np.ndarray, np.ndarray]:
    """Mean and spread of observations under random actions, always the same ones."""
    actions = world.env.action_space
    actions.seed(0)
    seen: list[np.ndarray] = []
    while (seed := len(seen)) < _LOOKS:
        episode = Episode(seed, [world.reset(seed)])
        while not episode.over and len(seen) + len(episode.actions) < _LOOKS:
            episode.take_step(world, actions.sample())
        seen += episode.observations
    return np.mean(seen, axis=0), np.std(seen, axis=0)


def make(name: str, options: GymOptions) -> GymTask:
    """The task of an id."""
    return GymTask(name, **asdict(options))
