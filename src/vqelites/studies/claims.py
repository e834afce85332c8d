"""The claims of the paper as questions to the data: verdicts and numbers are computed, never typed in.

What the words of the claims mean in numbers is said in `evidence.py`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from vqelites.studies.catalogue import update_label
from vqelites.studies.evidence import ALPHA, LARGE_MARGIN, SETTLED, Check, Evidence, MissingError, Tested
from vqelites.studies.study import COMPARISON
from vqelites.words import counted

Checks = Callable[[Evidence, str], list[Check]]
Relation = Callable[[Evidence, str, str, str, str], Check]  # of two variants, in a metric of a task
Verdict = Literal["reproduced", "not reproduced", "not tested"]
VQ, ME, AU, AP = "vq-elites", "map-elites", "aurora", "aurora-plus"


@dataclass(frozen=True)
class Claim:
    """What the paper says, the kind of study that can tell, and the checks that all have to hold on a task."""

    number: str
    text: str
    family: str
    tasks: tuple[str, ...]  # none: wherever the study ran
    checks: Checks


@dataclass(frozen=True)
class Judged:
    """A claim and what the data of one preset say on one task."""

    claim: Claim
    preset: str
    task: str
    verdict: Verdict
    numbers: tuple[str, ...]


def judge(evidence: Mapping[str, Mapping[str, Evidence]]) -> list[Judged]:
    """A verdict on every claim, for every preset and task in the data."""
    nothing = Evidence(pd.DataFrame(), pd.DataFrame())
    return [
        _judged(claim, preset, task, families.get(claim.family, nothing))
        for claim in CLAIMS
        for preset, families in evidence.items()
        for task in claim.tasks or families.get(claim.family, nothing).tasks or ("",)
    ]


def _judged(claim: Claim, preset: str, task: str, evidence: Evidence) -> Judged:
    if evidence.results.empty:
        return Judged(claim, preset, task, "not tested", (f"There are no runs of the {claim.family} in this report.",))
    try:
        checks = claim.checks(evidence, task)
    except MissingError as missing:
        return Judged(claim, preset, task, "not tested", (f"{str(missing)[:1].upper()}{str(missing)[1:]}.",))
    verdict: Verdict = "reproduced"
    if any(check.holds is False for check in checks):
        verdict = "not reproduced"
    elif any(check.holds is None for check in checks):
        verdict = "not tested"
    # What decided comes first.
    ordered = sorted(checks, key=lambda check: {False: 0, None: 1, True: 2}[check.holds])
    marks = {True: "yes", False: "no", None: "?"}
    return Judged(claim, preset, task, verdict, tuple(f"{marks[check.holds]}: {check.text}" for check in ordered))


def _each(*checks: Check | list[Check]) -> list[Check]:
    """All of them in one list."""
    return [check for some in checks for check in (some if isinstance(some, list) else [some])]


def _full_coverage(e: Evidence, t: str) -> list[Check]:
    return _each(*(e.near_full(t, name) for name in (VQ, ME, AP)), e.near_full(t, AU, wanted=False))


def _diverse_as_known(e: Evidence, t: str) -> list[Check]:
    return _each(*([e.on_par(t, metric, VQ, ME), e.above(t, metric, VQ, AP)] for metric in ("edr", "cds")))


def _unknown_walls(e: Evidence, t: str) -> list[Check]:
    return _each(*(e.best(t, "coverage", name, [ME, AU], LARGE_MARGIN) for name in (VQ, AP)))


def _best_in(*metrics: str, winner: str = VQ, margin: float = 1.0) -> Checks:
    """One algorithm is above all the others in these metrics."""

    def checks(e: Evidence, t: str) -> list[Check]:
        losers = [name for name in (VQ, ME, AU, AP) if name != winner]
        return _each(*(e.best(t, metric, winner, losers, margin) for metric in metrics))

    return checks


def _arm_order(e: Evidence, t: str) -> list[Check]:
    order = [[e.above(t, metric, VQ, AP), e.above(t, metric, AP, AU)] for metric in ("coverage", "pqd")]
    return _each(*order)


def _auroras_like_known(e: Evidence, t: str) -> list[Check]:
    return _each(*(e.on_par(t, "coverage", name, ME) for name in (AU, AP)))


def _faster(e: Evidence, t: str) -> list[Check]:
    return _each(*(e.above(t, "coverage_auc", name, VQ) for name in (AU, AP)))


def _truly_diverse(e: Evidence, t: str) -> list[Check]:
    return _each(*(e.best(t, metric, VQ, [AU, AP]) for metric in ("edr", "cds")))


def _updates(other: tuple[int, int], relation: Relation) -> Checks:
    """The usual 5/10 against another pace, with and without cooperation."""

    def checks(e: Evidence, t: str) -> list[Check]:
        pairs = [(update_label(5, 10, on), update_label(*other, on)) for on in (False, True)]
        return [relation(e, t, metric, *pair) for pair in pairs for metric in ("coverage", "pqd")]

    return checks


def _both(relation: Relation, one: str, other: str, *metrics: str) -> Checks:
    """One pair of variants in some metrics."""
    return lambda e, t: [relation(e, t, metric, one, other) for metric in metrics]


def _critical(e: Evidence, t: str) -> list[Check]:
    pairs = [(f"{name}, cooperating", f"{name}, alone") for name in (AU, AP)]
    return [e.above(t, "coverage", *pair, LARGE_MARGIN) for pair in pairs]


def _dip(e: Evidence, t: str) -> list[Check]:
    """PQD is lower at the last iteration of cooperation than without it."""
    share, length = (e.median(t, f"{VQ}, cooperating", name) for name in ("cooperate", "iterations"))
    moment = round(share * length)
    low, high = (e.at(t, f"{VQ}, {name}", "pqd", moment) for name in ("cooperating", "alone"))
    test = Tested.of(low, high)
    lower = bool(np.median(low) < np.median(high))
    text = f"PQD at iteration {moment}: cooperating {np.median(low):.3g}, alone {np.median(high):.3g} ({test})"
    if lower and test.p_holm > ALPHA and not test.decides:
        return [Check(None, f"{text}: too few seeds to decide")]
    return [Check(lower and test.p_holm <= ALPHA, text)]


def _sharpen(e: Evidence, t: str) -> list[Check]:
    first, last = (e.values(t, VQ, f"sharpness_{moment}") for moment in ("first", "last"))
    rising = last > first
    text = f"sharpness {np.median(first):.3g} at first, {np.median(last):.3g} at last"
    text += f", rising in {int(rising.sum())} of {counted(len(last), 'run')}"
    return [Check(bool(rising.all()), text)]


def _settle(e: Evidence, t: str) -> list[Check]:
    first, last = (e.values(t, VQ, f"drift_{moment}") for moment in ("first", "last"))
    ratio = float(np.median(last / first))
    return [Check(ratio <= SETTLED, f"codes move {ratio:.3g} times as fast at last as at first (median of the runs)")]


def _start(pairs: tuple[tuple[str, str], ...], relation: Relation, metric: str) -> Checks:
    return lambda e, t: [relation(e, t, metric, *pair) for pair in pairs]


_BOOTSTRAP = tuple((f"bootstrap, {codes}", f"no bootstrap, {codes}") for codes in ("k-means", "random codes"))
_CODES = tuple((f"{start}, k-means", f"{start}, random codes") for start in ("bootstrap", "no bootstrap"))


def _main(number: str, task: str, text: str, checks: Checks) -> Claim:
    return Claim(number, f"{task}: {text}", COMPARISON, (task,), checks)


def _ablation(number: str, kind: str, text: str, checks: Checks) -> Claim:
    return Claim(number, text, f"ablation-{kind}", (), checks)


CLAIMS = (
    _main("1a", "mobile-free", "all but vanilla AURORA reach near full coverage", _full_coverage),
    _main("1b", "mobile-free", "MAP-Elites has the best PQD", _best_in("pqd", winner=ME)),
    _main("1c", "mobile-free", "EDR and CDS of VQ-Elites: on par with MAP-Elites, above AURORA+", _diverse_as_known),
    _main("2a", "mobile-l", "VQ-Elites and AURORA+ are far above the others in coverage", _unknown_walls),
    _main("2b", "mobile-l", "VQ-Elites has the best PQD and CDS", _best_in("pqd", "cds")),
    _main("2c", "mobile-l", "MAP-Elites has the best EDR", _best_in("edr", winner=ME)),
    _main("3a", "arm", "MAP-Elites has the best coverage and PQD", _best_in("coverage", "pqd", winner=ME)),
    _main("3b", "arm", "then VQ-Elites, above AURORA+; vanilla AURORA is last (coverage and PQD)", _arm_order),
    _main("4a", "arm-constrained", "VQ-Elites is best in coverage, PQD and CDS by a large margin",
          _best_in("coverage", "pqd", "cds", margin=LARGE_MARGIN)),
    _main("4b", "arm-constrained", "EDR of VQ-Elites is about 0.5", lambda e, t: [e.about(t, "edr", VQ, 0.5)]),
    _main("4c", "arm-constrained", "both AURORAs cover about as much as MAP-Elites", _auroras_like_known),
    _main("5a", "minigrid", "both AURORAs gain coverage faster than VQ-Elites", _faster),
    _main("5b", "minigrid", "VQ-Elites is best of the unsupervised ones in EDR and CDS", _truly_diverse),
    _ablation("6a", "update", "updating every iteration with 1 epoch is worse than every 5 with 10",
              _updates((1, 1), Evidence.above)),
    _ablation("6b", "update", "every 100 iterations with 100 epochs is similar to every 5 with 10",
              _updates((100, 100), Evidence.on_par)),
    _ablation("6c", "cooperation", "cooperation changes nothing at the end for VQ-Elites",
              _both(Evidence.on_par, f"{VQ}, cooperating", f"{VQ}, alone", "coverage", "pqd")),
    _ablation("6d", "cooperation", "cooperation is critical for AURORA (coverage, by a large margin)", _critical),
    _ablation("6e", "bounding", "unbounded descriptors hurt",
              _both(Evidence.above, "bounded", "unbounded", "coverage", "pqd")),
    _ablation("6f", "bounding", "they do not if the codebook starts in [-1, 1]",
              _both(Evidence.on_par, "bounded", "unbounded, codes in [-1, 1]", "coverage", "pqd")),
    _main("7a", "minigrid", "decoded codebook centres sharpen over the run", _sharpen),
    Claim("7b", "the codebook stops moving", COMPARISON, (), _settle),
    _ablation("8a", "start", "bootstrap is not needed: coverage is the same at the end",
              _start(_BOOTSTRAP, Evidence.on_par, "coverage")),
    _ablation("8b", "start", "bootstrap speeds up convergence (area under the coverage curve)",
              _start(_BOOTSTRAP, Evidence.above, "coverage_auc")),
    _ablation("8c", "start", "a k-means codebook beats a random one (coverage)",
              _start(_CODES, Evidence.above, "coverage")),
    _ablation("8d", "cooperation", "PQD dips while cooperation is on", _dip),
)  # fmt: skip
