"""The pictures of a report, each from the tables or the run folders of a study."""

from collections.abc import Iterator, Mapping

import jax.numpy as jnp
import numpy as np

from vqelites import metrics, plots
from vqelites.frames import ArchiveFrame
from vqelites.plots.spread import spread
from vqelites.plots.style import fitness_scale, label, misses, new_figure
from vqelites.runs.run import Run
from vqelites.studies.document import Gallery, Picture
from vqelites.studies.finals import headline, projected, score
from vqelites.studies.load import StudyData
from vqelites.studies.study import Key, slug
from vqelites.tasks.base import Task
from vqelites.types import Bins
from vqelites.words import counted, listed

_POINTS = 601  # of a line at most: more cannot be seen
_CODES = 10  # decoded in the picture of the codebook
_SHOWN = 12  # elites at work
_GALLERY = 24  # elites with their behavior
# By the number of descriptors, how they are drawn, in words.
_CODEBOOK = {1: "the codebook (lines)", 2: "the cells of the codebook"}
_SPACE = {1: "against their fitness", 2: "in two dimensions"}
_SEEDS = 8  # in the picture of the codebook's movement: as many lines as can be told apart


def curves(data: StudyData, name: str, title: str, gallery: Gallery) -> Picture:
    """Metrics over the iterations, for all that was compared."""
    last = data.curves["iteration"].max()
    shown = np.unique(np.linspace(0, last, min(_POINTS, last + 1)).round())
    compared = headline(data.results)
    few = data.curves[data.curves["iteration"].isin(shown)]
    figure = plots.algorithm_curves(few, compared, title, columns=2 if len(compared) == 4 else 3)
    seeds = data.results.groupby("algorithm").size()
    count = f"{seeds.min()}" if seeds.nunique() == 1 else f"{seeds.min()} to {seeds.max()}"
    named = ", ".join(label(metric) for metric in compared)
    lines = f"medians over {count} seeds, bands the middle half" if seeds.max() > 1 else "single runs"
    text = f"{title}: {named} over the iterations. Lines are {lines}."
    return gallery.add(f"{name}-curves", figure, text)


