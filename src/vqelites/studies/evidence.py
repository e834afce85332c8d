"""Checks on the results of a study, each answered yes, no or undecided, with the numbers behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from vqelites.plots.style import label
from vqelites.statistics import Comparison, compare, equivalence, mann_whitney, smallest_p
from vqelites.studies.finals import METRICS

# What the words of the claims mean here.
ALPHA = 0.05  # "above", "better", "worse": the Holm-corrected exact test is at most this
NEAR_FULL = 0.95  # "near full coverage": the median is at least this
ON_PAR = 0.1  # "on par", "similar": shown, at ALPHA, to differ by less than this share of the larger median
LARGE_MARGIN = 1.2  # "by a large margin", "far above": the median is at least this many times the other's
ABOUT = 0.1  # "about 0.5": the median is at most this far from it
SETTLED = 0.1  # "stop moving": codes move at most this share of their first speed


class MissingError(Exception):
    """The results needed for an answer are not there."""


@dataclass(frozen=True)
class Check:
    """One answer: `holds` is None if the data cannot decide."""

    holds: bool | None
    text: str


@dataclass(frozen=True)
class Evidence:
    """The results of one kind of study at one preset."""

    results: pd.DataFrame
    curves: pd.DataFrame

    @cached_property
    def compared(self) -> pd.DataFrame:
        """Every pair of algorithms on every task and metric."""
        return compare(self.results, [name for name in METRICS if name in self.results])

    @property
    def tasks(self) -> list[str]:
        """Where it was tried."""
        return [] if self.results.empty else list(self.results["task"].unique())

    def values(self, task: str, algorithm: str, metric: str) -> np.ndarray:
        """A metric of every seed, in their order."""
        rows = self.results[(self.results["task"] == task) & (self.results["algorithm"] == algorithm)]
        found = rows.sort_values("seed")[metric].dropna().to_numpy(float) if metric in rows else np.zeros(0)
        if not found.size:
            raise MissingError(f"{label(metric)} of {algorithm} on {task} is missing")
        return found

    def median(self, task: str, algorithm: str, metric: str) -> float:
        """Over the seeds."""
        return float(np.median(self.values(task, algorithm, metric)))

    def above(self, task: str, metric: str, winner: str, loser: str, margin: float = 1.0) -> Check:
        """Whether one is better than the other, and by this factor; too few seeds leave a better median undecided."""
        high, low = (self.median(task, name, metric) for name in (winner, loser))
        test = self._tested(task, metric, winner, loser)
        text = f"{_pair(metric, winner, high, loser, low)} ({test})"
        if high <= low or high < margin * low:
            return Check(False, text + (f", less than {margin:g} times" if high > low else ""))
        if test.p_holm <= ALPHA:
            return Check(True, text)
        return Check(False, text) if test.decides else Check(None, f"{text}: too few seeds to decide")

    def best(self, task: str, metric: str, winner: str, losers: Sequence[str], margin: float = 1.0) -> list[Check]:
        """Whether one is above all the others."""
        return [self.above(task, metric, winner, loser, margin) for loser in losers]

    def on_par(self, task: str, metric: str, one: str, other: str) -> Check:
        """Whether two are shown to be closer than a margin; that no difference was found is no answer.

        A claim asks for all its checks to hold, so these tests need no correction.
        """
        a, b = (self.median(task, name, metric) for name in (one, other))
        margin = ON_PAR * max(abs(a), abs(b))
        text = _pair(metric, one, a, other, b)
        if not abs(a - b) < margin:
            return Check(False, f"{text}, {100 * ON_PAR:.0f} % apart or more")
        p = equivalence(self.values(task, one, metric), self.values(task, other, metric), margin)
        text += f" (within {100 * ON_PAR:.0f} %: p = {p:.2g})"
        return Check(True, text) if p <= ALPHA else Check(None, f"{text}: too few seeds for how much they scatter")

    def near_full(self, task: str, algorithm: str, wanted: bool = True) -> Check:
        """Whether the coverage is (or is not) near 1."""
        value = self.median(task, algorithm, "coverage")
        return Check((value >= NEAR_FULL) == wanted, f"coverage of {algorithm} {value:.3g}")

    def about(self, task: str, metric: str, algorithm: str, target: float) -> Check:
        """Whether a median is near a number."""
        value = self.median(task, algorithm, metric)
        return Check(abs(value - target) <= ABOUT, f"{label(metric)} of {algorithm} {value:.3g}")

    def at(self, task: str, algorithm: str, metric: str, iteration: int) -> np.ndarray:
        """A metric of every seed after this iteration."""
        rows = self.curves[(self.curves["task"] == task) & (self.curves["algorithm"] == algorithm)]
        found = rows[rows["iteration"] == iteration].sort_values("seed")[metric].to_numpy(float)
        if not found.size:
            raise MissingError(f"{algorithm} on {task} has no iteration {iteration}")
        return found

    def _tested(self, task: str, metric: str, one: str, other: str) -> "Tested":
        """The row of the comparison table, seen from `one`."""
        rows = self.compared[(self.compared["task"] == task) & (self.compared["metric"] == metric)]
        for first, second, sign in ((one, other, 1), (other, one, -1)):
            row = rows[(rows["first"] == first) & (rows["second"] == second)]
            if len(row):
                p, floor, effect = (float(row[name].iloc[0]) for name in ("p_holm", "smallest_p", "effect"))
                return Tested(p, effect if sign > 0 else 1 - effect, min(1.0, floor * len(rows)))
        raise MissingError(f"{one} and {other} on {task} were not compared in {label(metric)}")


@dataclass(frozen=True)
class Tested:
    """A corrected p, the effect A seen from the first of the two, and the smallest corrected p that is possible."""

    p_holm: float
    effect: float
    floor: float

    @property
    def decides(self) -> bool:
        """Whether there are enough seeds for the test to find anything."""
        return self.floor <= ALPHA

    def __str__(self) -> str:
        return f"A = {self.effect:.2f}, p = {self.p_holm:.2g}"

    @classmethod
    def of(cls, one: np.ndarray, other: np.ndarray) -> "Tested":
        """A test on its own, with nothing to correct for."""
        test: Comparison = mann_whitney(one, other)
        return cls(test.p, test.effect, smallest_p(len(one), len(other)))


def evidence(results: pd.DataFrame, curves: pd.DataFrame) -> Mapping[str, Mapping[str, Evidence]]:
    """For every preset: the evidence of every kind of study."""
    made: dict[str, dict[str, Evidence]] = {}
    for (preset, family), rows in results.groupby(["preset", "family"], sort=False):
        lines = curves[(curves["preset"] == preset) & (curves["family"] == family)]
        made.setdefault(str(preset), {})[str(family)] = Evidence(rows, lines)
    return made


def _pair(metric: str, one: str, a: float, other: str, b: float) -> str:
    return f"{label(metric)}: {one} {a:.3g}, {other} {b:.3g}"
