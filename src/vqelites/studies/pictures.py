"""The pictures of a report, each from the tables or the run folders of a study."""

from collections.abc import Iterator, Mapping

import jax.numpy as jnp
import numpy as np

from vqelites import metrics, plots
from vqelites.frames import ArchiveFrame
from vqelites.plots.spread import spread
from vqelites.plots.style import label
from vqelites.runs.run import Run
from vqelites.runs.taskfiles import make_task
from vqelites.studies.document import Gallery, Picture
from vqelites.studies.finals import projected
from vqelites.studies.load import StudyData
from vqelites.studies.study import Key, slug
from vqelites.tasks.base import Task

CURVES = ("coverage", "pqd", "edr", "cds")
_POINTS = 601  # of a line at most: more cannot be seen
_CODES = 10  # decoded in the picture of the codebook
_SHOWN = 12  # elites at work
_SEEDS = 8  # in the picture of the codebook's movement: as many lines as can be told apart
_WHICH = "Of every algorithm the run with the median PQD is shown."


def curves(data: StudyData, name: str, title: str, gallery: Gallery) -> Picture:
    """Metrics over the iterations, for all that was compared."""
    last = data.curves["iteration"].max()
    shown = np.unique(np.linspace(0, last, min(_POINTS, last + 1)).round())
    figure = plots.algorithm_curves(data.curves[data.curves["iteration"].isin(shown)], CURVES, title, columns=2)
    seeds = data.results.groupby("algorithm").size()
    count = f"{seeds.min()}" if seeds.nunique() == 1 else f"{seeds.min()} to {seeds.max()}"
    named = ", ".join(label(metric) for metric in CURVES)
    text = f"{title}: {named} over the iterations. Lines are medians over {count} seeds, bands the middle half."
    return gallery.add(f"{name}-curves", figure, text)


def typical(data: StudyData) -> dict[str, Key]:
    """Of every algorithm the run whose final PQD is the median (of an even number, the lower of the two)."""
    chosen = {}
    for algorithm, rows in data.results.groupby("algorithm", sort=False):
        row = rows.sort_values(["pqd", "seed"]).iloc[(len(rows) - 1) // 2]
        chosen[str(algorithm)] = Key(*(row[name] for name in Key._fields))
    return chosen


def archives(data: StudyData, name: str, title: str, gallery: Gallery) -> Iterator[Picture]:
    """Where elites are: on the task's map and grids if they have a place there, among their descriptors otherwise."""
    runs = {algorithm: data.run(key) for algorithm, key in typical(data).items()}
    frames = {algorithm: run.archive for algorithm, run in runs.items() if len(run.archive)}
    if not frames:
        return
    task = make_task(next(iter(data.runs)).task)
    codes = {algorithm: runs[algorithm].codebooks[-1].codes for algorithm in frames if runs[algorithm].codebooks}
    if len(task.truth_low) == 2:
        figure = plots.archive_views(task, frames, codes, title)
        text = "best fitness in an 8x8 grid over the true space, where elites truly end, and their descriptors"
        yield gallery.add(f"{name}-archives", figure, f"{title}. From left to right: {text}. {_WHICH}")
        yield from _grid(task, frames, name, title, gallery)
    else:
        yield from _latent(frames, codes, name, title, gallery)
        yield _at_work(task, frames, name, title, gallery)


def _grid(task: Task, frames: Mapping[str, ArchiveFrame], name: str, title: str, gallery: Gallery) -> Iterator[Picture]:
    """The grid that metrics are computed on, if it is one."""
    centres = np.asarray(task.bins.centres)
    shape = len(np.unique(centres[:, 0])), len(np.unique(centres[:, 1]))
    if shape[0] * shape[1] != len(centres):
        return
    grids = {algorithm: projected(frame, task.bins).best.reshape(shape) for algorithm, frame in frames.items()}
    figure = plots.elite_grids(task, grids, np.asarray(task.bins.reachable).reshape(shape), title, columns=2)
    text = f"{title}. Best fitness in every bin of the {shape[0]}x{shape[1]} grid that metrics are computed on; white: "
    yield gallery.add(f"{name}-grid", figure, f"{text}no elite, hatched: out of reach. {_WHICH}")


def _latent(
    frames: Mapping[str, ArchiveFrame], codes: Mapping[str, np.ndarray], name: str, title: str, gallery: Gallery
) -> Iterator[Picture]:
    for algorithm, frame in frames.items():
        figure = plots.latent_cells(frame.descriptors, frame.fitness, codes.get(algorithm), f"{title}: {algorithm}")
        text = f"{title}: descriptors of {len(frame)} elites of {algorithm}"
        text += " and the codebook (crosses)" if algorithm in codes else ""
        text += ", in two dimensions." if frame.descriptors.shape[1] == 2 else ", in the plane in which they vary most."
        yield gallery.add(f"{name}-descriptors-{slug(algorithm)}", figure, f"{text} The run with the median PQD.")


def _at_work(task: Task, frames: Mapping[str, ArchiveFrame], name: str, title: str, gallery: Gallery) -> Picture:
    """Diverse elites of one algorithm near the goal; of all its elites if hardly any are, or if there is no goal."""
    algorithm = "vq-elites" if "vq-elites" in frames else next(iter(frames))
    frame = frames[algorithm]
    near = np.flatnonzero(frame.fitness >= (np.inf if task.near_goal is None else task.near_goal))
    rows, which = (near, "near the goal") if len(near) >= _SHOWN else (np.arange(len(frame)), "of all")
    rows = rows[spread(frame.truth[rows], _SHOWN)]
    figure = plots.at_work(task, jnp.asarray(frame.solutions[rows]), f"{title}: {algorithm}")
    return gallery.add(f"{name}-at-work", figure, f"{title}: the task, and {len(rows)} diverse elites {which}.")


def codebook(data: StudyData, name: str, title: str, gallery: Gallery) -> Iterator[Picture]:
    """What codes decode to as the run goes on, and how fast they move."""
    learned = {key: data.run(key) for key in data.runs if key.algorithm == "vq-elites"}
    if not learned:
        return
    key = typical(data)["vq-elites"]
    yield from _decoded(learned[key], name, title, gallery)
    drifts = {}
    for other, run in list(learned.items())[:_SEEDS]:
        books = run.codebooks
        if len(books) >= 2:
            stacked = np.stack([book.codes for book in books])
            drifts[f"seed {other.seed}"] = metrics.codebook_drift([book.iteration for book in books], stacked)
    if drifts:
        text = f"{title}: how far codes move per iteration between snapshots"
        text += f", for the first {_SEEDS} of {len(learned)} seeds." if len(learned) > _SEEDS else ", for every seed."
        yield gallery.add(f"{name}-drift", plots.drift_curves(drifts, f"{title}: codebook drift"), text)


def _decoded(run: Run, name: str, title: str, gallery: Gallery) -> Iterator[Picture]:
    books = run.codebooks
    if not books:
        return
    chosen = [int(code) for code in spread(books[-1].codes, _CODES)]
    figure = plots.decoded_codes({book.iteration: book.decoded for book in books}, chosen, f"{title}: decoded codes")
    moments = ", ".join(str(book.iteration) for book in books)
    text = f"{title}: behavior that {len(chosen)} codes, spread over the final codebook, stand for after iterations "
    yield gallery.add(f"{name}-decoded", figure, f"{text}{moments}. The run with the median PQD.")
