"""Coverage of VQ-Elites with one part of its map switched off at a time, on two tasks and three sensors.

    python benchmarks/ablation.py [--on NAME ...] [--seeds SEED ...]

docs/choices.md says what each part is for, and has the table.
"""

import argparse
import time
from collections.abc import Sequence

import jax
import numpy as np
from puck import SENSORS
from sensors import vq_elites
from tasks import final

PARTS = {
    "all parts": [],
    "standardised views": ["model.standardise=False"],
    "averaged loss": ["model.reduction=sum"],
    "blur": ["model.blur=0"],
    "start from principal components": ["model.principal=False"],
    "equal stretch": ["stretch=0"],
    "equal cells": ["equal_cells=0"],
    "even training": ["even=False"],
    "elites as training data": ["data.archive=0"],
    "equal behaviors count once": ["data.distinct=False"],
    "fringe": ["fringe=False"],
    "rest in the last tenth": ["frozen=0"],
    "learning rate that decays": ["model.final_rate=1.0"],
}
TASKS = ("planar-arm", "arm")
SEEN = ("vector", "series", "black-on-white")


def coverage(name: str, seeds: Sequence[int], overrides: list[str]) -> np.ndarray:
    """Of a task in quick size, or through a sensor, for each seed."""
    if name in SENSORS:
        return vq_elites(SENSORS[name], tuple(seeds), overrides=overrides).coverage
    return final(name, "quick", list(seeds), overrides)["coverage"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", nargs="+", default=[*SEEN, *TASKS], choices=[*SENSORS, *TASKS], metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="SEED")
    asked = parser.parse_args()
    for name in asked.on:
        for part, overrides in PARTS.items():
            start = time.monotonic()
            found = " ".join(f"{value:.3f}" for value in coverage(name, asked.seeds, overrides))
            without = part if not overrides else f"without {part}"
            print(f"{name}, {without}: {found} ({time.monotonic() - start:.0f} s)", flush=True)
            jax.clear_caches()


if __name__ == "__main__":
    main()
