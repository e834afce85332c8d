"""What can be said of an environment as a task in plain words, on the command line too."""

import difflib
from dataclasses import dataclass, fields
from typing import Literal, get_args

PolicyName = Literal["mlp", "linear"]
BehaviorName = Literal["observations", "last observation", "frame", "video"]


@dataclass(frozen=True)
class Options:
    """How an environment of Gymnasium is a task."""

    policy: PolicyName = "mlp"
    """what acts: a network with tanh layers, or a linear map; its weights are the solution"""
    hidden: tuple[int, ...] = (16,)
    """units of the network's hidden layers"""
    normalise: bool = False
    """give the policy observations less their mean, divided by their spread, as random actions have them"""
    behavior: BehaviorName = "observations"
    """what is seen of an episode: some observations evenly spread over it, the last one, the last frame, or a video"""
    moments: int | None = None
    """how many observations or frames of an episode, however long it is; None: 32, in a video 8"""
    pixels: int | None = None
    """width and height of frames; None: 64, in a video 32"""
    steps: int | None = None
    """after which an episode ends; None: as the environment has it, 1,000 if it has no limit"""
    episodes: int = 1
    """of each evaluation; fitness and behavior are their means"""
    vector: int = 1
    """environments that take their steps side by side in each worker"""

    def __post_init__(self) -> None:
        if isinstance(self.hidden, int):
            object.__setattr__(self, "hidden", (self.hidden,))
        _check("policy", self.policy, get_args(PolicyName))
        _check("behavior", self.behavior, get_args(BehaviorName))
        if not isinstance(self.hidden, tuple) or not all(_counts(units) for units in self.hidden):
            raise ValueError(f"hidden are the units of each layer, such as (32, 32), but is {self.hidden!r}.")
        if not isinstance(self.normalise, bool):
            raise ValueError(f"normalise is true or false, but is {self.normalise!r}.")
        for name in ("moments", "pixels", "steps"):
            value = getattr(self, name)
            if value is not None and not _counts(value):
                raise ValueError(f"{name} must be a whole number of at least 1, or None, but is {value!r}.")
        for name in ("episodes", "vector"):
            if not _counts(getattr(self, name)):
                raise ValueError(f"{name} must be a whole number of at least 1, but is {getattr(self, name)!r}.")


def option_names() -> list[str]:
    """Of all fields."""
    return [field.name for field in fields(Options)]


def _counts(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _check(what: str, name: object, known: tuple[str, ...]) -> None:
    if name not in known:
        near = difflib.get_close_matches(str(name), known, n=2)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"There is no {what} {name!r}.{hint} Known: {', '.join(map(repr, known))}, or a function.")
