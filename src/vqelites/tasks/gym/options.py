"""Options of an environment as a task, on the command line too."""

from dataclasses import dataclass, fields
from typing import Literal

from vqelites.tasks.options import check_choice, check_counts, check_layers

PolicyName = Literal["mlp", "linear"]
BehaviorName = Literal["observations", "last observation", "frame", "video"]


@dataclass(frozen=True)
class GymOptions:
    """Options that turn an environment of Gymnasium into a task."""

    policy: PolicyName = "mlp"
    """what acts: a network with tanh layers, or a linear map; its weights are the solution"""
    hidden: tuple[int, ...] = (16,)
    """units of the network's hidden layers"""
    normalise: bool = False
    """give the policy observations standardised by their mean and spread under random actions"""
    behavior: BehaviorName = "observations"
    """what is recorded of an episode: observations evenly spread over it, the last one, the last frame, or a video"""
    moments: int | None = None
    """how many observations or frames of an episode, however long it is; None: 32, in a video 8"""
    pixels: int | None = None
    """width and height of frames; None: 64, in a video 32"""
    steps: int | None = None
    """steps after which an episode ends; None: the environment's own limit, or 1,000 if it has none"""
    episodes: int = 1
    """episodes per evaluation; fitness and behavior are means over them"""
    vector: int = 1
    """environments that take their steps side by side in each worker"""

    def __post_init__(self) -> None:
        check_choice("policy", self.policy, PolicyName)
        check_choice("behavior", self.behavior, BehaviorName)
        object.__setattr__(self, "hidden", check_layers(self.hidden))
        if not isinstance(self.normalise, bool):
            raise ValueError(f"normalise is true or false, but is {self.normalise!r}.")
        given = {name: getattr(self, name) for name in ("moments", "pixels", "steps")}
        check_counts(**{name: value for name, value in given.items() if value is not None})
        check_counts(episodes=self.episodes, vector=self.vector)


def option_names() -> list[str]:
    """Of all fields."""
    return [field.name for field in fields(GymOptions)]
