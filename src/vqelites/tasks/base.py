"""What every JAX task offers: its sizes, its solution space, how solutions are evaluated, and how it is drawn."""

import abc
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import equinox as eqx
from jaxtyping import Array, Float, Key

from vqelites.types import Bins, Evaluation, SolutionSpace

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Mark:
    """A letter at a place (x, y) of a drawing, with a ring of this colour around it."""

    letter: str
    place: tuple[float, float]
    colour: tuple[float, float, float]


@dataclass(frozen=True)
class Chart:
    """How a task is drawn, and how true outcomes of two numbers lie in that drawing."""

    projection: Literal["rectilinear", "3d"] = "rectilinear"  # of the axes it is drawn on
    scale: float = 1.0  # from true outcomes to the units of the drawing
    rows_first: bool = False  # outcomes are (row, column), and rows count from the top down
    marks: tuple[Mark, ...] = ()  # shown on top of maps and grids


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
    near_goal: ClassVar[float | None] = None  # fitness of those that count as near the goal, if the task has one

    @property
    def chart(self) -> Chart:
        """How it is drawn; a task that is not simply drawn in the units of its truth says so here."""
        return Chart()

    @abc.abstractmethod
    def evaluate(self, key: Key[Array, ""], solutions: Float[Array, "n s"]) -> Evaluation:
        """Try n solutions; the same key and solutions give the same result."""

    @abc.abstractmethod
    def draw(self, axes: "Axes", solutions: Float[Array, "n s"]) -> None:
        """Draw the task's world and what these solutions do in it."""
