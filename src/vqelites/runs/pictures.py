"""The pictures of one run, drawn at its end into its figures folder."""

from pathlib import Path

import jax.numpy as jnp
from matplotlib.figure import Figure

from vqelites import plots
from vqelites.plots.style import new_figure
from vqelites.runs.run import Run

_SHOWN = 12  # elites at work, and codes decoded
_CURVES = ("coverage", "pqd", "size", "loss")


def draw(run: Run) -> list[Path]:
    """Draw and write all pictures that make sense for this run."""
    run.folder.figures.mkdir(exist_ok=True)
    return [plots.save(figure, run.folder.figures / f"{name}.png") for name, figure in figures(run).items()]


def figures(run: Run) -> dict[str, Figure]:
    """Curves, elites where they truly are (2-D truth), learned descriptors, decoded codes, and some elites at work."""
    archive, task, title = run.archive, run.task, f"{run.config.named}, seed {run.seed}"
    table = run.metrics.ffill()
    curves = {name: table[name].to_numpy() for name in _CURVES if table[name].notna().any()}
    made = {"curves": plots.metric_curves(table["iteration"].to_numpy(), curves, title)}
    if not len(archive):
        return made
    if archive.truth.shape[1] == 2:
        made["archive"] = plots.true_space(archive.truth, archive.fitness, task.truth_low, task.truth_high, title)
    if run.codebooks:
        last = run.codebooks[-1].codes
        made["latent"] = plots.latent_cells(archive.descriptors, archive.fitness, last, title)
        decoded = {book.iteration: book.decoded for book in run.codebooks}
        made["codes"] = plots.decoded_codes(decoded, plots.spread(last, _SHOWN).tolist(), title)
    made["elites"] = _at_work(run, title)
    return made


def _at_work(run: Run, title: str) -> Figure:
    """Elites as different as possible, in the task's own drawing."""
    solutions = jnp.asarray(run.archive.solutions[plots.spread(run.archive.truth, _SHOWN)])
    figure = new_figure(5.2, 4.9)
    axes = figure.add_subplot(projection=run.task.chart.projection)
    run.task.draw(axes, solutions)
    axes.set_title(title)
    return figure
