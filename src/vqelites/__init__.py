"""Quality-Diversity without hand-designed descriptors: VQ-Elites and its relatives."""

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

from vqelites.algorithms import Effort, aurora, aurora_plus, cvt_map_elites, map_elites, vq_elites
from vqelites.loop import QD
from vqelites.optimizer import VQElites
from vqelites.types import Elites, Evaluation, SolutionSpace

if TYPE_CHECKING:
    from vqelites.runs.api import run
    from vqelites.runs.run import Run

__version__ = importlib.metadata.version("vqelites")
__all__ = [
    "QD",
    "Effort",
    "Elites",
    "Evaluation",
    "Run",
    "SolutionSpace",
    "VQElites",
    "aurora",
    "aurora_plus",
    "cvt_map_elites",
    "map_elites",
    "run",
    "vq_elites",
]

# Whoever only uses ask and tell need not wait for what runs in folders need.
_LATER = {"run": "vqelites.runs.api", "Run": "vqelites.runs.run"}


def __getattr__(name: str) -> Any:
    """Names that are imported when they are first used."""
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
