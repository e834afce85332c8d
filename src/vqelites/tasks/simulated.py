"""Simulators in plain Python as tasks: a function or an object with a `simulate` method, and what goes in and out."""

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from vqelites import inputs
from vqelites.tasks.base import Chart
from vqelites.tessellation import grid
from vqelites.types import Bins, SolutionSpace

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Interface:
    """What goes into a simulator and what comes out. What is None is found by one evaluation."""

    solution_dim: int
    """numbers of a solution"""
    low: float | tuple[float, ...] = -1.0
    """lower limit of random solutions: one for all numbers, or one each"""
    high: float | tuple[float, ...] = 1.0
    """upper limit of random solutions"""
    bounded: bool = False
    """keep children between these limits too"""
    behavior_shape: tuple[int, ...] | None = None
    """shape of the behavior of one solution"""
    truth_dim: int | None = None
    """numbers of the truth; 0: none is known"""
    truth_low: tuple[float, ...] = ()
    """lower limits of the truth, where known"""
    truth_high: tuple[float, ...] = ()
    """upper limits of the truth, where known"""
    bins: tuple[int, ...] | None = None
    """numbers of bins over the truth, one for each of its numbers: what metrics count, and the cells of MAP-Elites"""
    eight_bit: bool | None = None
    """whether behavior is 8-bit levels, such as images of a camera, and kept so; they stand for 0 to 1"""

    def __post_init__(self) -> None:
        for name, value in self._as_files_hold_them().items():
            object.__setattr__(self, name, value)
        if len(self.truth_low) != len(self.truth_high) or not all(
            low < high for low, high in zip(self.truth_low, self.truth_high, strict=True)
        ):
            raise ValueError(
                f"Expected truth_low < truth_high, number by number; got {self.truth_low} and {self.truth_high}."
            )
        if self.truth_low and self.truth_dim is None:
            object.__setattr__(self, "truth_dim", len(self.truth_low))
        if self.truth_low and self.truth_dim != len(self.truth_low):
            raise ValueError(
                f"The truth has {self.truth_dim} numbers, but truth_low and truth_high have {len(self.truth_low)}."
            )
        if self.bins is not None and len(self.bins) != len(self.truth_low):
            raise ValueError(
                f"bins={self.bins} divides each number of the truth, so it needs truth_low and truth_high of as many "
                f"numbers; got {self.truth_low} and {self.truth_high}."
            )

    def _as_files_hold_them(self) -> dict[str, Any]:
        """The fields as plain Python numbers; lists and NumPy's arrays and numbers are accepted."""
        inputs.positive(solution_dim=self.solution_dim)
        known: dict[str, Any] = {
            "solution_dim": int(self.solution_dim),
            "bounded": inputs.flag("bounded", self.bounded),
        }
        for name in ("low", "high"):
            known[name] = inputs.limit(name, getattr(self, name))
            if np.shape(known[name]) not in ((), (self.solution_dim,)):
                raise ValueError(
                    f"{name} must be one number, or {self.solution_dim}, one for each of a solution's, but has shape "
                    f"{np.shape(known[name])}."
                )
        for name, kind in (("truth_low", float), ("truth_high", float), ("bins", int)):
            value = getattr(self, name)
            known[name] = None if value is None else tuple(map(kind, np.atleast_1d(value).tolist()))
        for count in () if self.bins is None else np.atleast_1d(self.bins).tolist():
            inputs.positive(bins=count)
        if self.eight_bit is not None:
            known["eight_bit"] = inputs.flag("eight_bit", self.eight_bit)
        if self.behavior_shape is not None:
            known["behavior_shape"] = inputs.shape(self.behavior_shape)
        return known

    @functools.cached_property
    def grid(self) -> Bins | None:
        """The bins; which of them are reachable is not known, so all count."""
        if self.bins is None:
            return None
        centres = grid(self.bins, self.truth_low, self.truth_high)
        return Bins(centres, jnp.ones(len(centres), bool))

    @property
    def complete(self) -> bool:
        """Whether no evaluation has to show more. Only images need to show whether they are kept in 8 bits."""
        image = self.behavior_shape is not None and len(self.behavior_shape) > 2
        return None not in (self.behavior_shape, self.truth_dim, self.eight_bit if image else False)

    def shown(self, behavior: np.ndarray, truth_dim: int) -> "Interface":
        """With what an evaluation shows in place of what is not known."""
        return replace(
            self,
            behavior_shape=behavior.shape if self.behavior_shape is None else self.behavior_shape,
            truth_dim=truth_dim if self.truth_dim is None else self.truth_dim,
            eight_bit=behavior.dtype == np.uint8 if self.eight_bit is None else self.eight_bit,
        )


