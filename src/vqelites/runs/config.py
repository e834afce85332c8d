"""The configuration of a run: what it computes, how its solutions are evaluated, and when it is saved."""

import os
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from vqelites.experiments.config import Settings
from vqelites.experiments.presets import settings
from vqelites.tasks import Interface

CHUNK = 10
Mode = Literal["step", "async"]


@dataclass(frozen=True)
class Saving:
    """When a run is saved. None of it changes results: a run is saved only at the end of a chunk."""

    every: int | None = None
    """iterations between checkpoints; None: by time alone"""
    minutes: float = 2.0
    """minutes between checkpoints"""
    keep: int = 2
    """checkpoints kept, the newest ones"""


@dataclass(frozen=True)
class Evaluating:
    """How the solutions of a simulator in Python are evaluated. Where and by how many does not change results."""

    workers: int | None = None
    """processes that evaluate the solutions of a simulator in Python; None: this one, or all a cluster has room for"""
    timeout: float | None = None
    """seconds after which an evaluation has failed; needs workers or a cluster"""
    retries: int = 0
    """times a failed evaluation is tried again"""
    cluster: str | None = None
    """Ray cluster whose nodes evaluate the solutions; auto: that of this machine, started if there is none"""
    num_cpus: float = 1.0
    """CPUs of a node that each worker of the cluster takes"""
    num_gpus: float = 0.0
    """GPUs of a node that each worker of the cluster takes"""
    mode: Mode = "step"
    """step: batch by batch, exactly repeatable; async: nobody waits for the slowest evaluation or for training"""

    def __post_init__(self) -> None:
        if self.workers is not None and not (isinstance(self.workers, int) and self.workers >= 1):
            raise ValueError(f"Expected at least 1 worker, or None for this process; got workers={self.workers!r}.")
        if not isinstance(self.retries, int) or self.retries < 0:
            raise ValueError(f"retries must be a whole number of at least 0, but is {self.retries!r}.")
        if self.timeout is not None and not (isinstance(self.timeout, int | float) and self.timeout > 0):
            raise ValueError(f"timeout must be a positive number of seconds, but is {self.timeout!r}.")
        if self.timeout is not None and not self.by_workers:
            raise ValueError("A time-out needs workers: an evaluation in this process cannot be ended. Use workers=1.")
        if self.cluster is not None and not (isinstance(self.cluster, str) and self.cluster):
            raise ValueError(f"cluster is 'auto' or the address of a Ray cluster, but is {self.cluster!r}.")
        needs = self.num_cpus, self.num_gpus
        if not all(isinstance(need, int | float) and need >= 0 for need in needs) or not sum(needs):
            raise ValueError(f"A worker needs num_cpus or num_gpus above 0; got {needs[0]!r} and {needs[1]!r}.")
        if self.cluster is None and needs != (1, 0):
            raise ValueError("num_cpus and num_gpus are those of a worker on a cluster: give cluster= as well.")
        if self.mode not in get_args(Mode):
            raise ValueError(f"mode is one of {', '.join(get_args(Mode))}, but is {self.mode!r}.")

    @property
    def by_workers(self) -> bool:
        """Whether other processes evaluate solutions, here or on a cluster."""
        return self.workers is not None or self.cluster is not None

    @property
    def here(self) -> "Evaluating":
        """The same on this machine: when a run is looked at, its cluster may be gone."""
        return Evaluating(self.workers or os.cpu_count(), self.timeout, self.retries) if self.cluster else self


@dataclass(frozen=True)
class Config:
    """All that determines what a run computes, its seed and the solutions it starts from aside."""

    task: str
    algorithm: str
    preset: str
    settings: Settings
    chunk: int = CHUNK
    saving: Saving = field(default_factory=Saving)
    interface: Interface | None = None  # of a simulator in Python; None for a task in JAX, which is made by its name
    evaluating: Evaluating = field(default_factory=Evaluating)
    own_networks: bool = False  # whether encoder and decoder are a user's own, which no file holds

    def __post_init__(self) -> None:
        saving = self.saving
        if self.chunk < 1 or saving.keep < 1 or saving.minutes <= 0 or (saving.every is not None and saving.every < 1):
            raise ValueError(f"Expected chunk, keep and every >= 1 and minutes > 0; got chunk={self.chunk}, {saving}.")

    @classmethod
    def of(cls, task: str, algorithm: str, preset: str = "paper", *, iterations: int | None = None) -> "Config":
        """A preset, with another number of iterations if wanted."""
        chosen = settings(task, algorithm, preset)
        if iterations is not None:
            chosen = replace(chosen, search=replace(chosen.search, iterations=iterations))
        return cls(task, algorithm, preset, chosen)

    @property
    def stride(self) -> int:
        """Iterations computed in one go, between which a run stops and saves; of a simulator, one."""
        return self.chunk if self.interface is None else 1

    @property
    def iterations(self) -> int:
        """Length of the run as planned; a finished one can be extended."""
        return self.settings.search.iterations

    @property
    def named(self) -> str:
        """In a few words."""
        return f"{self.algorithm} on {self.task}"
