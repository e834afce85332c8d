"""The final metrics of each run: those of its last iteration, and those computed from its archive."""

from collections.abc import Mapping

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jaxtyping import Array, Float

from vqelites import metrics
from vqelites.experiments.config import AuroraSettings, VQElitesSettings
from vqelites.frames import ArchiveFrame
from vqelites.metrics import Projection
from vqelites.runs.folder import RunFolder
from vqelites.runs.run import Codebook, Run
from vqelites.studies.study import Key
from vqelites.tasks.base import Task
from vqelites.types import Bins, Elites

_ANY = float(np.finfo(np.float32).min)
# Every metric that algorithms are compared in, in the order of the tables.
METRICS = (
    "coverage", "coverage_near_goal", "pqd", "edr", "cds", "size", "max_fitness", "qd_score", "entropy", "coverage_auc",
    "pqd_auc", "edr_common", "codes_used", "perplexity",
)  # fmt: skip
_LAST = ("size", "coverage", "edr", "cds", "max_fitness", "entropy", "codes_used", "perplexity", "evaluations")
_SUMS = ("qd_score", "pqd")  # of fitness
JUDGED = ("coverage", "pqd", "edr", "cds")  # what algorithms are compared in above all
UNJUDGED = ("qd_score", "size", "max_fitness")  # the same where no bins tell what elites truly did


def headline(results: pd.DataFrame) -> tuple[str, ...]:
    """The main metrics in which runs on one task are compared."""
    return UNJUDGED if results["coverage"].isna().all() else JUDGED


def score(results: pd.DataFrame) -> str:
    """The one metric by which runs on this task are ranked."""
    return "qd_score" if results["pqd"].isna().all() else "pqd"


def tables(runs: Mapping[Key, RunFolder], tasks: Mapping[str, Task]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Curves and results of finished runs; `edr_common` is the EDR at the smallest archive of the same comparison.

    Sums count fitness from `lowest`, that of the least fit elite of the comparison, if it is negative: sums of negative
    numbers would favour small archives.
    """
    curves, rows, projections = [], [], []
    for key, folder in runs.items():
        run, task = Run(folder), tasks[key.task]
        curves.append(run.metrics.assign(**key._asdict()))
        projections.append(None if task.bins is None else projected(run.archive, task.bins))
        rows.append({**key._asdict(), **_final(run, task), "lowest": float(run.archive.fitness.min())})
    results = pd.DataFrame(rows)
    compared = results.groupby(["family", "preset", "task"])
    results["lowest"] = compared["lowest"].transform("min").clip(upper=0)
    found = zip(curves, runs, results["lowest"], strict=True)
    curves = [_from_lowest(curve, tasks[key.task].bins, lowest) for curve, key, lowest in found]
    for name in _SUMS:
        results[name] = [float(curve[name].ffill().iloc[-1]) for curve in curves]
    results["pqd_auc"] = [metrics.area_under_curve(curve["iteration"], curve["pqd"]) for curve in curves]
    common = compared["size"].transform("min").astype(int)
    pairs = zip(projections, common, strict=True)
    results["edr_common"] = [
        np.nan if found is None or not size else metrics.edr_at(found, size) for found, size in pairs
    ]
    results["common_size"] = common
    return pd.concat(curves, ignore_index=True), results


def _from_lowest(curve: pd.DataFrame, bins: Bins | None, lowest: float) -> pd.DataFrame:
    """The metrics of a run with its sums counted from this fitness."""
    occupied = np.nan if bins is None else curve["coverage"] * int(bins.reachable.sum())
    return curve.assign(qd_score=curve["qd_score"] - lowest * curve["size"], pqd=curve["pqd"] - lowest * occupied)


def projected(archive: ArchiveFrame, bins: Bins, fitness: float = _ANY) -> Projection:
    """Elites with this fitness or more in the bins of a task."""
    # Rows that are not there, rather than fewer rows: archives of nearly the same size then share a compiled program.
    room = -len(archive) % 256
    truth = np.pad(archive.truth, ((0, room), (0, 0)))
    elites = metrics.outcomes(truth, np.pad(archive.fitness, (0, room), constant_values=-np.inf))
    return _project(bins, elites, jnp.float32(fitness))


@eqx.filter_jit
def _project(bins: Bins, elites: Elites, fitness: Float[Array, ""]) -> Projection:
    return metrics.project(bins, metrics.at_least(elites, fitness))


def _final(run: Run, task: Task) -> dict[str, float]:
    """One row of the results."""
    table = run.metrics
    last = table.ffill().iloc[-1]
    row = {name: float(last[name]) for name in _LAST}
    row["coverage_auc"] = metrics.area_under_curve(table["iteration"], table["coverage"])
    row["coverage_near_goal"] = np.nan
    if task.near_goal is not None and task.bins is not None:
        row["coverage_near_goal"] = float(metrics.coverage(projected(run.archive, task.bins, task.near_goal)))
    chosen = run.config.settings
    row["cooperate"] = chosen.cooperate if isinstance(chosen, VQElitesSettings | AuroraSettings) else 0.0
    row |= {"iterations": run.folder.iterations, "seconds": float(last["seconds"]), "rejected": run.rejected}
    return row | _settling(run.codebooks)


def _settling(books: list[Codebook]) -> dict[str, float]:
    """How fast codes moved between the first two and the last two snapshots, and how sharp decoded images were."""
    row = dict.fromkeys(("drift_first", "drift_last", "sharpness_first", "sharpness_last"), np.nan)
    if len(books) >= 3:
        drift = metrics.codebook_drift([book.iteration for book in books], np.stack([book.codes for book in books]))
        row |= {"drift_first": drift["mean"].iloc[0], "drift_last": drift["mean"].iloc[-1]}
    if len(books) >= 2 and books[0].decoded.ndim == 4:
        row |= {"sharpness_first": sharpness(books[0].decoded), "sharpness_last": sharpness(books[-1].decoded)}
    return row


def sharpness(images: np.ndarray) -> float:
    """How much neighbouring pixels of images (n, h, w, c) differ on average: blurred pictures have little of it."""
    down, right = np.diff(images, axis=1), np.diff(images, axis=2)
    return float(np.sqrt((down**2).mean() + (right**2).mean()))
