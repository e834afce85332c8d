"""What an ask/tell optimizer is made of, and never changes."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vqelites.drive import Host
from vqelites.experiments.build import Networks, build, measure_of
from vqelites.experiments.config import Settings
from vqelites.tasks import Interface, SimulatorTask


@dataclass(frozen=True)
class Blueprint:
    """Algorithm, simulator and seed."""

    algorithm: str
    settings: Settings
    interface: Interface
    seed: int
    start: np.ndarray | None = None  # (n, s) solutions to evaluate first
    own: Networks | None = None

    def host(self) -> Host:
        """The loop, driven from outside."""
        task = SimulatorTask(_nobody, self.interface)
        return Host(build(task, self.settings, given=self.start, own=self.own), measure_of(self.interface))

    def shown(self, behavior: np.ndarray, truth_dim: int) -> "Blueprint":
        """With what only the first told evaluations show: the width of the truth, and whether behavior is in 8 bits."""
        return replace(self, interface=self.interface.shown(behavior, truth_dim))


def _nobody(solution: Any, seed: Any) -> Any:
    raise NotImplementedError("Who asks and tells evaluates solutions himself.")
