"""What every archive can do: take in newcomers, be rebuilt when descriptors change, and show its elites."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from vqelites.archives.addition import AbstractAddition
from vqelites.types import Elites, Sizes


class InsertInfo(eqx.Module):
    """What one batch insert did, in numbers of solutions."""

    added: Int[Array, ""]  # entered a free place
    replaced: Int[Array, ""]  # took the place of an elite
    evicted: Int[Array, ""]  # elites removed only because the archive was full

    @classmethod
    def nothing(cls) -> "InsertInfo":
        """No solution moved."""
        zero = jnp.array(0, jnp.int32)
        return cls(zero, zero, zero)


class AbstractArchive(eqx.Module):
    """Keeps elites by where they belong. `State` is any pytree of arrays."""

    @abc.abstractmethod
    def init(self, sizes: Sizes, cells: Float[Array, "k d"] | None) -> Any:
        """An empty archive; `cells` come from a descriptor that learns them, else None."""

    @abc.abstractmethod
    def elites(self, state: Any) -> Elites:
        """The elites now in the archive, one row per place."""

    @abc.abstractmethod
    def stored(self, state: Any) -> Elites:
        """Every record kept, displaced ones included: what must be described anew before `rebuild`."""

    @abc.abstractmethod
    def filled(self, state: Any) -> Float[Array, ""]:
        """Share of the wanted number of elites that is reached."""

    @abc.abstractmethod
    def insert(self, state: Any, batch: Elites, rule: AbstractAddition) -> tuple[Any, InsertInfo]:
        """Offer the valid rows of the batch; the same as offering them one by one in index order."""

    @abc.abstractmethod
    def rebuild(
        self, state: Any, stored: Elites, cells: Float[Array, "k d"] | None, extra: Elites | None
    ) -> tuple[Any, Int[Array, ""]]:
        """Place all records anew: `stored` (newly described), then `extra`; the fitter stays.

        Returns the archive and how many of its elites lost their place.
        """

    @abc.abstractmethod
    def control(self, state: Any) -> Any:
        """Once per iteration: steer the archive's size."""