def typical(data: StudyData) -> dict[str, Key]:
    """Of every algorithm the run whose final PQD (or QD score, where no bins tell it) is the median.

    Of an even number it is the lower of the two.
    """
    chosen = {}
    for algorithm, rows in data.results.groupby("algorithm", sort=False):
        row = rows.sort_values([score(data.results), "seed"]).iloc[(len(rows) - 1) // 2]
        chosen[str(algorithm)] = Key(*(row[name] for name in Key._fields))
    return chosen


def _median_run(data: StudyData) -> str:
    """In words, which run of an algorithm is shown; nothing if there is one of each."""
    several = data.results.groupby("algorithm").size().max() > 1
    return f"the run with the median {label(score(data.results))}" if several else ""


def can_draw(task: Task) -> bool:
    """Whether the task draws its world; a drawing of the user's own may fail, above all without any solution."""
    if not task.drawable:
        return False
    try:
        task.draw(new_figure(1, 1).add_subplot(projection=task.chart.projection), jnp.zeros((0, task.space.dim)))
    except Exception:
        return False
    return True


def archives(data: StudyData, name: str, title: str, gallery: Gallery) -> Iterator[Picture]:
    """Where elites are: on the task's map and grids if they have a place there, among their descriptors otherwise."""
    runs = {algorithm: data.run(key) for algorithm, key in typical(data).items()}
    frames = {algorithm: run.archive for algorithm, run in runs.items() if len(run.archive)}
    if not frames:
        return
    task = data.tasks[next(iter(data.runs)).task]
    drawn = can_draw(task)
    codes = {algorithm: runs[algorithm].codebooks[-1].codes for algorithm in frames if runs[algorithm].codebooks}
    shown = _median_run(data)
    which = f" Of every algorithm {shown} is shown." if shown else ""
    flat = len(task.truth_low) == 2
    if flat:
        figure = plots.archive_views(task, frames, codes, title, world=drawn)
        text = "best fitness in a coarse grid over the true space, " if task.bins is not None else ""
        text += "where elites truly end, and their descriptors"
        yield gallery.add(f"{name}-archives", figure, f"{title}. From left to right: {text}.{which}")
        if task.bins is not None:
            yield from _grid(task, task.bins, frames, name, title, which, gallery)
    else:
        yield from _latent(task, frames, codes, name, title, which, gallery)
    yield _behaviors(task, frames, name, title, gallery)
    if drawn and not flat:
        yield _at_work(task, frames, name, title, gallery)


def _grid(
    task: Task,
    bins: Bins,
    frames: Mapping[str, ArchiveFrame],
    name: str,
    title: str,
    which: str,
    gallery: Gallery,
) -> Iterator[Picture]:
    """The grid that metrics are computed on, if it is one."""
    centres = np.asarray(bins.centres)
    shape = len(np.unique(centres[:, 0])), len(np.unique(centres[:, 1]))
    if shape[0] * shape[1] != len(centres):
        return
    grids = {algorithm: projected(frame, bins).best.reshape(shape) for algorithm, frame in frames.items()}
    figure = plots.elite_grids(task, grids, np.asarray(bins.reachable).reshape(shape), title, columns=2)
    text = (
        f"{title}. Best fitness in every bin of the {shape[0]}x{shape[1]} grid that metrics are computed on; white: no "
    )
    text += "elite." if np.asarray(bins.reachable).all() else "elite, hatched: out of reach."
    yield gallery.add(f"{name}-grid", figure, text + which)


def _latent(
    task: Task,
    frames: Mapping[str, ArchiveFrame],
    codes: Mapping[str, np.ndarray],
    name: str,
    title: str,
    which: str,
    gallery: Gallery,
) -> Iterator[Picture]:
    scale = fitness_scale([frame.fitness for frame in frames.values()])
    for algorithm, frame in frames.items():
        figure = plots.latent_cells(
            frame.descriptors, frame.fitness, codes.get(algorithm), f"{title}: {algorithm}", task.near_goal, scale
        )
        d = frame.descriptors.shape[1]
        text = f"{title}: descriptors of {counted(len(frame), 'elite')} of {algorithm}"
        text += f" and {_CODEBOOK.get(d, 'the codebook (crosses)')}" * (algorithm in codes)
        text += f", {_SPACE.get(d, 'in the plane in which they vary most')}."
        text += f"{_missed('Hollow', frame.fitness, task)}{which}"
        yield gallery.add(f"{name}-descriptors-{slug(algorithm)}", figure, text)


def _chosen(frames: Mapping[str, ArchiveFrame]) -> str:
    """The algorithm of which elites are shown at work."""
    return "vq-elites" if "vq-elites" in frames else next(iter(frames))


def _at_work(task: Task, frames: Mapping[str, ArchiveFrame], name: str, title: str, gallery: Gallery) -> Picture:
    """Diverse elites of one algorithm near the goal; of all its elites if hardly any are, or if there is no goal."""
    algorithm = _chosen(frames)
    frame = frames[algorithm]
    near = np.flatnonzero(frame.fitness >= (np.inf if task.near_goal is None else task.near_goal))
    rows, which = (near, " near the goal") if len(near) >= _SHOWN else (np.arange(len(frame)), "")
    rows = rows[spread(_places(frame)[rows], _SHOWN)]
    figure = plots.at_work(task, jnp.asarray(frame.solutions[rows]), f"{title}: {algorithm}")
    text = f"{title}: the task, and {counted(len(rows), 'diverse elite')}{which}."
    return gallery.add(f"{name}-at-work", figure, text + _missed("Dotted", frame.fitness[rows], task))


def _missed(look: str, fitness: np.ndarray, task: Task) -> str:
    """A sentence on the elites that miss the goal and how they look, where there is a goal."""
    count = int(misses(fitness, task.near_goal).sum())
    return f" {look}: {count} of {len(fitness)}, which miss the goal." if count else ""


def _behaviors(task: Task, frames: Mapping[str, ArchiveFrame], name: str, title: str, gallery: Gallery) -> Picture:
    """What elites of one algorithm, spread over its map, did."""
    algorithm = _chosen(frames)
    frame = frames[algorithm]
    rows = spread(frame.descriptors, _GALLERY)
    fitness = frame.fitness[rows]
    figure = plots.behavior_gallery(frame.behavior[rows], fitness, f"{title}: {algorithm}", task.near_goal)
    text = f"{title}: raw behavior of {counted(len(rows), 'elite')} of {algorithm}, spread over its map."
    text += _missed("Grey", fitness, task)
    return gallery.add(f"{name}-behaviors", figure, text)


def _places(frame: ArchiveFrame) -> np.ndarray:
    """Where elites (n, t) are, to tell how diverse they are: what they truly did or, where unknown, descriptors."""
    return frame.truth if frame.truth.shape[1] else frame.descriptors


def codebook(data: StudyData, name: str, title: str, gallery: Gallery) -> Iterator[Picture]:
    """What codes decode to as the run goes on, and how fast they move."""
    learned = {key: data.run(key) for key in data.runs if key.algorithm == "vq-elites"}
    if not learned:
        return
    key = typical(data)["vq-elites"]
    yield from _decoded(learned[key], name, title, _median_run(data), gallery)
    drifts = {}
    for other, run in list(learned.items())[:_SEEDS]:
        books = run.codebooks
        if len(books) >= 2:
            stacked = np.stack([book.codes for book in books])
            drifts[f"seed {other.seed}"] = metrics.codebook_drift([book.iteration for book in books], stacked)
    if drifts:
        text = f"{title}: how far codes move per iteration between snapshots"
        if len(learned) > 1:
            every = f"all {len(learned)} seeds"
            text += f", for {every if len(drifts) == len(learned) else f'{len(drifts)} of {len(learned)} seeds'}"
        yield gallery.add(f"{name}-drift", plots.drift_curves(drifts, f"{title}: codebook drift"), f"{text}.")


def _decoded(run: Run, name: str, title: str, which: str, gallery: Gallery) -> Iterator[Picture]:
    books = run.codebooks
    if not books:
        return
    chosen = [int(code) for code in spread(books[-1].codes, _CODES)]
    figure = plots.decoded_codes({book.iteration: book.decoded for book in books}, chosen, f"{title}: decoded codes")
    moments = listed([str(book.iteration) for book in books])
    text = f"{title}: behavior that {len(chosen)} codes, spread over the final codebook, stand for after iterations "
    yield gallery.add(f"{name}-decoded", figure, f"{text}{moments}{f', in {which}' * bool(which)}.")
