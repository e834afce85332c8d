"""Options of a robot of Brax as a task, on the command line too."""

from dataclasses import dataclass
from typing import Literal

from vqelites.tasks.options import check_choice, check_counts, check_layers

BehaviorName = Literal["observations", "feet contact", "path"]
BackendName = Literal["spring", "positional", "generalized", "mjx"]


@dataclass(frozen=True)
class BraxOptions:
    """Options that turn a robot of Brax into a task."""

    behavior: BehaviorName = "observations"
    """what is recorded at some moments: what the policy observes, which feet touch the ground, or where the body is"""
    moments: int = 32
    """number of moments, evenly spread over the episode, however long it is"""
    hidden: tuple[int, ...] = (64, 64)
    """units of the policy's hidden layers"""
    steps: int = 250
    """steps of an episode, unless the robot falls earlier"""
    backend: BackendName = "spring"
    """physics engine of Brax"""

    def __post_init__(self) -> None:
        check_choice("behavior", self.behavior, BehaviorName)
        check_choice("backend", self.backend, BackendName)
        check_counts(moments=self.moments, steps=self.steps)
        object.__setattr__(self, "hidden", check_layers(self.hidden))
