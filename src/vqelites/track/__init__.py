"""Experiment trackers (extra `track`): where a run's curves, pictures and elites can be followed."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from vqelites.track.base import AbstractTracker as AbstractTracker
from vqelites.words import did_you_mean

TrackerName = Literal["tensorboard", "wandb"]
_NEEDS = {"tensorboard": "tensorboardX", "wandb": "wandb"}


def check(names: str | Sequence[str]) -> tuple[str, ...]:
    """The names of trackers, one or several, once it is sure that they can be used."""
    chosen = (names,) if isinstance(names, str) else tuple(dict.fromkeys(names))
    for name in chosen:
        if name not in _NEEDS:
            near = did_you_mean(name, _NEEDS)
            raise ValueError(f"There is no tracker named {name!r}.{near} Known: {', '.join(_NEEDS)}.")
        if importlib.util.find_spec(_NEEDS[name]) is None:
            raise ValueError(f'The tracker {name} needs {_NEEDS[name]}: pip install "vqelites[track]".')
    return chosen


def make(name: str, folder: Path, title: str, settings: dict[str, Any], after: int) -> AbstractTracker:
    """A tracker of one run that keeps its files in this folder and goes on after this iteration; -1 from the start."""
    if name == "tensorboard":
        from vqelites.track.tensorboard import TensorBoard

        return TensorBoard(folder, title, settings, after)
    from vqelites.track.weights_and_biases import WeightsAndBiases

    return WeightsAndBiases(folder, title, settings)