@dataclass(frozen=True, eq=False)
class SimulatorTask:
    """A task evaluated by `simulate(solution, seed) -> fitness, behavior[, truth]`, wherever an evaluator calls it.

    `source` is that function, or an object with such a method, which may also have `draw(axes, solutions)` and
    `render(solution, seed)`. In a `batch` it takes solutions (n, s) and seeds (n,) and returns arrays of n rows.
    """

    source: Any
    interface: Interface
    batch: bool = False
    near_goal: float | None = None
    chart: Chart = field(default_factory=Chart)

    def __post_init__(self) -> None:
        if isinstance(self.source, type) or not callable(self.simulate):
            raise TypeError(
                "A simulator is a function (solution, seed) -> fitness, behavior[, truth], or an object with such a "
                f"method `simulate`; got {self.source!r}."
            )

    @property
    def simulate(self) -> Callable[[Any, Any], Any]:
        """The user's function."""
        return getattr(self.source, "simulate", self.source)

    @functools.cached_property
    def space(self) -> SolutionSpace:
        """Where solutions live."""
        known = self.interface
        return SolutionSpace(known.solution_dim, known.low, known.high, bounded=known.bounded)

    @property
    def behavior_shape(self) -> tuple[int, ...]:
        """Shape of one solution's raw behavior."""
        assert self.interface.behavior_shape is not None
        return self.interface.behavior_shape

    @property
    def eight_bit(self) -> bool:
        """Whether behavior is kept in 8 bits."""
        return bool(self.interface.eight_bit)

    @property
    def truth_low(self) -> tuple[float, ...]:
        """Lower limits of the truth."""
        return self.interface.truth_low or (-np.inf,) * (self.interface.truth_dim or 0)

    @property
    def truth_high(self) -> tuple[float, ...]:
        """Upper limits of the truth."""
        return self.interface.truth_high or (np.inf,) * (self.interface.truth_dim or 0)

    @property
    def cells(self) -> Float[Array, "k t"] | None:
        """The centres of the bins."""
        return None if self.bins is None else self.bins.centres

    @property
    def bins(self) -> Bins | None:
        """What metrics project elites onto."""
        return self.interface.grid

    @property
    def drawable(self) -> bool:
        """Whether the user's object can draw."""
        return hasattr(self.source, "draw")

    def draw(self, axes: "Axes", solutions: Float[Array, "n s"]) -> None:
        """As the user's object draws it."""
        self.source.draw(axes, np.asarray(solutions))

    def with_interface(self, interface: Interface) -> "SimulatorTask":
        """The same simulator, of which more is known."""
        return replace(self, interface=interface)


def own_interface(source: Any) -> Interface | None:
    """Of a simulator that knows itself: it has a `name` too, and says if it takes a `batch`."""
    found = getattr(source, "interface", None)
    return found if isinstance(found, Interface) else None


def simulator_task(source: Any, batch: bool = False, **known: Any) -> SimulatorTask:
    """A simulator as a task: `known` are fields of `Interface`, unless the simulator has one of its own."""
    own = own_interface(source)
    if own is not None and not known and not batch:
        return SimulatorTask(source, own, source.batch)
    if own is not None:
        given = ", ".join([*known, *["batch"] * batch])
        raise ValueError(f"{source.name} has an interface of its own; {given} can be given only with other simulators.")
    if "solution_dim" not in known:
        raise ValueError("A simulator needs solution_dim, the number of parameters of a solution.")
    return SimulatorTask(source, Interface(**known), batch)
