"""Coverage of VQ-Elites through many sensors, next to CVT-MAP-Elites given the truth.

    python benchmarks/sensors.py [--sensors NAME ...] [--seeds SEED ...] [--override FIELD=VALUE ...]

One simulator (`puck.py`), default settings in small. The worst seed counts, as a share of what CVT-MAP-Elites covers in
the median with the same cells and evaluations. `--override model.blur=0.1` tries another setting of VQ-Elites.
"""

import argparse
import ast
import functools
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int
from puck import SENSORS, Motion, Puck, Sensor

from vqelites.drive import Compiled
from vqelites.experiments.build import build
from vqelites.experiments.config import Search, Settings
from vqelites.experiments.presets import settings
from vqelites.loop import QD, State
from vqelites.metrics import measure
from vqelites.tessellation import grid, nearest

COLUMNS = ("coverage", "worst", "of CVT", "target", "", "codes used", "elites", "seconds")


@dataclass(frozen=True)
class Size:
    """How large a run is."""

    cells: int
    iterations: int
    batch_size: int
    bootstrap: int

    def search(self, default: Search) -> Search:
        """The default search with this many evaluations."""
        return replace(default, iterations=self.iterations, batch_size=self.batch_size, bootstrap=self.bootstrap)


FULL = Size(cells=300, iterations=40, batch_size=128, bootstrap=1280)


@dataclass(frozen=True)
class Result:
    """How runs ended, one number per seed."""

    coverage: np.ndarray
    elites: np.ndarray
    codes: np.ndarray  # cells that an even spread of places falls into


@functools.cache
def cvt_map_elites(seeds: tuple[int, ...], size: Size = FULL) -> Result:
    """CVT-MAP-Elites, which is given the truth and so does the same through every sensor."""
    default: Any = settings("sensors", "cvt-map-elites", "paper")
    return _run(SENSORS["vector"], replace(default, search=size.search(default.search), cells=size.cells), seeds)


def vq_elites(sensor: Sensor, seeds: tuple[int, ...], size: Size = FULL, overrides: Sequence[str] = ()) -> Result:
    """VQ-Elites with its defaults, but for overrides such as "model.blur=0.1"."""
    default: Any = settings("sensors", "vq-elites", "paper")
    chosen = replace(
        default,
        search=size.search(default.search),
        model=replace(default.model, latent_dim=2),
        cells=size.cells,
    )
    return _run(sensor, functools.reduce(override, overrides, chosen), seeds)


def override(record: Any, assignment: str) -> Any:
    """The settings with one field changed: "epochs=20", "model.blur=0.1", "model.loss=squared"."""
    path, is_given, text = assignment.partition("=")
    name, _, inner = path.partition(".")
    known = [field.name for field in fields(record)]
    if not is_given or name not in known:
        raise ValueError(
            f"Expected FIELD=VALUE with a field of {type(record).__name__} ({', '.join(known)}), got {assignment!r}."
        )
    if inner:
        return replace(record, **{name: override(getattr(record, name), f"{inner}={text}")})
    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        value = text  # a name, such as squared
    return replace(record, **{name: value})


def _run(sensor: Sensor, chosen: Settings, seeds: tuple[int, ...]) -> Result:
    task = Puck(sensor)
    run = Compiled(build(task, chosen), task, functools.partial(measure, task.bins))
    state, _ = run.begin(jnp.asarray(seeds))
    state, info = run.advance(state, 0, chosen.search.iterations)
    final = {name: np.asarray(values)[:, -1] for name, values in info.measures.items()}
    return Result(final["coverage"], final["size"], np.asarray(_cells_in_use(run.qd, task, state)))


@eqx.filter_jit
def _cells_in_use(qd: QD, task: Puck, runs: State) -> Int[Array, " runs"]:
    """How many cells of each run are in use if the puck rests everywhere on the table."""
    rest = grid((30, 30), task.truth_low, task.truth_high)
    behavior = task.see(jax.random.split(jax.random.key(0), len(rest)), Motion(rest, twin=jnp.zeros_like(rest)))

    def count(state: State) -> Int[Array, ""]:
        cell = nearest(qd.descriptor.describe(state.descriptor, behavior, rest), state.archive.cells)
        return jnp.zeros(state.archive.cells.shape[0], bool).at[cell].set(True).sum()

    return jax.lax.map(count, runs)


def row(sensor: Sensor, result: Result, reference: float, seconds: float) -> list[str]:
    """What is printed of one sensor."""
    worst = result.coverage.min()
    share = worst / reference
    numbers = " ".join(f"{value:.3f}" for value in result.coverage)
    verdict = "reached" if share >= sensor.target else "missed"
    codes, elites = (" ".join(map(str, values)) for values in (result.codes, result.elites))
    return [numbers, f"{worst:.3f}", f"{share:.2f}", f"{sensor.target:.2f}", verdict, codes, elites, f"{seconds:.0f}"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sensors", nargs="+", default=list(SENSORS), choices=list(SENSORS), metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="SEED")
    parser.add_argument("--override", nargs="+", default=[], metavar="FIELD=VALUE", help="settings of VQ-Elites")
    asked = parser.parse_args()
    seeds = tuple(asked.seeds)
    given = cvt_map_elites(seeds)
    reference = float(np.median(given.coverage))
    numbers = " ".join(f"{value:.3f}" for value in given.coverage)
    print(
        f"{jax.devices()[0].device_kind}; CVT-MAP-Elites given the truth: {numbers}, median {reference:.3f}", flush=True
    )
    rows = {}
    for name in asked.sensors:
        start = time.monotonic()
        result = vq_elites(SENSORS[name], seeds, overrides=asked.override)
        rows[name] = row(SENSORS[name], result, reference, time.monotonic() - start)
        print(f"{name:18}", "; ".join(f"{c} {v}".strip() for c, v in zip(COLUMNS, rows[name], strict=True)), flush=True)
    print("\n| sensor | shape | " + " | ".join(COLUMNS) + " |\n" + "|---" * (len(COLUMNS) + 2) + "|")
    for name, cells in rows.items():
        shape = "x".join(map(str, SENSORS[name].shape))
        print(f"| {name} | {shape} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
