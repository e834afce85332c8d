"""What every descriptor can do: say where solutions belong and, if it is learned, learn that from data."""

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from vqelites.types import Elites


class Observed(NamedTuple):
    """Stored behaviors."""

    behavior: Float[Array, "n *shape"]
    mask: Bool[Array, "n"]  # which of them count
    fitness: Float[Array, "n"]  # NaN where it is not known

    @classmethod
    def of(cls, elites: Elites, mask: Bool[Array, "n"]) -> "Observed":
        """What is in these rows; not all that counts need be a solution."""
        return cls(elites.behavior, mask, jnp.where(elites.valid, elites.fitness, jnp.nan))


class LearnInfo(eqx.Module):
    """How one training went. Loss terms are means over the last epoch; NaN when nothing was trained."""

    loss: Float[Array, ""]
    reconstruction: Float[Array, ""]
    codebook: Float[Array, ""]
    commitment: Float[Array, ""]
    stretch: Float[Array, ""]
    unexplained: Float[Array, ""]  # by the first training, of its samples' variance; NaN for later ones or other losses
    samples: Int[Array, ""]
    epochs: Int[Array, ""]
    rolled_back: Bool[Array, ""]

    @classmethod
    def untrained(cls) -> "LearnInfo":
        """What is reported when no training took place."""
        nan, zero = jnp.array(jnp.nan, jnp.float32), jnp.array(0, jnp.int32)
        return cls(nan, nan, nan, nan, nan, nan, zero, zero, jnp.array(False))


class MapInfo(eqx.Module):
    """How well a learned map tells the stored behaviors apart; NaN where it has no codes, or was not looked at."""

    behaviors: Int[Array, ""]  # stored behaviors that differ from each other
    codes_used: Float[Array, ""]  # codes with at least one of them
    perplexity: Float[Array, ""]  # how many equally used codes would be as diverse
    saturated: Float[Array, ""]  # share of descriptors at the limits of a bounded space
    moved: Int[Array, ""]  # codes moved to where cells were too large
    restarted: Bool[Array, ""]  # the map had collapsed and was begun anew

    @classmethod
    def unknown(cls) -> "MapInfo":
        """What is reported when no map was looked at."""
        nan, zero = jnp.array(jnp.nan, jnp.float32), jnp.array(0, jnp.int32)
        return cls(zero, nan, nan, nan, zero, jnp.array(False))


class Lesson(eqx.Module):
    """The result of a training; the run may have advanced since it started."""

    descriptor: Any
    info: LearnInfo
    window: Int[Array, ""]  # rows that were in the dataset's window


class Settled(eqx.Module):
    """A trained map, settled where all stored behaviors are now, and their descriptors."""

    descriptor: Any
    stored: list[Float[Array, "?m d"]]  # group by group
    seen: Float[Array, "n d"]
    info: MapInfo


class AbstractDescriptor(eqx.Module):
    """Maps what a solution did to a point of the descriptor space. `State` is any pytree of arrays."""

    dim: eqx.AbstractVar[int]

    @abc.abstractmethod
    def init(self, key: Key[Array, ""]) -> Any:
        """A fresh state."""

    @abc.abstractmethod
    def describe(
        self, state: Any, behavior: Float[Array, "n *shape"], truth: Float[Array, "n t"]
    ) -> Float[Array, "n {self.dim}"]:
        """Descriptors of n solutions; each depends on its own row alone."""

    @abc.abstractmethod
    def cells(self, state: Any) -> Float[Array, "k {self.dim}"] | None:
        """The cells this descriptor has learned (a codebook), or None if it has none."""

    @abc.abstractmethod
    def learn(
        self,
        state: Any,
        key: Key[Array, ""],
        samples: Float[Array, "n *shape"],
        mask: Bool[Array, "n"],
        progress: Float[Array, ""],
        epochs: Int[Array, ""],
    ) -> tuple[Any, LearnInfo]:
        """Train for `epochs` epochs on the samples where `mask` is True.

        `progress` in [0, 1] is how much of the run is over, for schedules.
        """

    @abc.abstractmethod
    def settle(
        self, state: Any, key: Key[Array, ""], stored: Sequence[Observed], mend: bool = True
    ) -> tuple[Any, list[Float[Array, "n {self.dim}"]], MapInfo]:
        """After a training: fit the cells to all stored behaviors, and describe these anew, group by group.

        `mend` begins a map anew that has collapsed. Without it, which is less to compile, `restarted` says only that
        this has to be done: whoever calls settles again, with `mend`.
        """
