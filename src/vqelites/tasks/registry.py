"""Tasks by name: the built-in ones, and those users add."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vqelites.tasks.arm import arm, arm_constrained
from vqelites.tasks.base import Task
from vqelites.tasks.families import Family, spelled
from vqelites.tasks.minigrid import MiniGrid
from vqelites.tasks.mobile import mobile_free, mobile_l
from vqelites.tasks.planar_arm import PlanarArm
from vqelites.tasks.simulated import Interface, SimulatorTask, own_interface, simulator_task
from vqelites.words import did_you_mean


@dataclass(frozen=True)
class Entry:
    """A task that can be made by name."""

    make: Callable[[], Any]
    summary: str
    source: Any  # the function or class that was decorated


_ENTRIES: dict[str, Entry] = {}
_FAMILIES: dict[str, Family] = {}


def register(name: str, summary: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Decorate a function or class without arguments that makes a task; `name` then finds it."""

    def add(make: Callable[[], Any]) -> Callable[[], Any]:
        _enter(name, Entry(make, summary, make))
        return make

    return add


def simulator(
    source: None = None, /, *, name: str | None = None, batch: bool = False, **interface: Any
) -> Callable[[Any], Any]:
    """Decorate a function (solution, seed) -> fitness, behavior[, truth], or a class with such a method `simulate`.

    The task has the name of what is decorated unless another is given; `interface` are the fields of `Interface`.
    """
    if source is not None or "solution_dim" not in interface:
        raise TypeError(
            "A simulator says how many numbers a solution has: @vqelites.simulator(solution_dim=N) above the function "
            "or class."
        )
    known = Interface(**interface)

    def add(source: Any) -> Any:
        text = (source.__doc__ or "a simulator").strip().splitlines()[0]

        def make() -> SimulatorTask:
            return SimulatorTask(source() if isinstance(source, type) else source, known, batch)

        _enter(name or source.__name__, Entry(make, text, source))
        return source

    return add


def _enter(name: str, entry: Entry) -> None:
    if name in _ENTRIES:
        raise ValueError(f"There is already a task named {name!r}; choose another name.")
    _ENTRIES[name] = entry


def name_of(source: Any) -> str | None:
    """The name under which a function or class was registered, if it was."""
    return next((name for name, entry in _ENTRIES.items() if entry.source is source), None)


def built_in(name: str) -> bool:
    """Whether a task of that name comes with this package, and needs no other."""
    return name in _ENTRIES and _ENTRIES[name].make.__module__.startswith("vqelites.")


def names() -> list[str]:
    """All names, built-in ones first."""
    return list(_ENTRIES)


def families() -> dict[str, Family]:
    """Families of tasks by what stands before the colon of their names."""
    return dict(_FAMILIES)


def family(name: str) -> tuple[Family, str] | None:
    """The family of a name with a colon, and what stands behind it; None for a task that has a name of its own."""
    first, is_there, rest = name.partition(":")
    if name in _ENTRIES or not is_there or first not in _FAMILIES:
        return None
    if not rest:
        raise ValueError(f"{name!r} lacks what stands behind the colon: {_FAMILIES[first].such_as}, say.")
    return _FAMILIES[first], rest


def with_options(name: str, options: Any) -> str:
    """The name of the task of a family with these options in place of those it has."""
    found = family(name)
    assert found is not None
    return f"{name.partition(':')[0]}:{spelled(found[0].read(found[1])[0], options)}"


def summary(name: str) -> str:
    """One sentence about a task."""
    found = family(name)
    return found[0].summary if found else _entry(name).summary


def make(name: str) -> Task:
    """The task of that name. What is registered may also make a simulator that knows its interface, as a `GymTask`."""
    found = family(name)
    made = found[0].make(found[1]) if found else _entry(name).make()
    return simulator_task(made) if own_interface(made) and not isinstance(made, SimulatorTask) else made


def _entry(name: str) -> Entry:
    if name not in _ENTRIES:
        known = [*_ENTRIES, *(f"{kind}:{one.such_as}" for kind, one in _FAMILIES.items())]
        near = did_you_mean(name, known, most=3, cutoff=0.4)
        raise ValueError(f"There is no task named {name!r}.{near} Known tasks: {', '.join(known)}.")
    return _ENTRIES[name]


_FAMILIES["gym"] = Family(
    "an environment of Gymnasium, by its id", "LunarLander-v3", "vqelites.tasks.gym", "GymOptions"
)
_FAMILIES["brax"] = Family(
    "a robot of Brax that walks: forward by all gaits (ant-uni), or everywhere (ant-omni)",
    "ant-omni",
    "vqelites.tasks.brax",
    "BraxOptions",
)
register("mobile-free", "a robot that should end up everywhere in an empty square")(mobile_free)
register("mobile-l", "the same robot in an L-shaped room")(mobile_l)
register("arm", "an iiwa arm that should reach a goal in every possible pose")(arm)
register("arm-constrained", "the same arm, its first two joints hardly movable")(arm_constrained)
register("minigrid", "an agent that should get everywhere behind a chain of locked doors")(MiniGrid)
register("planar-arm", "a small planar arm that should reach everywhere, evenly bent")(
    lambda: PlanarArm(behavior="joints")
)
