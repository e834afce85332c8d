"""What every shell tells of an iteration."""

from collections.abc import Callable

import equinox as eqx
from jaxtyping import Array

from vqelites.loop import TellInfo, UpdateInfo
from vqelites.types import Elites

Measure = Callable[[Elites], dict[str, Array]]


class StepInfo(eqx.Module):
    """What happened in one iteration; `measures` is whatever the caller wanted computed from the elites."""

    tell: TellInfo
    update: UpdateInfo
    measures: dict[str, Array]


def no_measure(elites: Elites) -> dict[str, Array]:
    """Measure nothing."""
    return {}
