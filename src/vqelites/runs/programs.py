"""The compiled programs of a configuration, made once for the same names and numbers."""

import functools

import jax
import jax.numpy as jnp

from vqelites.drive import Compiled
from vqelites.experiments.build import build
from vqelites.experiments.config import Settings
from vqelites.metrics import measure
from vqelites.runs.files import RunError
from vqelites.runs.run import make_task
from vqelites.tasks.base import AbstractTask


class Programs:
    """An algorithm on a task, ready to run, and what its state looks like."""

    def __init__(self, task: AbstractTask, settings: Settings):
        self.task, self.qd = task, build(task, settings)
        self.runs = Compiled(self.qd, task, functools.partial(measure, task.bins))
        self.like = jax.eval_shape(self.qd.init, jax.ShapeDtypeStruct((), jnp.uint32))
        self.bytes = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(self.like))


@functools.lru_cache(maxsize=2)
def programs(name: str, settings: Settings) -> Programs:
    """The same object for the same names and numbers: whoever runs them twice compiles once."""
    task = make_task(name)
    _check_task(name, task)
    return Programs(task, settings)


def _check_task(name: str, task: AbstractTask) -> None:
    """Raise if what the task returns does not have the shapes it declares."""
    solutions = jax.ShapeDtypeStruct((2, task.space.dim), jnp.float32)
    result = jax.eval_shape(task.evaluate, jax.random.key(0), solutions)
    wanted = {"fitness": (2,), "behavior": (2, *task.behavior_shape), "truth": (2, len(task.truth_low))}
    for part, shape in wanted.items():
        if getattr(result, part).shape != shape:
            raise RunError(
                f"The task {name!r} returns {part} of shape {getattr(result, part).shape} for 2 solutions, but by its "
                f"sizes it should be {shape}."
            )
