"""Walking robots of Brax: their feet, how far they can go, and their reward for speed."""

import warnings
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from brax import contact, envs
from jaxtyping import Array, Bool

from vqelites.words import did_you_mean


@dataclass(frozen=True)
class Robot:
    """What Brax does not say of its own robots."""

    feet: tuple[str | int, ...]  # links that touch the ground, by name or number
    forward: str  # the metric that pays for going forward
    directions: int  # 2 if it can turn, 1 if it moves in a plane


ROBOTS = {
    "ant": Robot((2, 4, 6, 8), "reward_forward", 2),  # the lower legs have no names
    "halfcheetah": Robot(("bfoot", "ffoot"), "reward_run", 1),
    "hopper": Robot(("foot",), "reward_forward", 1),
    "humanoid": Robot(("left_shin", "right_shin"), "reward_linvel", 2),
    "walker2d": Robot(("foot", "foot_left"), "reward_forward", 1),
}


def robot(name: str) -> Robot:
    """The robot of that name, or an error with the nearest ones."""
    if name not in ROBOTS:
        near = did_you_mean(name, ROBOTS)
        raise ValueError(f"There is no robot {name!r} of Brax here.{near} Known: {', '.join(ROBOTS)}.")
    return ROBOTS[name]


def environment(name: str, backend: str) -> Any:
    """Brax's environment, without its news about other simulators."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return envs.get_environment(name, backend=backend)


def touching(env: Any, feet: tuple[str | int, ...], state: Any) -> Bool[Array, "feet"]:
    """Which feet touch something now."""
    found = contact.get(env.sys, state.pipeline_state.x)
    links = jnp.array([foot if isinstance(foot, int) else env.sys.link_names.index(foot) for foot in feet])
    whose = (found.link_idx[0][None] == links[:, None]) | (found.link_idx[1][None] == links[:, None])
    return (whose & (found.dist <= 0)[None]).any(axis=1)
