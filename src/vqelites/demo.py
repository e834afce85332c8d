"""The demo: VQ-Elites on the planar arm, with a progress bar, pictures and a report. Run by `make demo`."""

import argparse
import base64
import functools
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from vqelites import plots
from vqelites.algorithms import Effort, vq_elites
from vqelites.descriptors import VQVAE
from vqelites.drive import Compiled
from vqelites.frames import ArchiveFrame
from vqelites.loop import State
from vqelites.metrics import measure
from vqelites.tasks import PlanarArm

CELLS, CHUNK = 900, 20

_REPORT = """<!doctype html><meta charset="utf-8"><title>VQ-Elites on the planar arm</title>
<style>body{{font-family:sans-serif;max-width:60em;margin:2em auto;color:#222}}img{{max-width:100%}}
td,th{{padding:.2em 1em;text-align:right}}</style>
<h1>VQ-Elites on the planar arm</h1>
<p>{iterations} iterations, {evaluations} evaluations, seed {seed}, {seconds:.0f} s. The algorithm saw
where the 8 joints of an arm were, as 16 nameless numbers, and a fitness. That diversity means "the tip of the arm is
somewhere else" it was never told; tips are used only to draw and to measure, here.</p>
<table><tr>{names}</tr><tr>{values}</tr></table>
{pictures}
"""


def main() -> None:
    """Run the demo from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for pictures and report")
    parser.add_argument("--iterations", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.iterations < CHUNK or options.iterations % CHUNK:
        parser.error(f"--iterations must be a multiple of {CHUNK}, not {options.iterations}")
    options.out.mkdir(parents=True, exist_ok=True)

    start = time.monotonic()
    task = PlanarArm(behavior="joints")
    state, history = run(task, options.iterations, options.seed)
    paths = draw(task, state, history, options.out)
    report(options.out / "report.html", paths, history, options.seed, time.monotonic() - start)
    Console().print(f"Pictures and report.html are in {options.out}/")


def run(task: PlanarArm, iterations: int, seed: int) -> tuple[State, dict[str, np.ndarray]]:
    """The final state and the metrics of every iteration."""
    qd = vq_elites(task, VQVAE(task.behavior_shape, 2, CELLS), effort=Effort(iterations))
    runs = Compiled(qd, task, functools.partial(measure, task.bins))
    rows: list[dict[str, np.ndarray]] = []
    columns = (
        "[bold]{task.description}", BarColumn(), "{task.completed:.0f}/{task.total:.0f}", "{task.fields[status]}",
        TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*(TextColumn(c) if isinstance(c, str) else c for c in columns)) as progress:
        bar = progress.add_task("compiling, bootstrap", total=iterations, status="")
        state, _ = runs.begin(jnp.array([seed]))
        for first in range(0, iterations, CHUNK):
            began = time.monotonic()
            state, info = runs.advance(state, first, CHUNK)
            rows.append({name: np.asarray(values)[0] for name, values in info.measures.items()})
            last = {name: values[-1] for name, values in rows[-1].items()}
            status = (
                f"coverage {last['coverage']:.2f}  PQD {last['pqd']:.0f}  codes in use {last['size']}/{CELLS}  "
                f"{CHUNK / (time.monotonic() - began):.0f} it/s"
            )
            progress.update(bar, description="VQ-Elites", completed=first + CHUNK, status=status)
    history = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
    return jax.tree.map(lambda x: x[0], state), history


def draw(task: PlanarArm, state: State, history: dict[str, np.ndarray], folder: Path) -> list[Path]:
    """The pictures: archive in true space, latent space with its cells, metric curves."""
    archive = ArchiveFrame.of(state.archive.elites)
    figures = {
        "archive.png": plots.true_space(
            archive.truth, archive.fitness, task.truth_low, task.truth_high, "where the tips of the arms are"
        ),
        "latent.png": plots.latent_cells(
            archive.descriptors, archive.fitness, np.asarray(state.archive.cells), "learned descriptors and cells"
        ),
        "curves.png": plots.metric_curves(
            np.arange(1, len(history["pqd"]) + 1),
            {"coverage": history["coverage"], "PQD": history["pqd"], "codes in use": history["size"]},
            "VQ-Elites on the planar arm",
        ),
    }
    return [plots.save(figure, folder / name) for name, figure in figures.items()]


def report(path: Path, pictures: list[Path], history: dict[str, np.ndarray], seed: int, seconds: float) -> None:
    """One HTML file that holds everything, pictures included."""
    final = {name: values[-1] for name, values in history.items()}
    images = (base64.b64encode(picture.read_bytes()).decode() for picture in pictures)
    path.write_text(
        _REPORT.format(
            iterations=len(history["pqd"]),
            evaluations=len(history["pqd"]) * 128,
            seed=seed,
            seconds=seconds,
            names="".join(f"<th>{name}</th>" for name in final),
            values="".join(f"<td>{value:.4g}</td>" for value in final.values()),
            pictures="\n".join(f'<p><img alt="" src="data:image/png;base64,{image}"></p>' for image in images),
        )
    )


if __name__ == "__main__":
    main()
