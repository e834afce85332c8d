"""Environments: made from an id or a function, limited in time, and looked at."""

import functools
import importlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import error, spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import TimeLimit
from PIL import Image

from vqelites.tasks.extras import MissingExtraError, missing
from vqelites.words import did_you_mean

Env = gymnasium.Env[Any, Any]
Space = spaces.Space[Any]
FRAMES = "rgb_array"  # the render mode that gives arrays
LIMIT = 1000  # steps, where nobody has set a limit
# Packages whose environments Gymnasium knows once they are imported; of others write `package:ID`, as everywhere.
_HOMES = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid"}
_blind: list[str] = []  # what MuJoCo said where it found no display: asked again, it would abort the process
_NUMBERS = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.OneOf)


def make_env(source: str | Callable[..., Env], render_mode: str | None, steps: int | None) -> Env:
    """An environment of an id, or of a function that makes one, with a limit of steps.

    The function is called without arguments, or with `render_mode` if frames are needed. A limit that it has put around
    the environment stays.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Box2D's, which are nobody's here
        if isinstance(source, str):
            env = _by_id(source, render_mode, steps)
        elif not callable(source):
            raise TypeError(f"An environment is given by its id or by a function that makes it, not as {source!r}.")
        else:
            env = _by_function(source, render_mode)
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
    except (error.DependencyNotInstalled, ModuleNotFoundError) as problem:
        said, package = f"{name} cannot be made: {str(problem).rstrip('.')}.", name.rpartition(":")[0]
        if package and isinstance(problem, ModuleNotFoundError):
            raise ValueError(f"{said} Install {package}, or correct its name.") from problem
        raise MissingExtraError(f"{said} {missing('gym')}") from problem
    except (error.Error, ImportError) as problem:  # not known, not an id at all, or moved elsewhere
        near = did_you_mean(name, set(gymnasium.registry) - {name}, most=3)
        raise ValueError(
            f"Gymnasium cannot make an environment {name!r} ({str(problem).rstrip('.')}).{near} "
            "One of a package of its own is written package:ID."
        ) from problem


def registered(env: Env) -> list[EnvSpec]:
    """What Gymnasium knows of environments of this id: all it takes to make them in a process that has not heard of it.

    Those that a script or a task file registers are known to the process alone that has executed it.
    """
    known = None if env.spec is None else gymnasium.registry.get(env.spec.id)
    return [] if known is None else [known]


def register_again(known: list[EnvSpec]) -> None:
    """Make ids known in this process."""
    for spec in known:
        gymnasium.registry.setdefault(spec.id, spec)


def _by_function(make: Callable[..., Env], render_mode: str | None) -> Env:
    """The environment that a function makes."""
    options = {"render_mode": render_mode} if render_mode else {}
    try:
        inspect.signature(make).bind(**options)
    except TypeError as problem:
        raise ValueError(
            f"{make!r} makes an environment when it is called without arguments, or with render_mode={FRAMES!r} to "
            f"draw it: write it as `def make(render_mode=None)`. (Python says: {problem}.)"
        ) from problem
    env = make(**options)
    if not isinstance(env, gymnasium.Env):
        raise TypeError(f"A function that makes an environment must return a gymnasium.Env, not {env!r}.")
    return env


class World:
    """An environment in which every episode begins as if it were the first, seen through `Eyes`.

    Box2D's worlds keep hidden state of the episode before: a walk of BipedalWalker differs in the fourth digit. They
    are created anew each time. Made for drawing but `rarely_drawn`, they do not draw by themselves: LunarLander strews
    sparks that fade only when drawn, so that steps would take longer and longer.
    """

    def __init__(self, make: Callable[[], Env], rarely_drawn: bool = False):
        self._make, self._rarely_drawn, self._used = make, rarely_drawn, False
        self.env = self._made()
        self.eyes = Eyes(self.env.observation_space)

    def _made(self) -> Env:
        env = self._make()
        if self._rarely_drawn and _of_box2d(env):
            _world(env).render_mode = None
        return env

    def reset(self, seed: int) -> np.ndarray:
        """Begin an episode; the first observation."""
        if self._used and _of_box2d(self.env):
            self.env.close()
            self.env = self._made()
        self._used = True
        begun = self.env.reset(seed=seed)
        if not isinstance(begun, tuple) or len(begun) != 2:
            raise TypeError(f"reset of {self.env} must return (observation, info), but returned {begun!r}.")
        return self.eyes(begun[0])

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Observation, reward, whether the episode is over by itself or by its limit, and what else there is to say."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self.eyes(observation), float(reward), terminated, truncated, info

    def frame(self) -> np.ndarray:
        """What it looks like now, (h, w, 3) in 8 bits."""
        world = _world(self.env)
        if _blind and hasattr(world, "mujoco_renderer"):
            raise ValueError(_blind[0])
        mode, world.render_mode = world.render_mode, FRAMES
        try:
            picture = self.env.render()
        except Exception as problem:
            said = f"{self.env} cannot draw itself: {str(problem).rstrip('.')}."
            if type(problem).__module__ == "mujoco":
                said += " Where there is no display, set MUJOCO_GL=egl and start again."
                _blind.append(said)
            raise ValueError(said) from problem
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


def _of_box2d(env: Env) -> bool:
    return type(getattr(_world(env), "world", None)).__module__.startswith("Box2D")


def shrunk(picture: np.ndarray, pixels: int) -> np.ndarray:
    """A frame as a square of so many pixels, each the mean of what it covers."""
    return np.asarray(Image.fromarray(picture).resize((pixels, pixels), Image.Resampling.BOX))


class Eyes:
    """Turns observations into what policy and behavior get: arrays unchanged, a single number and all else as a vector.

    Of a dict or tuple all numbers stand in one vector, a choice of n as n numbers of which one is 1. Text, and what has
    no fixed size, is left out.
    """

    def __init__(self, space: Space):
        self._parts = list(_numeric(space))
        if not self._parts:
            raise ValueError(
                f"Observations of {space} are no numbers, or vary in how many: wrap the environment, or choose another."
            )
        self._whole = isinstance(space, spaces.Box)
        width = sum(spaces.flatdim(part) for _, part in self._parts)
        self.shape = space.shape if isinstance(space, spaces.Box) and space.shape else (width,)
        self.image = all(part.dtype == np.uint8 for _, part in self._parts)

    def __call__(self, observation: Any) -> np.ndarray:
        if self._whole:
            seen = np.array(observation, ndmin=1)  # a copy: some environments change it later
        else:
            seen = np.concatenate([spaces.flatten(part, _at(observation, keys)) for keys, part in self._parts])
        if seen.shape != self.shape:
            raise ValueError(f"An observation has shape {seen.shape}, but its observation_space says {self.shape}.")
        return seen


def _numeric(space: Space, keys: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Space]]:
    """The parts that are numbers, of dicts and tuples within each other too, each after the keys that lead to it."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        inside = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        for key, part in inside:
            yield from _numeric(part, (*keys, key))
    elif isinstance(space, _NUMBERS) and space.is_np_flattenable:
        yield keys, space


def _at(observation: Any, keys: tuple[Any, ...]) -> Any:
    """The part of an observation to which the keys lead."""
    return functools.reduce(lambda part, key: part[key], keys, observation)
