"""Quality-Diversity without hand-designed descriptors: VQ-Elites and its relatives."""

import importlib
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vqelites.algorithms import Effort, aurora, aurora_plus, cvt_map_elites, map_elites, vq_elites
    from vqelites.loop import QD
    from vqelites.optimizer import AskTell, VQElites
    from vqelites.runs.api import resume, run
    from vqelites.runs.run import Run
    from vqelites.tasks.brax import BraxTask
    from vqelites.tasks.gym import GymTask
    from vqelites.tasks.registry import simulator
    from vqelites.types import Elites, Evaluation, SolutionSpace

IMPORTED = time.time()  # what is in files that change later is not what runs

__all__ = [
    "QD",
    "AskTell",
    "BraxTask",
    "Effort",
    "Elites",
    "Evaluation",
    "GymTask",
    "Run",
    "SolutionSpace",
    "VQElites",
    "aurora",
    "aurora_plus",
    "cvt_map_elites",
    "map_elites",
    "resume",
    "run",
    "simulator",
    "vq_elites",
]

# Where each name lives. A name is imported when it is first used: a process that only evaluates solutions then starts
# without JAX, in a quarter of a second instead of two.
_PLACES = {
    "vqelites.algorithms": ("Effort", "aurora", "aurora_plus", "cvt_map_elites", "map_elites", "vq_elites"),
    "vqelites.loop": ("QD",),
    "vqelites.optimizer": ("AskTell", "VQElites"),
    "vqelites.runs.api": ("resume", "run"),
    "vqelites.runs.run": ("Run",),
    "vqelites.tasks.brax": ("BraxTask",),
    "vqelites.tasks.gym": ("GymTask",),
    "vqelites.tasks.registry": ("simulator",),
    "vqelites.types": ("Elites", "Evaluation", "SolutionSpace"),
}
_PLACE = {name: place for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Names that are imported when they are first used."""
    if name in _PLACE:
        return getattr(importlib.import_module(_PLACE[name]), name)
    if name == "__version__":
        from importlib import metadata

        return metadata.version("vqelites")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
