"""What the first training leaves unexplained of the variance of behaviors: sensors, a planar arm, pure noise.

    python benchmarks/unexplained.py [--behaviors NAME ...] [--algorithms NAME ...]

1,280 random solutions and default settings. Above 0.95 a model is said to have learned next to nothing.
"""

import argparse
import warnings
from collections.abc import Callable

import equinox as eqx
import jax
import numpy as np
from puck import SENSORS, Puck

from vqelites import AskTell
from vqelites.tasks import AbstractTask, PlanarArm

COUNT = 1280


def seen(task: AbstractTask) -> np.ndarray:
    """What random solutions of a task do."""
    solutions, keys = (jax.random.split(jax.random.key(seed), COUNT) for seed in (0, 1))
    return np.asarray(eqx.filter_jit(task.evaluate)(keys, jax.vmap(task.space.random)(solutions)).behavior)


def noise(numbers: int) -> np.ndarray:
    """Nothing but noise."""
    return np.random.default_rng(0).normal(size=(COUNT, numbers))


def squares() -> np.ndarray:
    """A place among 81, as in a game on a board: one of 81 numbers is 1."""
    return np.eye(81)[np.random.default_rng(0).integers(81, size=COUNT)]


BEHAVIORS: dict[str, Callable[[], np.ndarray]] = {
    "planar-arm": lambda: seen(PlanarArm(behavior="joints")),
    "squares": squares,
    **{name: lambda sensor=sensor: seen(Puck(sensor)) for name, sensor in SENSORS.items()},
    **{f"noise-{numbers}": lambda numbers=numbers: noise(numbers) for numbers in (4, 16, 50, 200)},
}


def unexplained(algorithm: str, behavior: np.ndarray) -> float:
    """The share of the variance, from 0 to 1 or more."""
    qd = AskTell(algorithm, solution_dim=1, behavior_shape=behavior.shape[1:])
    qd.ask(COUNT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return qd.tell(np.zeros(COUNT), behavior).unexplained


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--behaviors", nargs="+", default=list(BEHAVIORS), choices=list(BEHAVIORS), metavar="NAME")
    parser.add_argument("--algorithms", nargs="+", default=["vq-elites", "aurora", "aurora-plus"], metavar="NAME")
    asked = parser.parse_args()
    for name in asked.behaviors:
        behavior = BEHAVIORS[name]()
        found = ", ".join(f"{kind} {unexplained(kind, behavior):.3f}" for kind in asked.algorithms)
        print(f"{name:18} {found}", flush=True)


if __name__ == "__main__":
    main()
