"""Quality-Diversity without hand-designed descriptors: VQ-Elites and its relatives."""

import importlib
from typing import TYPE_CHECKING, Any

from vqelites.algorithms import Effort as Effort
from vqelites.algorithms import aurora as aurora
from vqelites.algorithms import aurora_plus as aurora_plus
from vqelites.algorithms import cvt_map_elites as cvt_map_elites
from vqelites.algorithms import map_elites as map_elites
from vqelites.algorithms import vq_elites as vq_elites
from vqelites.loop import QD as QD
from vqelites.optimizer import VQElites as VQElites
from vqelites.types import Elites as Elites
from vqelites.types import Evaluation as Evaluation
from vqelites.types import SolutionSpace as SolutionSpace

if TYPE_CHECKING:
    from vqelites.runs.api import run as run
    from vqelites.runs.run import Run as Run

# Whoever only uses ask and tell need not wait for what runs in folders need.
_LATER = {"run": "vqelites.runs.api", "Run": "vqelites.runs.run"}


def __getattr__(name: str) -> Any:
    """Names that are imported when they are first used."""
    if name in _LATER:
        return getattr(importlib.import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
