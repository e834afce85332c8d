"""What every descriptor can do: say where solutions belong and, if it is learned, learn that from data."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key


class LearnInfo(eqx.Module):
    """How one training went. Loss terms are means over the last epoch; NaN when nothing was trained."""

    loss: Float[Array, ""]
    reconstruction: Float[Array, ""]
    codebook: Float[Array, ""]
    commitment: Float[Array, ""]
    codes_used: Int[Array, ""]
    perplexity: Float[Array, ""]
    reseeded: Int[Array, ""]
    samples: Int[Array, ""]
    epochs: Int[Array, ""]
    rolled_back: Bool[Array, ""]

    @classmethod
    def untrained(cls) -> "LearnInfo":
        """What is reported when no training took place."""
        nan, zero = jnp.array(jnp.nan, jnp.float32), jnp.array(0, jnp.int32)
        return cls(nan, nan, nan, nan, zero, nan, zero, zero, zero, jnp.array(False))


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
