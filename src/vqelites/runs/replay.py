"""Trying solutions again."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vqelites.tasks.base import AbstractTask
from vqelites.types import Evaluation


def evaluate_again(task: AbstractTask, solutions: np.ndarray, *, batch: int, key: int = 0) -> Evaluation:
    """What these solutions do, as NumPy arrays. They are tried in batches of one size, the last filled with copies.

    Compiled code may round differently for another batch size, so use the one of the run.
    """
    count = len(solutions)
    rows = np.arange(-(-max(count, 1) // batch) * batch) % max(count, 1)
    parts = [
        jax.device_get(_evaluate(task, jax.random.key(key), jnp.asarray(solutions[rows[first : first + batch]])))
        for first in range(0, len(rows) if count else 0, batch)
    ]
    if not parts:
        raise ValueError("There is no solution to try.")
    return jax.tree.map(lambda *x: np.concatenate(x)[:count], *parts)


@eqx.filter_jit
def _evaluate(task: AbstractTask, key: jax.Array, solutions: jax.Array) -> Evaluation:
    return task.evaluate(key, solutions)
