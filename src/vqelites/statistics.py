"""What many seeds say together: bands of curves, and exact rank tests between algorithms.

Results are plain tables: `curves` has one row per iteration of a run (columns seed, iteration and the metrics),
`results` one row per run (columns task, algorithm, seed and the final metrics).
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy.stats import rankdata

QUARTILES = (0.25, 0.5, 0.75)


def bands(curves: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Median and quartiles over the seeds: columns iteration, low, median, high.

    Only iterations that every seed has are kept, so that the band never changes its meaning along the way. If a seed
    has no number (NaN) there, neither has the band.
    """
    _require(curves, ("seed", "iteration", metric))
    if curves.duplicated(["seed", "iteration"]).any():
        raise ValueError("bands: expected every iteration of a seed once. Give the curves of one algorithm at a time.")
    table = curves.pivot(index="iteration", columns="seed", values=metric)
    present = curves.assign(present=True).pivot(index="iteration", columns="seed", values="present")
    table = table[present.notna().all(axis=1)].sort_index()
    if table.empty:
        raise ValueError(f"bands: the seeds have no iteration in common; got {len(curves)} rows of {metric!r}.")
    low, median, high = np.quantile(table.to_numpy(float), QUARTILES, axis=1)
    return pd.DataFrame({"iteration": table.index.to_numpy(), "low": low, "median": median, "high": high})


def scale_limits(values: ArrayLike) -> tuple[float, float]:
    """Ends of a colour scale that outliers do not stretch: at most 3 interquartile ranges outside the quartiles."""
    numbers = np.ravel(np.asarray(values, float))
    known = numbers[np.isfinite(numbers)]
    if not known.size:
        return 0.0, 1.0
    first, third = np.percentile(known, [25, 75])
    reach = 3 * (third - first) if third > first else np.inf
    low, high = max(known.min(), first - reach), min(known.max(), third + reach)
    return float(low), float(high if high > low else low + 1)


@dataclass(frozen=True)
class Comparison:
    """Two groups compared: U of the first, its exact two-sided p, and how often the first is larger (A)."""

    u: float
    p: float
    effect: float


def mann_whitney(first: ArrayLike, second: ArrayLike) -> Comparison:
    """Exact two-sided Mann-Whitney U test, with or without ties.

    U counts the pairs in which the first group's value is larger, equal ones half. p is twice the smaller tail of the
    rank sum over all splits of the pooled midranks into groups of these sizes (at most 1); nothing is approximated,
    whatever the sizes. The effect is Vargha and Delaney's A = U / (n m): 0.5 means no difference, 1 that every value
    of the first group is larger.
    """
    x, y = (_group(values) for values in (first, second))
    u, below, above = _ranked(x, y)
    return Comparison(u, min(1.0, 2 * min(below, above)), u / (len(x) * len(y)))


def equivalence(first: ArrayLike, second: ArrayLike, margin: float) -> float:
    """p of two groups differing by `margin` or more: small if they are shown to be closer than that.

    Two one-sided exact Mann-Whitney tests (Schuirmann 1987): that the first lies the margin or more below the second,
    and that it lies the margin or more above. Both must be refuted, so the larger p counts.
    """
    x, y = (_group(values) for values in (first, second))
    if not margin > 0:
        raise ValueError(f"equivalence: expected a margin above 0, got {margin}.")
    return max(_ranked(x + margin, y)[2], _ranked(x - margin, y)[1])


def _ranked(x: Float[np.ndarray, "n"], y: Float[np.ndarray, "m"]) -> tuple[float, float, float]:
    """U of the first group, and the chances of one as small or smaller, and as large or larger."""
    # Midranks are halves: doubled, they are whole numbers, and sums of them compare without rounding.
    ranks = np.rint(2 * rankdata(np.concatenate([x, y]))).astype(int)
    observed = int(ranks[: len(x)].sum())
    chances = _rank_sums(ranks, len(x))
    u = observed / 2 - len(x) * (len(x) + 1) / 2
    return u, float(chances[: observed + 1].sum()), float(chances[observed:].sum())


def _rank_sums(ranks: Int[np.ndarray, "n"], size: int) -> Float[np.ndarray, "s"]:
    """The chance of every sum of `size` ranks drawn without replacement, by dynamic programming.

    chance[k, s] is that of sum s if k of the ranks so far are drawn: the newest one is among them with chance k / i.
    All terms are positive and stay chances, so that digits are neither lost nor overflow.
    """
    chance = np.zeros((size + 1, int(np.sort(ranks)[-size:].sum()) + 1))
    chance[0, 0] = 1
    drawn = np.arange(size + 1)[:, None]
    for i, rank in enumerate(ranks.tolist(), 1):
        share = np.minimum(drawn / i, 1)
        with_it = np.zeros_like(chance)
        with_it[1:, rank:] = chance[:-1, : chance.shape[1] - rank]
        chance = (1 - share) * chance + share * with_it
    return chance[size]


