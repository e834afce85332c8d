"""The tables of a report."""

import json
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from vqelites.plots.style import label
from vqelites.runs.records import to_json
from vqelites.statistics import by_task, smallest_p, summarise
from vqelites.studies import evidence
from vqelites.studies.claims import Judged
from vqelites.studies.document import Block, Code, Details, Table
from vqelites.studies.evidence import Evidence
from vqelites.studies.finals import METRICS
from vqelites.studies.load import StudyData
from vqelites.studies.study import COMPARISON
from vqelites.tasks.base import Task
from vqelites.words import counted

_NONE = "–"  # noqa: RUF001
_WHOLE = ("size", "codes_used")
_MEANINGS = {
    "coverage": "share of the reachable bins of the true space that hold an elite",
    "coverage_near_goal": "the same, counting only elites within 5 cm of the goal",
    "pqd": "projected QD score: sum of the best fitness of every bin that holds an elite",
    "edr": "effective diversity ratio: bins with an elite, divided by the number of elites",
    "cds": "coverage diversity score: coverage times EDR",
    "size": "number of elites",
    "max_fitness": "fitness of the best elite",
    "qd_score": "sum of the fitness of all elites; it grows with their number",
    "entropy": "how evenly elites are spread over the reachable bins, from 0 to 1",
    "coverage_auc": "mean coverage over the run: large if much was found early",
    "pqd_auc": "mean PQD over the run: large if quality was found early",
    "edr_common": "EDR with as many elites, drawn at random, as the smallest archive has",
    "codes_used": "codes of the learned codebook that stored behaviors fall into",
    "perplexity": "how many codes are in use, each counted by how much it is used",
}


def meanings(results: pd.DataFrame) -> Details:
    """What the metrics that these runs have say, folded away."""
    known = [metric for metric in METRICS if results[metric].notna().any()]
    lines = tuple((label(metric), _MEANINGS[metric]) for metric in known)
    caption = "The true space is that of the task's hand-coded descriptor, which learned algorithms never see."
    if results["coverage"].isna().all():
        caption = "All of them are of the archive alone: no true descriptor is known."
    if (results["lowest"] < 0).any():
        caption += " Where fitness can be negative, sums count it from that of the least fit elite of all that are "
        caption += "compared: sums of negative numbers would favour small archives."
    return Details("What the metrics mean", (Table(("metric", "meaning"), lines, caption, left=2),))


def answer(found: Evidence, task: str) -> tuple[str, ...]:
    """A line for each of the main metrics: the median of every algorithm, the largest first."""
    rows = found.results[found.results["task"] == task]
    judged = ("coverage", "coverage_near_goal", "pqd")
    sentences = []
    for metric in judged if rows["coverage"].notna().any() else ("qd_score", "size"):
        medians = rows.groupby("algorithm", sort=False)[metric].median().dropna().sort_values(ascending=False)
        if len(medians):
            values = ", ".join(f"{algorithm} {_number(value, metric)}" for algorithm, value in medians.items())
            sentences.append(f"{label(metric)}: {values}")
    return tuple(sentences)


def summary(found: Evidence, task: str) -> Table:
    """Median and quartiles at the end: a row per metric, a column per algorithm."""
    rows = found.results[found.results["task"] == task]
    table = {(row["metric"], row["algorithm"]): row for row in summarise(rows, METRICS).to_dict("records")}
    algorithms = list(rows["algorithm"].unique())
    lines = []
    for metric in METRICS:
        cells = [_spread(table.get((metric, algorithm)), metric) for algorithm in algorithms]
        if set(cells) != {_NONE}:
            lines.append((_name(metric, rows), *cells))
    caption = "At the end of the runs: median over the seeds, and the quartiles in brackets."
    if rows.groupby("algorithm").size().max() == 1:
        caption = "At the end of the runs, one seed each." if len(rows) > 1 else "At the end of the run."
    return Table(("metric", *algorithms), tuple(lines), caption)


