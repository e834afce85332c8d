"""What every variation can do: make one child of two parents."""

import abc

import equinox as eqx
from jaxtyping import Array, Float, Key

from vqelites.types import SolutionSpace


class AbstractVariation(eqx.Module):
    """Makes children. Works on one child; the loop maps it over the batch, one key per child."""

    @abc.abstractmethod
    def child(
        self, key: Key[Array, ""], parent: Float[Array, "s"], mate: Float[Array, "s"], space: SolutionSpace
    ) -> Float[Array, "s"]:
        """A child of `parent`, with `mate` for the crossover; it may leave the bounds, the loop clips it."""
