"""What every archive can do: take in newcomers, be rebuilt when descriptors change, and show its elites."""

import abc
import enum
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Int8

from vqelites.archives.addition import AbstractAddition
from vqelites.types import Elites, Sizes


class InsertStatus(enum.IntEnum):
    """How one solution was judged, in the numbers of pyribs."""

    REJECTED = 0  # absent rows too
    IMPROVED = 1  # won the place of an elite
    NEW = 2  # won a place where no elite was in its way


class InsertOutcome(eqx.Module):
    """What became of each row of a batch. Those that stay are new or improved; absent ones are rejected, with gain 0.

    The gain is a difference of fitness, which does not always decide: with cooperation, drift or novelty a row may be
    improved with a gain of 0 or less, or rejected with a positive one.
    """

    status: Int8[Array, "n"]  # an `InsertStatus`
    gain: Float[Array, "n"]  # how much fitter than the elite in its way, or its fitness itself where there was none
    place: Int[Array, "n"]  # its row of `elites` after the batch; -1 if rejected, or displaced within the batch

    @classmethod
    def nothing(cls) -> "InsertOutcome":
        """No row was offered."""
        return cls(jnp.zeros(0, jnp.int8), jnp.zeros(0, jnp.float32), jnp.zeros(0, jnp.int32))

    @staticmethod
    def judge(won: Bool[Array, "*n"], new: Bool[Array, "*n"]) -> Int8[Array, "*n"]:
        """The status of rows, given which won a place and which had no elite in their way."""
        status = jnp.where(new, InsertStatus.NEW, InsertStatus.IMPROVED)
        return jnp.where(won, status, InsertStatus.REJECTED).astype(jnp.int8)


class InsertInfo(eqx.Module):
    """What one batch insert did, in numbers of solutions and row by row."""

    added: Int[Array, ""]  # entered a free place
    replaced: Int[Array, ""]  # took the place of an elite
    evicted: Int[Array, ""]  # elites removed only because the archive was full
    rows: InsertOutcome

    @classmethod
    def nothing(cls) -> "InsertInfo":
        """No solution was offered."""
        zero = jnp.array(0, jnp.int32)
        return cls(zero, zero, zero, InsertOutcome.nothing())


class AbstractArchive(eqx.Module):
    """Keeps elites by where they belong. `State` is any pytree of arrays."""

    @abc.abstractmethod
    def init(self, sizes: Sizes, cells: Float[Array, "k d"] | None) -> Any:
        """An empty archive; `cells` come from a descriptor that learns them, else None."""

    @abc.abstractmethod
    def elites(self, state: Any) -> Elites:
        """The elites now in the archive, one row per place."""

    @abc.abstractmethod
    def stored(self, state: Any) -> list[Elites]:
        """Every record kept, in groups, the elites first: what must be described anew before `rebuild`."""

    @abc.abstractmethod
    def filled(self, state: Any) -> Float[Array, ""]:
        """Share of the wanted number of elites that is reached."""

    @abc.abstractmethod
    def insert(self, state: Any, batch: Elites, rule: AbstractAddition) -> tuple[Any, InsertInfo]:
        """Offer the valid rows of the batch; the same as offering them one by one in index order.

        Whether its info judges rows by the archive before the batch or at their turn is the archive's to say.
        """

    @abc.abstractmethod
    def rebuild(
        self, state: Any, stored: Sequence[Elites], cells: Float[Array, "k d"] | None, extra: Elites | None
    ) -> tuple[Any, Int[Array, ""]]:
        """Place all records anew: `stored` (newly described), then `extra`; the fitter stays.

        Returns the archive and how many of its elites lost their place.
        """

    @abc.abstractmethod
    def control(self, state: Any) -> Any:
        """Once per iteration: control the archive's size."""
