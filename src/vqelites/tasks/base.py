"""What every JAX task offers: its sizes, its solution space, how solutions are evaluated, and how it is drawn."""

import abc
from typing import TYPE_CHECKING

import equinox as eqx
from jaxtyping import Array, Float, Key

from vqelites.types import Bins, Evaluation, SolutionSpace

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class AbstractTask(eqx.Module):
    """A problem whose solutions can be tried in batches, inside compiled code.

    The truth is a hand-coded descriptor of what a solution did; only hand-coded algorithms and metrics see it.
    """

    space: eqx.AbstractVar[SolutionSpace]
    behavior_shape: eqx.AbstractVar[tuple[int, ...]]
    truth_low: eqx.AbstractVar[tuple[float, ...]]  # known limits of the truth
    truth_high: eqx.AbstractVar[tuple[float, ...]]
    cells: eqx.AbstractVar[Float[Array, "k t"]]  # hand-coded cells over the truth, for MAP-Elites
    bins: eqx.AbstractVar[Bins]  # what metrics project elites onto

    @abc.abstractmethod
    def evaluate(self, key: Key[Array, ""], solutions: Float[Array, "n s"]) -> Evaluation:
        """Try n solutions; the same key and solutions give the same result."""

    @abc.abstractmethod
    def draw(self, axes: "Axes", solutions: Float[Array, "n s"]) -> None:
        """Draw the task's world and what these solutions do in it."""
