"""Evaluating solutions again, with the randomness they had in their run."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vqelites.evaluation import AbstractEvaluator, arrays, evaluation_seeds
from vqelites.keys import evaluation_keys
from vqelites.levels import as_floats
from vqelites.tasks.base import AbstractTask
from vqelites.types import Evaluation


def compiled_again(
    task: AbstractTask, seed: int, ids: np.ndarray, solutions: np.ndarray, *, batch: int, repeat: int = 0
) -> Evaluation:
    """What these solutions do, as NumPy arrays. They are evaluated in batches of one size, the last filled with copies.

    Compiled code may round differently for another batch size, so use the one of the run. Repeats 1, 2, ... have a
    randomness of their own.
    """
    count = len(solutions)
    rows = np.arange(-(-count // batch) * batch) % count
    parts = [
        jax.device_get(
            _evaluate(task, jnp.uint32(seed), jnp.asarray(ids[part]), jnp.asarray(solutions[part]), jnp.uint32(repeat))
        )
        for part in np.split(rows, len(rows) // batch)
    ]
    whole = jax.tree.map(lambda *x: np.concatenate(x)[:count], *parts)
    return eqx.tree_at(lambda e: e.behavior, whole, as_floats(whole.behavior))


@eqx.filter_jit
def _evaluate(
    task: AbstractTask, seed: jax.Array, ids: jax.Array, solutions: jax.Array, repeat: jax.Array
) -> Evaluation:
    keys = evaluation_keys(seed, ids)
    others = jax.vmap(lambda key: jax.random.fold_in(key, repeat))(keys)
    return task.evaluate(jnp.where(repeat > 0, others, keys), solutions)


def simulated_again(
    evaluator: AbstractEvaluator,
    seed: int,
    ids: np.ndarray,
    solutions: np.ndarray,
    shapes: tuple[tuple[int, ...], int],
    repeat: int = 0,
) -> Evaluation:
    """What these solutions do in a simulator; failures are NaN. Repeats 1, 2, ... have a randomness of their own."""
    results = evaluator.evaluate(ids, solutions, evaluation_seeds(seed, ids, repeat))
    return Evaluation(*map(jnp.asarray, arrays(results, *shapes)))
