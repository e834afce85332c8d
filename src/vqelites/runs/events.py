"""What a run tells whoever watches it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from vqelites.evaluation import Activity
from vqelites.runs.config import Config

Phase = Literal["starting", "evaluating", "running", "interrupted", "finished"]


@dataclass(frozen=True)
class Status:
    """Where a group of runs stands: told at the start, after every chunk, at the end, and while a simulator is busy."""

    config: Config
    seeds: tuple[int, ...]
    phase: Phase
    iteration: int
    iterations: int  # after which the runs are finished
    seconds: float  # of computing so far
    latest: dict[str, np.ndarray]  # last known value of every metric, one per run; NaN if none is known yet
    activity: Activity | None = None  # of what evaluates a simulator


@dataclass(frozen=True)
class Note:
    """Something a person should know."""

    text: str


Observe = Callable[[Status | Note], None]


def silent(event: Status | Note) -> None:
    """Watch nothing."""