def _name(metric: str, rows: pd.DataFrame) -> str:
    if metric == "edr_common":
        return f"EDR at {counted(int(rows['common_size'].iloc[0]), 'elite')}"
    return label(metric)


def _spread(row: Mapping[Hashable, Any] | None, metric: str) -> str:
    if row is None:
        return _NONE
    if row["n"] == 1:
        return _number(row["median"], metric)
    return f"{_number(row['median'], metric)} [{_number(row['low'], metric)}, {_number(row['high'], metric)}]"


def _number(value: float, metric: str = "") -> str:
    if metric in _WHOLE:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 100 else f"{value:#.3g}"


def _known(value: float) -> str:
    return _NONE if np.isnan(value) else _number(value)


def tests(found: Evidence, task: str) -> Details:
    """Every pair of algorithms in every metric."""
    rows = found.compared[found.compared["task"] == task]
    lines = tuple(
        (
            label(row["metric"]), row["first"], row["second"], f"{row['n_first']}, {row['n_second']}",
            *(_number(row[name], row["metric"]) for name in ("median_first", "median_second")), f"{row['u']:g}",
            f"{row['p']:.2g}", f"{row['p_holm']:.2g}", f"{row['effect']:.2f}",
        )
        for row in rows.to_dict("records")
    )  # fmt: skip
    columns = ("metric", "first", "second", "n", "median 1", "median 2", "U", "p", "p (Holm)", "A")
    caption = (
        "Exact two-sided Mann-Whitney U tests, corrected by Holm within each metric; A is the share of pairs of runs "
    )
    caption += f"in which the first is larger (0.5: no difference). {floor(rows)}"
    return Details(f"Pairwise tests on {task}", (Table(columns, lines, caption, left=3),))


def floor(rows: pd.DataFrame) -> str:
    """The smallest p there can be, in words, for every pair of sample sizes that occurs."""
    if rows.empty:
        return "There is nothing to compare."
    pairs = rows.groupby(["task", "metric"])["first"].transform("size")
    sizes = zip(rows["n_first"], rows["n_second"], pairs, strict=True)
    return " ".join(_floor(int(n), int(m), int(count)) for n, m, count in sorted(set(sizes), reverse=True))


def _floor(n: int, m: int, pairs: int) -> str:
    return (
        f"With {n} and {m} seeds the smallest reachable p is {smallest_p(n, m):.2g}; corrected for "
        f"{counted(pairs, 'pair')} it is {min(1.0, pairs * smallest_p(n, m)):.2g}."
    )


def across_tasks(found: Evidence, metric: str) -> Table:
    """Corrected p of every pair, a column per task."""
    table = by_task(found.compared, metric)
    tasks = [str(name) for name in table if name not in ("first", "second")]
    lines = tuple(
        (row["first"], row["second"], *(_NONE if np.isnan(row[task]) else f"{row[task]:.2g}" for task in tasks))
        for row in table.to_dict("records")
    )
    smallest = floor(found.compared[found.compared["metric"] == metric])
    caption = f"Corrected p of the difference in final {label(metric)}. {smallest}"
    return Table(("first", "second", *tasks), lines, caption, left=2)


def policies(found: Evidence | None, tasks: Mapping[str, Task]) -> Table | None:
    """The size of the solutions of each task, and what VQ-Elites reached on it."""
    rows = None if found is None else found.results[found.results["algorithm"] == "vq-elites"]
    if rows is None or rows.empty:
        return None
    sizes = {str(task): tasks[str(task)].space.dim for task in rows["task"].unique()}
    medians = rows.groupby("task")[["coverage", "max_fitness"]].median()
    lines = tuple(
        (task, str(size), *(_known(float(medians.loc[task, name])) for name in ("coverage", "max_fitness")))  # type: ignore[arg-type]
        for task, size in sorted(sizes.items(), key=lambda item: item[1])
    )
    several = "medians " * bool(rows.groupby("task").size().max() > 1)
    caption = f"VQ-Elites, {several}at the end of the runs ({rows['preset'].iloc[0]}), by the size of a solution."
    return Table(("task", "numbers in a solution", "coverage", "max fitness"), lines, caption)


