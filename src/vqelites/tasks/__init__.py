"""Tasks: what solutions are evaluated on."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vqelites.tasks.base import AbstractTask as AbstractTask
    from vqelites.tasks.base import Task as Task
    from vqelites.tasks.film import Film as Film
    from vqelites.tasks.planar_arm import PlanarArm as PlanarArm
    from vqelites.tasks.simulated import Interface as Interface
    from vqelites.tasks.simulated import SimulatorTask as SimulatorTask
    from vqelites.tasks.simulated import own_interface as own_interface
    from vqelites.tasks.simulated import simulator_task as simulator_task

# Where each name lives. A name is imported when it is first used: worker processes, which only simulate, need no JAX.
_PLACES = {
    "AbstractTask": "base",
    "Film": "film",
    "Interface": "simulated",
    "PlanarArm": "planar_arm",
    "SimulatorTask": "simulated",
    "Task": "base",
    "own_interface": "simulated",
    "simulator_task": "simulated",
}


def __getattr__(name: str) -> Any:
    """Names that are imported when they are first used."""
    if name in _PLACES:
        return getattr(importlib.import_module(f"vqelites.tasks.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
