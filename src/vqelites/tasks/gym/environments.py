"""Environments: made from an id or a function, limited in time, and looked at."""

import contextlib
import difflib
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import error, spaces
from gymnasium.wrappers import TimeLimit
from PIL import Image

from vqelites.tasks.extras import MissingExtraError, missing

Env = gymnasium.Env[Any, Any]
FRAMES = "rgb_array"  # the render mode that gives arrays
LIMIT = 1000  # steps, where nobody has set a limit
# Packages whose environments Gymnasium knows once they are imported; of others write `package:ID`, as everywhere.
_HOMES = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid"}


def make_env(source: str | Callable[..., Env], render_mode: str | None, steps: int | None) -> Env:
    """An environment of an id, or of a function that makes one, with a limit of steps.

    The function is called without arguments, or with `render_mode` if frames are needed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Box2D's, which are nobody's here
        if isinstance(source, str):
            env = _by_id(source, render_mode, steps)
        elif not callable(source):
            raise TypeError(f"An environment is given by its id or by a function that makes it, not as {source!r}.")
        else:
            env = source(render_mode=render_mode) if render_mode else source()
            if not isinstance(env, gymnasium.Env):
                raise TypeError(f"A function that makes an environment must return a gymnasium.Env, not {env!r}.")
    if render_mode and env.render_mode != render_mode:
        raise ValueError(f"{source} draws in mode {env.render_mode!r}, but frames need {render_mode!r}.")
    limit = None if env.spec is None else env.spec.max_episode_steps
    return env if limit is not None and steps in (None, limit) else TimeLimit(env, steps or LIMIT)


def _by_id(name: str, render_mode: str | None, steps: int | None) -> Env:
    """The environment of that id, with its own limit of steps unless one is given, or an error that says what to do."""
    try:
        for prefix, package in _HOMES.items():
            if name.startswith(prefix):
                importlib.import_module(package)
        return gymnasium.make(name, max_episode_steps=steps, render_mode=render_mode, disable_env_checker=True)
    except (error.UnregisteredEnv, error.DeprecatedEnv) as problem:
        near = difflib.get_close_matches(name, gymnasium.registry, n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise ValueError(
            f"Gymnasium has no environment {name!r} ({str(problem).rstrip('.')}).{hint} "
            "One of a package of its own is written package:ID."
        ) from problem
    except (error.DependencyNotInstalled, ImportError) as problem:
        said, package = f"{name} cannot be made: {str(problem).rstrip('.')}.", name.rpartition(":")[0]
        if package and isinstance(problem, ModuleNotFoundError):
            raise ValueError(f"{said} Install {package}, or correct its name.") from problem
        raise MissingExtraError(f"{said} {missing('gym')}") from problem


class World:
    """An environment in which every episode begins as if it were the first, seen through `Eyes`.

    Box2D's worlds keep hidden state of the episode before: a walk of BipedalWalker differs in the fourth digit. They
    are created anew each time. `seen` is False for steps without drawing: worlds made for drawing strew sparks that
    fade only when drawn, so that steps take longer and longer.
    """

    def __init__(self, make: Callable[[], Env], seen: bool = True):
        self._make, self._seen, self._used = make, seen, False
        self.env = self._made()
        self.eyes = Eyes(self.env.observation_space)

    def _made(self) -> Env:
        env = self._make()
        if not self._seen:
            _world(env).render_mode = None
        return env

    def reset(self, seed: int) -> np.ndarray:
        """Begin an episode; the first observation."""
        if self._used and type(getattr(_world(self.env), "world", None)).__module__.startswith("Box2D"):
            self.env.close()
            self.env = self._made()
        self._used = True
        return self.eyes(self.env.reset(seed=seed)[0])

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Observation, reward, whether the episode is over by itself or by its limit, and what else there is to say."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self.eyes(observation), float(reward), terminated, truncated, info

    def frame(self) -> np.ndarray:
        """What it looks like now, (h, w, 3) in 8 bits."""
        world = _world(self.env)
        mode, world.render_mode = world.render_mode, FRAMES
        try:
            picture = self.env.render()
        finally:
            world.render_mode = mode
        if not isinstance(picture, np.ndarray) or picture.ndim != 3:
            raise ValueError(f"{self.env} does not draw itself as an array (h, w, 3), so there are no frames.")
        return picture

    def close(self) -> None:
        """End it."""
        self.env.close()


def _world(env: Env) -> Any:
    """Without its wrappers."""
    return env.unwrapped


def shrunk(picture: np.ndarray, pixels: int) -> np.ndarray:
    """A frame as a square of so many pixels, each the mean of what it covers."""
    return np.asarray(Image.fromarray(picture).resize((pixels, pixels), Image.Resampling.BOX))


class Eyes:
    """What a policy is given of an observation, and behavior is made of: arrays as they are, all else as a vector.

    Of a dict or tuple all numbers stand in one vector, a choice of n as n numbers of which one is 1. Text is left out.
    """

    def __init__(self, space: spaces.Space[Any]):
        self.space = _numeric(space)
        if isinstance(self.space, spaces.Dict) and not self.space.spaces:
            raise ValueError(f"Observations of {space} are no numbers: wrap the environment, or choose another.")
        flat = self.space if isinstance(self.space, spaces.Box) else spaces.flatten_space(self.space)
        if not isinstance(flat, spaces.Box):
            raise ValueError(f"Observations of {space} have no fixed size: wrap the environment, or choose another.")
        self.shape, self.image = flat.shape, flat.dtype == np.uint8

    def __call__(self, observation: Any) -> np.ndarray:
        if isinstance(self.space, spaces.Box):
            return np.array(observation)  # a copy: some environments change it later
        return np.asarray(spaces.flatten(self.space, _part(self.space, observation)))


def _numeric(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """Without the parts of a dict, and of dicts within it, that cannot be made numbers."""
    if not isinstance(space, spaces.Dict):
        return space
    kept = {}
    for name, part in ((name, _numeric(part)) for name, part in space.spaces.items()):
        empty = isinstance(part, spaces.Dict) and not part.spaces
        with contextlib.suppress(NotImplementedError):
            if not empty and not isinstance(part, spaces.Text) and isinstance(spaces.flatten_space(part), spaces.Box):
                kept[name] = part
    return spaces.Dict(kept)


def _part(space: spaces.Space[Any], observation: Any) -> Any:
    """Of an observation what is in this space."""
    if not isinstance(space, spaces.Dict):
        return observation
    return {name: _part(part, observation[name]) for name, part in space.spaces.items()}