def smallest_p(n: int, m: int) -> float:
    """The smallest p that `mann_whitney` can reach with groups of these sizes: 2 / C(n + m, n)."""
    if min(n, m) < 1:
        raise ValueError(f"smallest_p: expected at least one value in each group, got {n} and {m}.")
    return min(1.0, 2 / math.comb(n + m, n))


def holm(p: ArrayLike) -> Float[np.ndarray, "n"]:
    """Holm's correction for testing them all: the chance of any false alarm stays below the corrected p."""
    values = np.asarray(p, float)
    if values.ndim != 1 or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"holm: expected p-values between 0 and 1, got {values.tolist()}. Leave tests without p out.")
    order = np.argsort(values, kind="stable")
    stepped = np.maximum.accumulate((len(values) - np.arange(len(values))) * values[order])
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(stepped, 1)
    return corrected


def compare(results: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Every pair of algorithms on every task and metric, one row each, Holm-corrected per task and metric.

    Columns: task, metric, first, second, n_first, n_second, median_first, median_second, u, p, p_holm, effect,
    smallest_p. An algorithm without a number for any seed does not have that metric and is left out of it.
    """
    rows: list[dict[str, object]] = []
    for task, metric, groups in _groups(results, metrics):
        tests = [(a, b, mann_whitney(groups[a], groups[b])) for a, b in itertools.combinations(groups, 2)]
        corrected = holm([test.p for _, _, test in tests])
        for (a, b, test), p_holm in zip(tests, corrected, strict=True):
            sizes = len(groups[a]), len(groups[b])
            medians = float(np.median(groups[a])), float(np.median(groups[b]))
            numbers = (test.u, test.p, float(p_holm), test.effect, smallest_p(*sizes))
            rows.append(dict(zip(_COMPARED, (task, metric, a, b, *sizes, *medians, *numbers), strict=True)))
    return pd.DataFrame(rows, columns=list(_COMPARED))


_COMPARED = (
    "task", "metric", "first", "second", "n_first", "n_second", "median_first", "median_second",
    "u", "p", "p_holm", "effect", "smallest_p",
)  # fmt: skip


def summarise(results: pd.DataFrame, metrics: Sequence[str]) -> pd.DataFrame:
    """Median and quartiles of every algorithm: columns task, metric, algorithm, n, low, median, high."""
    rows = [
        (task, metric, algorithm, len(values), *np.quantile(values, QUARTILES).tolist())
        for task, metric, groups in _groups(results, metrics)
        for algorithm, values in groups.items()
    ]
    return pd.DataFrame(rows, columns=["task", "metric", "algorithm", "n", "low", "median", "high"])


def by_task(compared: pd.DataFrame, metric: str, value: str = "p_holm") -> pd.DataFrame:
    """One column of `compare` for one metric, laid out as in the paper: a row per pair, a column per task."""
    _require(compared, ("task", "metric", "first", "second", value))
    rows = compared[compared["metric"] == metric]
    table = rows.pivot(index=["first", "second"], columns="task", values=value)
    pairs = rows[["first", "second"]].drop_duplicates().itertuples(index=False, name=None)
    return table.loc[list(pairs), list(rows["task"].unique())].rename_axis(columns=None).reset_index()


def _groups(
    results: pd.DataFrame, metrics: Sequence[str]
) -> Iterator[tuple[str, str, dict[str, Float[np.ndarray, "n"]]]]:
    """For every task and metric: each algorithm's values, one per seed."""
    _require(results, ("task", "algorithm", "seed", *metrics))
    repeated = results[results.duplicated(["task", "algorithm", "seed"])]
    if len(repeated):
        run = ", ".join(map(str, repeated[["task", "algorithm", "seed"]].iloc[0]))
        raise ValueError(
            f"Expected one row per task, algorithm and seed, but ({run}) is there more than once. Drop one."
        )
    for task, metric in itertools.product(results["task"].unique(), metrics):
        groups: dict[str, np.ndarray] = {}
        for algorithm, rows in results[results["task"] == task].groupby("algorithm", sort=False):
            values = rows[metric].to_numpy(float)
            missing = rows["seed"][np.isnan(values)].tolist()
            if missing and len(missing) < len(rows):
                raise ValueError(
                    f"{metric} of {algorithm} on {task}: expected a number for every seed, "
                    f"got NaN for seeds {missing}. Leave out these runs or this metric."
                )
            if not missing:
                groups[str(algorithm)] = values
        yield str(task), metric, groups


def _group(values: ArrayLike) -> Float[np.ndarray, "n"]:
    """One group of a test, checked."""
    group = np.asarray(values, float)
    if group.ndim != 1 or not group.size or np.isnan(group).any():
        raise ValueError(
            "Expected two lists of at least one number each, without NaN; "
            f"got {group.tolist()}. Leave out runs that have no number."
        )
    return group


def _require(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raise if the table lacks a column."""
    missing = [column for column in columns if column not in table]
    if missing:
        raise ValueError(f"Expected columns {list(columns)}, but {missing} are missing from {list(table)}.")
