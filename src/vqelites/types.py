"""The records that flow between the parts: where solutions live, what they did, and the elites kept of them."""

from collections.abc import Sequence
from typing import Any, Protocol, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Bool, Float, Int, Key, Real

from vqelites.branches import only_if

Tree = TypeVar("Tree")

# One limit for all parameters, or one each.
Limits = float | Sequence[float] | ArrayLike


def in_floats(behavior: Real[Array, "*n"]) -> Float[Array, "*n"]:
    """What 8-bit levels stand for; floats are left alone.

    Compilers divide by multiplying with the inverse, which rounds half of all levels differently. x/255 is also
    (x + x/255) / 256: there it is a small part that they round, and all levels come out the same.
    """
    if behavior.dtype != jnp.uint8:
        return behavior
    level = behavior.astype(jnp.float32)
    return (level + level / 255) / 256


class Evaluation(eqx.Module):
    """Results of evaluating n solutions. `truth` has width 0 where no hand-coded descriptor is known."""

    fitness: Float[Array, "n"]
    behavior: Real[Array, "n *shape"]  # floats, or 8-bit levels
    truth: Float[Array, "n t"]

    @property
    def finite(self) -> Bool[Array, "n"]:
        """Which rows hold only finite numbers; the others never enter an archive or a training set."""
        rows = jax.tree.map(lambda x: jnp.isfinite(x).reshape(x.shape[0], -1).all(axis=1), self)
        return rows.fitness & rows.behavior & rows.truth


class Trials(eqx.Module):
    """n solutions to evaluate. Ids are unique within a run; all randomness of an evaluation is derived from its id."""

    id: Int[Array, "n"]
    solution: Float[Array, "n s"]


class Elites(eqx.Module):
    """n solutions with their results. Rows where `valid` is False are empty, whatever values they hold."""

    id: Int[Array, "n"]
    solution: Float[Array, "n s"]
    fitness: Float[Array, "n"]
    behavior: Real[Array, "n *shape"]  # floats, or 8-bit levels
    descriptor: Float[Array, "n d"]
    truth: Float[Array, "n t"]
    valid: Bool[Array, "n"]

    @classmethod
    def empty(cls, capacity: int, sizes: "Sizes") -> Self:
        """`capacity` absent rows."""

        def zeros(*shape: int, dtype: Any = jnp.float32) -> Float[Array, "..."]:
            return jnp.zeros((capacity, *shape), dtype)

        return cls(
            id=jnp.zeros(capacity, jnp.int32),
            solution=zeros(sizes.solution),
            fitness=zeros(),
            behavior=zeros(*sizes.behavior, dtype=sizes.behavior_dtype),
            descriptor=zeros(sizes.descriptor),
            truth=zeros(sizes.truth),
            valid=jnp.zeros(capacity, bool),
        )

    @property
    def capacity(self) -> int:
        """Number of rows, present or absent."""
        return self.fitness.shape[0]

    @property
    def size(self) -> Int[Array, ""]:
        """Number of rows present."""
        return self.valid.sum()

    def take(self, rows: Int[Array, "m"]) -> "Elites":
        """The given rows, in that order."""
        return jax.tree.map(lambda x: x[rows], self)

    def put(self, rows: Int[Array, "n"], newcomers: "Elites") -> "Elites":
        """Write newcomer i over row `rows[i]`; an out-of-range row drops it."""
        return jax.tree.map(lambda x, new: x.at[rows].set(new, mode="drop"), self, newcomers)

    def described(self, descriptor: Float[Array, "n d"]) -> "Elites":
        """The same elites with new descriptors."""
        return eqx.tree_at(lambda e: e.descriptor, self, descriptor)


def padded(records: Tree, rows: int) -> Tree:
    """So many rows: those of all arrays, then zeros, which mark them as absent."""
    return jax.tree.map(lambda x: jnp.pad(x, [(0, rows - len(x)), *[(0, 0)] * (x.ndim - 1)]), records)


class Sizes(eqx.Module):
    """The shapes that make up one row of `Elites`."""

    solution: int = eqx.field(static=True)
    behavior: tuple[int, ...] = eqx.field(static=True)
    descriptor: int = eqx.field(static=True)
    truth: int = eqx.field(static=True, default=0)
    eight_bit: bool = eqx.field(static=True, default=False)  # whether behavior is held in 8-bit levels (`levels.py`)

    @property
    def behavior_dtype(self) -> Any:
        """Of behavior that is held."""
        return jnp.uint8 if self.eight_bit else jnp.float32

    def held(self, behavior: Real[Array, "n *shape"]) -> Real[Array, "n *shape"]:
        """Behavior as it is held."""
        if self.eight_bit and behavior.dtype != jnp.uint8:
            raise TypeError(f"Behavior is held in 8 bits, but came as {behavior.dtype}.")
        return behavior if self.eight_bit else in_floats(behavior)


class SolutionSpace(eqx.Module):
    """Vectors of `dim` parameters, random ones uniform between `low` and `high`; `bounded` keeps children there."""

    dim: int = eqx.field(static=True)
    low: Float[Array, "s"]
    high: Float[Array, "s"]
    bounded: bool = eqx.field(static=True)

    def __init__(self, dim: int, low: Limits = -1.0, high: Limits = 1.0, *, bounded: bool = False):
        if dim < 1:
            raise ValueError(f"A solution needs at least one parameter, but dim is {dim}.")
        self.dim = int(dim)
        least, most = (np.broadcast_to(np.asarray(limit, np.float32), (dim,)).copy() for limit in (low, high))
        self.low, self.high = jax.device_put((least, most))
        self.bounded = bool(bounded)
        if not (np.isfinite(least) & np.isfinite(most) & (least < most)).all():
            raise ValueError(f"Every parameter needs finite limits with low < high, but got low={low}, high={high}.")

    def random(self, key: Key[Array, ""]) -> Float[Array, "s"]:
        """A random solution."""
        return jax.random.uniform(key, (self.dim,), minval=self.low, maxval=self.high)

    def renewed(
        self, solutions: Float[Array, "n s"], rows: Bool[Array, "n"], keys: Key[Array, "n"]
    ) -> Float[Array, "n s"]:
        """The solutions with random ones in some rows. Nothing is drawn if there are none."""

        def drawn(solutions: Float[Array, "n s"], keys: Key[Array, "n"]) -> Float[Array, "n s"]:
            return jnp.where(rows[:, None], jax.vmap(self.random)(keys), solutions)

        return only_if(rows.any(), drawn, solutions, keys)

    def clip(self, solution: Float[Array, "s"]) -> Float[Array, "s"]:
        """The solution inside the bounds, if there are any."""
        return jnp.clip(solution, self.low, self.high) if self.bounded else solution


class Problem(Protocol):
    """What an algorithm needs to know of a task."""

    @property
    def space(self) -> SolutionSpace:
        """Where solutions live."""

    @property
    def behavior_shape(self) -> tuple[int, ...]:
        """Shape of one solution's raw behavior."""

    @property
    def eight_bit(self) -> bool:
        """Whether behavior comes as 8-bit levels that stand for 0 to 1, and is held so."""

    @property
    def truth_low(self) -> tuple[float, ...]:
        """Lower limits of the truth, if any is known."""

    @property
    def truth_high(self) -> tuple[float, ...]:
        """Upper limits of the truth."""


class Bins(eqx.Module):
    """Bins of the true outcome space, by their centres; metrics count only the reachable ones."""

    centres: Float[Array, "b t"] = eqx.field(converter=jnp.asarray)
    reachable: Bool[Array, "b"] = eqx.field(converter=jnp.asarray)
