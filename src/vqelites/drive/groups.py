"""Runs of one group: one state for all of them, and each by itself. Compiled, since states have many leaves."""

from typing import Any

import jax
import jax.numpy as jnp

from vqelites.drive.position import Position
from vqelites.loop import State


def positions(states: State) -> list[Position]:
    """Where each of the runs stands."""
    return [Position.of(state) for state in _parted(states)]


@jax.jit
def stacked(runs: list[Any]) -> Any:
    """What all runs have, with a leading axis of runs."""
    return jax.tree.map(lambda *x: jnp.stack(x), *runs)


@jax.jit
def _parted(states: State) -> list[State]:
    return [jax.tree.map(lambda x, i=i: x[i], states) for i in range(states.seed.shape[0])]
