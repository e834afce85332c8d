"""The pictures of one run, drawn at its end into its figures folder."""

from collections.abc import Iterator
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from vqelites import plots
from vqelites.plots.style import new_figure
from vqelites.runs.run import Run
from vqelites.tasks import Task

_SHOWN = 12  # elites at work, and codes decoded
_GALLERY = 24  # elites spread over the map, with their behavior
_CURVES = ("coverage", "pqd", "size", "loss")
_UNJUDGED = ("size", "max_fitness", "qd_score", "codes_used", "perplexity", "loss")  # where no bins tell the coverage


def draw(run: Run, task: Task) -> list[Path]:
    """Draw and write all pictures that make sense for this run of this task."""
    run.folder.figures.mkdir(exist_ok=True)
    # One by one: if the last, a drawing of the user's own, fails, the others are there.
    return [plots.save(figure, run.folder.figures / f"{name}.png") for name, figure in figures(run, task)]


def figures(run: Run, task: Task) -> Iterator[tuple[str, Figure]]:
    """Curves, elites where they truly are (2-D truth), learned descriptors, decoded codes, a gallery of what elites
    spread over the map do and, where the task draws, some of them at work."""
    archive, title = run.archive, f"{run.config.named}, seed {run.seed}"
    yield "curves", _curves(run, title)
    if not len(archive):
        return
    flat = archive.truth.shape[1] == 2
    if flat:
        yield "archive", plots.true_space(archive.truth, archive.fitness, task.truth_low, task.truth_high, title)
    books = run.codebooks
    if not flat or not np.array_equal(archive.descriptors, archive.truth):  # hand-coded ones are shown already
        codes = books[-1].codes if books else None
        yield "latent", plots.latent_cells(archive.descriptors, archive.fitness, codes, title, task.near_goal)
    if books:
        decoded = {book.iteration: book.decoded for book in books}
        yield "codes", plots.decoded_codes(decoded, plots.spread(books[-1].codes, _SHOWN).tolist(), title)
    rows = plots.spread(archive.descriptors, _GALLERY)
    title_of = f"{title}: what elites do"
    yield "gallery", plots.behavior_gallery(archive.behavior[rows], archive.fitness[rows], title_of, task.near_goal)
    if task.drawable:
        rows = plots.spread(archive.truth if archive.truth.shape[1] else archive.descriptors, _SHOWN)
        yield "elites", at_work(task, archive.solutions[rows], title)


def _curves(run: Run, title: str) -> Figure:
    table = run.metrics.ffill()
    names = _CURVES if table["coverage"].notna().any() else _UNJUDGED
    curves = {name: table[name].to_numpy() for name in names if table[name].notna().any()}
    return plots.metric_curves(table["iteration"].to_numpy(), curves, title)


def at_work(task: Task, solutions: np.ndarray, title: str = "") -> Figure:
    """Some solutions (n, s) as the task draws them."""
    figure = new_figure(5.2, 4.9)
    axes = figure.add_subplot(projection=task.chart.projection)
    task.draw(axes, jnp.asarray(solutions))
    axes.set_title(title)
    return figure
