"""What an ask/tell optimizer is made of, and never changes."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Array

from vqelites.descriptors import AbstractLayer, per_sample
from vqelites.drive import Host
from vqelites.experiments.build import build, measure_of
from vqelites.experiments.config import Settings
from vqelites.tasks import Interface, SimulatorTask

# An own network: maps one behavior to its latent vector, or back; its arrays are trained.
Module = Callable[[Array], Array]
Networks = tuple[AbstractLayer, AbstractLayer]


@dataclass(frozen=True)
class Blueprint:
    """Algorithm, simulator and seed."""

    algorithm: str
    settings: Settings
    interface: Interface
    seed: int
    start: np.ndarray | None = None  # (n, s) solutions to try first
    own: Networks | None = None

    def host(self) -> Host:
        """The loop, driven from outside."""
        task = SimulatorTask(_nobody, self.interface)
        return Host(build(task, self.settings, given=self.start, own=self.own), measure_of(self.interface))

    def with_truth(self, width: int) -> "Blueprint":
        """The same for a truth of this width, which only what is told shows."""
        return replace(self, interface=replace(self.interface, truth_dim=width))


def own_networks(encoder: Module | None, decoder: Module | None) -> Networks | None:
    """Modules for one behavior as networks for many."""
    if encoder is None and decoder is None:
        return None
    if encoder is None or decoder is None:
        raise ValueError("Own modules come as a pair: give both encoder and decoder, or neither.")
    return per_sample(encoder), per_sample(decoder)


def _nobody(solution: Any, seed: Any) -> Any:
    raise NotImplementedError("Who asks and tells evaluates solutions himself.")
