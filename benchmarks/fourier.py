"""AutoQD's descriptor: policies told apart by the states they visit, without any training.

Every state is given random Fourier features, whose mean over an episode says how often the policy is where; two
policies with the same mean visit the same states. Principal components of that, renewed now and then, are the
descriptor. Here it stands in the loop of this package, in the place of a VQ-VAE: same cells, variation and evaluations.
AutoQD itself weights the components by fitness and searches with CMA-MAE.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from vqelites.descriptors.base import AbstractDescriptor, LearnInfo, MapInfo, Observed
from vqelites.tasks.base import AbstractTask
from vqelites.tasks.brax import BraxTask
from vqelites.tasks.brax.task import Instant
from vqelites.tessellation import cvt
from vqelites.types import Bins, Evaluation, SolutionSpace

FEATURES = 256
LOOKS = 128  # random policies that say how far states are apart


class Visited(AbstractTask):
    """A robot whose behavior is the mean of random Fourier features of the states it visits."""

    space: SolutionSpace
    cells: Float[Array, "k t"]
    bins: Bins
    robot: BraxTask
    weights: Float[Array, "o f"]
    phases: Float[Array, " f"]
    behavior_shape: tuple[int, ...] = eqx.field(static=True)
    truth_low: tuple[float, ...] = eqx.field(static=True)
    truth_high: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, robot: BraxTask):
        self.robot, self.space, self.cells, self.bins = robot, robot.space, robot.cells, robot.bins
        self.truth_low, self.truth_high = robot.truth_low, robot.truth_high
        self.behavior_shape = (FEATURES,)
        look, draw, turn = jax.random.split(jax.random.key(0), 3)
        keys = jax.random.split(look, LOOKS)
        states = _states(robot, keys, jax.vmap(robot.space.random)(keys)).reshape(-1, robot.env.observation_size)
        spread = jnp.maximum(states.std(axis=0), 1e-6)
        # A kernel as wide as states usually are apart: the square of the distance of two is twice their numbers.
        width = jnp.sqrt(2.0 * len(spread))
        self.weights = jax.random.normal(draw, (len(spread), FEATURES)) / spread[:, None] / width
        self.phases = jax.random.uniform(turn, (FEATURES,), maxval=2 * jnp.pi)

    def evaluate(self, keys: Key[Array, " n"], solutions: Float[Array, "n s"]) -> Evaluation:
        found, moments = jax.vmap(self.robot.both)(keys, solutions)
        return Evaluation(found.fitness, self.visited(moments), found.truth)

    def visited(self, moments: Instant) -> Float[Array, "n f"]:
        """Mean features of the states of n episodes, those after a fall left out."""
        features = jnp.sqrt(2 / FEATURES) * jnp.cos(moments.observation @ self.weights + self.phases[None, None])
        return (features * moments.alive[..., None]).sum(axis=1) / moments.alive.sum(axis=1)[:, None]

    def draw(self, axes: Any, solutions: Float[Array, "n s"]) -> None:
        self.robot.draw(axes, solutions)


@eqx.filter_jit
def _states(robot: BraxTask, keys: Key[Array, " n"], solutions: Float[Array, "n s"]) -> Float[Array, "n t o"]:
    return jax.vmap(robot.episode)(keys, solutions).observation


class Axes(eqx.Module):
    """Principal components: where they start, and the directions, each as long as three spreads are one."""

    mean: Float[Array, " f"]
    directions: Float[Array, "f d"]


class Principal(AbstractDescriptor):
    """The first principal components of behavior, between -1 and 1, on cells spread evenly."""

    dim: int = eqx.field(static=True)
    codes: int = eqx.field(static=True)
    centres: Float[Array, "k d"]

    def __init__(self, dim: int, codes: int):
        self.dim, self.codes = dim, codes
        self.centres = cvt(jax.random.key(0), codes, (-1.0,) * dim, (1.0,) * dim)

    def init(self, key: Key[Array, ""]) -> Axes:
        return Axes(jnp.zeros(FEATURES), jnp.eye(FEATURES, self.dim))

    def describe(
        self, state: Axes, behavior: Float[Array, "n f"], truth: Float[Array, "n t"]
    ) -> Float[Array, "n {self.dim}"]:
        return jnp.clip((behavior - state.mean[None]) @ state.directions, -1, 1)

    def cells(self, state: Axes) -> Float[Array, "k {self.dim}"]:
        return self.centres

    def learn(
        self,
        state: Axes,
        key: Key[Array, ""],
        samples: Float[Array, "n f"],
        mask: Bool[Array, " n"],
        progress: Float[Array, ""],
        epochs: Int[Array, ""],
    ) -> tuple[Axes, LearnInfo]:
        count = jnp.maximum(mask.sum(), 1)
        mean = jnp.where(mask[:, None], samples, 0).sum(axis=0) / count
        centred = jnp.where(mask[:, None], samples - mean[None], 0)
        values, vectors = jnp.linalg.eigh(centred.T @ centred / count)
        largest, directions = values[-self.dim :], vectors[:, -self.dim :]
        directions *= jnp.sign(directions.sum(axis=0))[None]  # or they might turn round from one time to the next
        scale = 3 * jnp.sqrt(jnp.maximum(largest, 1e-12))
        return Axes(mean, directions / scale[None]), LearnInfo.untrained()

    def settle(
        self, state: Axes, key: Key[Array, ""], stored: Sequence[Observed], mend: bool = True
    ) -> tuple[Axes, list[Float[Array, "n {self.dim}"]], MapInfo]:
        return state, [self.describe(state, rows.behavior, rows.behavior[:, :0]) for rows in stored], MapInfo.unknown()