def claims(judged: Sequence[Judged]) -> Table:
    """Every claim of the paper with its verdict and the numbers behind it."""
    lines = tuple(
        (one.claim.number, _where(one), one.preset, one.verdict, one.numbers or ("",))
        for one in judged
    )  # fmt: skip
    caption = (
        f"Above and below: the corrected p is at most {evidence.ALPHA:g}. Near full: at least "
        f"{evidence.NEAR_FULL:g}. On par: shown by two one-sided exact tests, at {evidence.ALPHA:g}, to differ by less "
        f"than {100 * evidence.ON_PAR:.0f} % of the larger median. Large margin: {evidence.LARGE_MARGIN:g} times. "
        f"About: within {evidence.ABOUT:g}. Stops moving: {evidence.SETTLED:g} of the first speed. Not tested: runs "
        "are missing, or too few seeds to decide. p is corrected, except in 8d, a single test, and for on par; A is "
        "the share of pairs in which the first is larger."
    )
    return Table(("", "claim", "preset", "verdict", "numbers"), lines, caption, left=5, cards=True)


def _where(one: Judged) -> str:
    """The claim, and on which task it was tried where it does not say so itself."""
    if one.claim.tasks or not one.task:
        return one.claim.text
    elsewhere = one.claim.family != COMPARISON and one.task != "mobile-l"
    return f"{one.claim.text} [here on {one.task}{', in the paper on mobile-l' * elsewhere}]"


def configuration(data: StudyData) -> list[Block]:
    """The settings of everything that was compared, folded away."""
    first = {key[:4]: folder for key, folder in reversed(list(data.runs.items()))}
    return [
        Details(f"{key[3]} on {key[2]} ({key[1]}, {key[0]})", (Code(json.dumps(to_json(folder.config), indent=2)),))
        for key, folder in reversed(list(first.items()))
    ]


def environments(data: StudyData) -> Table:
    """What the runs were computed with, one row for every combination."""
    seen: dict[tuple[str, ...], int] = {}
    for record in data.environments.values():
        device, packages = record.get("device", {}), record.get("packages", {})
        row = (
            ", ".join(f"{name} {version}" for name, version in packages.items()),
            str(record.get("python")),
            str(record.get("system")),
            f"{device.get('kind')} ({device.get('count')})",
            f"{record.get('processor')}, {counted(record['cores'], 'core')}",
        )
        seen[row] = seen.get(row, 0) + 1
    lines = tuple((*row, str(count)) for row, count in seen.items())
    return Table(
        ("packages", "Python", "system", "device", "processor", "runs"), lines, "Versions and devices.", left=5
    )


def times(data: StudyData) -> Table:
    """How long groups took; seeds that are computed together share their time."""
    lines = []
    for (family, preset, task, algorithm), rows in data.results.groupby(
        ["family", "preset", "task", "algorithm"], sort=False
    ):
        numbers = (len(rows), rows["iterations"].iloc[0], rows["evaluations"].iloc[0], rows["rejected"].sum())
        seconds = f"{rows['seconds'].median():.0f}"
        lines.append((str(algorithm), str(task), str(preset), str(family), *(f"{n:.0f}" for n in numbers), seconds))
    columns = ("algorithm", "task", "preset", "study", "seeds", "iterations", "evaluations", "rejected", "seconds")
    caption = (
        "Runs in this report. Seconds: median per run, compiling included; seeds computed by one program share them. "
        "Rejected: evaluations that failed or were not finite, kept out."
    )
    return Table(columns, tuple(lines), caption, left=4)
