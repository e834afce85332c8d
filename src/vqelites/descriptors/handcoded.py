"""Descriptors that are known beforehand."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
from jaxtyping import Array, Bool, Float, Int, Key

from vqelites.descriptors.base import AbstractDescriptor, LearnInfo, MapInfo, Observed
from vqelites.types import in_floats


class HandCoded(AbstractDescriptor):
    """The task's true descriptor or, with `function`, what a user computes from a batch of behaviors."""

    dim: int = eqx.field(static=True)
    function: Callable[[Float[Array, "n *shape"]], Float[Array, "n d"]] | None = eqx.field(static=True, default=None)

    def init(self, key: Key[Array, ""]) -> tuple[()]:
        """Nothing to remember."""
        return ()

    def describe(
        self, state: Any, behavior: Float[Array, "n *shape"], truth: Float[Array, "n t"]
    ) -> Float[Array, "n {self.dim}"]:
        """The truth, or the function's value."""
        descriptor = truth if self.function is None else self.function(in_floats(behavior))
        if descriptor.ndim != 2 or descriptor.shape[1] != self.dim:
            source = "the task's truth" if self.function is None else "the function's result"
            raise ValueError(
                f"HandCoded(dim={self.dim}) expects descriptors of shape (n, {self.dim}), but {source} has shape "
                f"{descriptor.shape}; set dim to its width, or give a function of the behavior."
            )
        return descriptor

    def cells(self, state: Any) -> None:
        """No cells are learned."""

    def learn(
        self,
        state: Any,
        key: Key[Array, ""],
        samples: Float[Array, "n *shape"],
        mask: Bool[Array, "n"],
        progress: Float[Array, ""],
        epochs: Int[Array, ""],
    ) -> tuple[Any, LearnInfo]:
        """Nothing to learn."""
        return state, LearnInfo.untrained()

    def settle(
        self, state: Any, key: Key[Array, ""], stored: Sequence[Observed], mend: bool = True
    ) -> tuple[Any, list[Float[Array, "n {self.dim}"]], MapInfo]:
        """Never called: only learned descriptors are fitted."""
        raise TypeError("A hand-coded descriptor has nothing to settle; its schedule should never train.")
