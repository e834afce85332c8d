"""The interface of every task: its sizes, its solution space, what its outcomes mean, and how it is drawn."""

import abc
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import equinox as eqx
from jaxtyping import Array, Float, Key

from vqelites.types import Bins, Evaluation, Problem, SolutionSpace

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


class Task(Problem, Protocol):
    """A problem, apart from how solutions are evaluated: `AbstractTask` does that in JAX, `SimulatorTask` in Python.

    The truth is a hand-coded descriptor of what a solution did; only hand-coded algorithms and metrics see it. Where
    none is known, its limits are empty; limits that are not known are infinite.
    """

    @property
    def cells(self) -> Float[Array, "k t"] | None:
        """Hand-coded cells over the truth, for MAP-Elites."""

    @property
    def bins(self) -> Bins | None:
        """What metrics project elites onto."""

    @property
    def near_goal(self) -> float | None:
        """The fitness of those that count as near the goal, if the task has one."""

    @property
    def chart(self) -> Chart:
        """How it is drawn."""

    @property
    def drawable(self) -> bool:
        """Whether `draw` can be called."""

    def draw(self, axes: "Axes", solutions: Float[Array, "n s"]) -> None:
        """Draw the task's world and what these solutions do in it."""


class AbstractTask(eqx.Module):
    """A task that evaluates batches of solutions, inside compiled code."""

    space: eqx.AbstractVar[SolutionSpace]
    behavior_shape: eqx.AbstractVar[tuple[int, ...]]
    truth_low: eqx.AbstractVar[tuple[float, ...]]
    truth_high: eqx.AbstractVar[tuple[float, ...]]
    cells: eqx.AbstractVar[Float[Array, "k t"]]
    bins: eqx.AbstractVar[Bins]
    eight_bit: ClassVar[bool] = False
    near_goal: ClassVar[float | None] = None
    drawable: ClassVar[bool] = True

    @property
    def chart(self) -> Chart:
        """How it is drawn: to be overridden if the drawing is 3-D or in other units than the truth."""
        return Chart()

    @abc.abstractmethod
    def evaluate(self, keys: Key[Array, "n"], solutions: Float[Array, "n s"]) -> Evaluation:
        """Evaluate n solutions, each with a key of its own: the same key and solution give the same result."""

    @abc.abstractmethod
    def draw(self, axes: "Axes", solutions: Float[Array, "n s"]) -> None:
        """Draw the task's world and what these solutions do in it."""
