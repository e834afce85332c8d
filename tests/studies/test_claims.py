"""Claims against data made by hand, where every verdict is known."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vqelites.studies import evidence as words
from vqelites.studies.claims import CLAIMS, judge
from vqelites.studies.evidence import Evidence, MissingError, evidence
from vqelites.studies.finals import METRICS

VQ, ME, AU, AP = "vq-elites", "map-elites", "aurora", "aurora-plus"


def table(medians, task="arm", family="comparison", seeds=10, preset="paper", spread=0.001, **more):
    """Results in which every metric of an algorithm has this median, a little different for every seed."""
    rows = []
    for algorithm, median in medians.items():
        values = median if isinstance(median, dict) else dict.fromkeys(METRICS, median)
        for seed in range(seeds):
            shift = spread * (seed - (seeds - 1) / 2)
            numbers = {name: float(values.get(name, 0.5)) + shift for name in METRICS}
            key = {"family": family, "preset": preset, "task": task, "algorithm": algorithm, "seed": seed}
            rows.append({**key, **numbers, "iterations": 100, "cooperate": 0.1, **more})
    return pd.DataFrame(rows)


def curves(medians, task="arm", family="comparison", seeds=10, preset="paper"):
    """PQD over 100 iterations: a constant, a little different for every seed."""
    key = {"family": family, "preset": preset, "task": task}
    return pd.DataFrame(
        {**key, "algorithm": name, "seed": seed, "iteration": i, "pqd": median + 0.01 * seed}
        for name, median in medians.items()
        for seed in range(seeds)
        for i in range(101)
    )


EMPTY = pd.DataFrame(columns=["family", "preset", "task", "algorithm", "seed", "iteration", "pqd"])


def verdicts(results, lines=EMPTY):
    """Verdicts by number; claims that are tried on several tasks have one each."""
    return {one.claim.number: one.verdict for one in judge(evidence(results, lines))}


def test_every_claim_of_the_specification_is_there_once():
    numbers = [claim.number for claim in CLAIMS]
    assert len(set(numbers)) == len(numbers)
    assert {number[0] for number in numbers} == set("12345678")


@pytest.mark.parametrize(
    ("number", "task", "good", "bad"),
    [
        ("1a", "mobile-free", {VQ: 0.96, ME: 1.0, AP: 0.95, AU: 0.5}, {VQ: 0.94, ME: 1.0, AP: 0.97, AU: 0.5}),
        ("1b", "mobile-free", {VQ: 0.5, ME: 0.6, AP: 0.5, AU: 0.4}, {VQ: 0.7, ME: 0.6, AP: 0.5, AU: 0.4}),
        ("1c", "mobile-free", {VQ: 0.5, ME: 0.51, AP: 0.4, AU: 0.3}, {VQ: 0.5, ME: 0.7, AP: 0.4, AU: 0.3}),
        ("2a", "mobile-l", {VQ: 0.9, ME: 0.5, AP: 0.9, AU: 0.5}, {VQ: 0.9, ME: 0.8, AP: 0.9, AU: 0.5}),
        ("2b", "mobile-l", {VQ: 0.9, ME: 0.5, AP: 0.8, AU: 0.5}, {VQ: 0.8, ME: 0.5, AP: 0.9, AU: 0.5}),
        ("2c", "mobile-l", {VQ: 0.4, ME: 0.5, AP: 0.4, AU: 0.3}, {VQ: 0.6, ME: 0.5, AP: 0.4, AU: 0.3}),
        ("3a", "arm", {VQ: 0.8, ME: 0.9, AP: 0.7, AU: 0.6}, {VQ: 0.9, ME: 0.9, AP: 0.7, AU: 0.6}),
        ("3b", "arm", {VQ: 0.8, ME: 0.9, AP: 0.7, AU: 0.6}, {VQ: 0.8, ME: 0.9, AP: 0.7, AU: 0.75}),
        ("4a", "arm-constrained", {VQ: 0.9, ME: 0.6, AP: 0.6, AU: 0.6}, {VQ: 0.7, ME: 0.6, AP: 0.6, AU: 0.6}),
        ("4b", "arm-constrained", {VQ: 0.45, ME: 0.6, AP: 0.6, AU: 0.6}, {VQ: 0.3, ME: 0.6, AP: 0.6, AU: 0.6}),
        ("4c", "arm-constrained", {VQ: 0.9, ME: 0.6, AP: 0.61, AU: 0.6}, {VQ: 0.9, ME: 0.6, AP: 0.8, AU: 0.6}),
        ("5a", "minigrid", {VQ: 0.5, ME: 0.6, AP: 0.7, AU: 0.7}, {VQ: 0.7, ME: 0.6, AP: 0.6, AU: 0.8}),
        ("5b", "minigrid", {VQ: 0.9, ME: 0.95, AP: 0.7, AU: 0.7}, {VQ: 0.7, ME: 0.6, AP: 0.8, AU: 0.6}),
    ],
)
def test_verdicts_on_the_tasks(number, task, good, bad):
    assert verdicts(table(good, task))[number] == "reproduced"
    assert verdicts(table(bad, task))[number] == "not reproduced"
    del good[ME if number in ("2c", "4c") else VQ]
    assert verdicts(table(good, task))[number] == "not tested"
    assert verdicts(table(bad, "planar-arm"))[number] == "not tested"


PACES = [
    f"every {pace}{more}"
    for more in ("", ", cooperating")
    for pace in ("1, 1 epoch", "5, 10 epochs", "100, 100 epochs")
]
BOUNDS = ["bounded", "unbounded", "unbounded, codes in [-1, 1]"]
STARTS = ["bootstrap, k-means", "bootstrap, random codes", "no bootstrap, k-means", "no bootstrap, random codes"]
SHARED = [f"{name}, {how}" for name in (VQ, AU, AP) for how in ("alone", "cooperating")]


@pytest.mark.parametrize(
    ("number", "kind", "labels", "good", "bad"),
    [
        ("6a", "update", PACES, (0.6, 0.8, 0.8, 0.6, 0.8, 0.8), (0.6, 0.8, 0.8, 0.9, 0.8, 0.8)),
        ("6b", "update", PACES, (0.6, 0.8, 0.81, 0.6, 0.8, 0.79), (0.6, 0.8, 0.7, 0.6, 0.8, 0.8)),
        ("6c", "cooperation", SHARED, (0.8, 0.8, 0.1, 0.5, 0.2, 0.8), (0.8, 0.9, 0.1, 0.5, 0.2, 0.8)),
        ("6d", "cooperation", SHARED, (0.8, 0.8, 0.1, 0.5, 0.2, 0.8), (0.8, 0.8, 0.5, 0.55, 0.2, 0.8)),
        ("6e", "bounding", BOUNDS, (0.8, 0.6, 0.8), (0.6, 0.8, 0.8)),
        ("6f", "bounding", BOUNDS, (0.8, 0.6, 0.79), (0.8, 0.6, 0.6)),
        ("8a", "start", STARTS, (0.8, 0.7, 0.8, 0.7), (0.8, 0.7, 0.7, 0.7)),
        ("8b", "start", STARTS, (0.8, 0.7, 0.6, 0.5), (0.8, 0.7, 0.9, 0.5)),
        ("8c", "start", STARTS, (0.8, 0.7, 0.8, 0.6), (0.8, 0.8, 0.8, 0.6)),
    ],
)
def test_verdicts_on_ablations(number, kind, labels, good, bad):
    def verdict(values, task="mobile-l"):
        medians = dict(zip(labels, values, strict=True))
        lines = curves(medians, task, f"ablation-{kind}")
        return verdicts(table(medians, task, f"ablation-{kind}"), lines)[number]

    assert verdict(good) == "reproduced"
    assert verdict(bad) == "not reproduced"
    assert verdict(good, "planar-arm") == "reproduced"  # on whichever task it ran; the row names it
    assert verdicts(table({VQ: 0.5, ME: 0.5}))[number] == "not tested"


@pytest.mark.parametrize(("low", "high", "verdict"), [(5.0, 9.0, "reproduced"), (9.0, 5.0, "not reproduced")])
def test_the_dip_is_looked_for_where_cooperation_ends(low, high, verdict):
    results = table(dict.fromkeys(SHARED, 0.5), family="ablation-cooperation")
    lines = curves({f"{VQ}, cooperating": 9.0, f"{VQ}, alone": 9.0}, family="ablation-cooperation")
    end = lines["iteration"] == 10  # 10 % of 100
    lines.loc[end & (lines["algorithm"] == f"{VQ}, cooperating"), "pqd"] += low
    lines.loc[end & (lines["algorithm"] == f"{VQ}, alone"), "pqd"] += high
    assert verdicts(results, lines)["8d"] == verdict


@pytest.mark.parametrize(("first", "last", "verdict"), [(1.0, 0.05, "reproduced"), (1.0, 0.5, "not reproduced")])
def test_a_codebook_that_slows_down_enough_has_settled(first, last, verdict):
    assert verdicts(table({VQ: 0.5}, drift_first=first, drift_last=last))["7b"] == verdict


def test_sharpening_needs_every_run_to_sharpen():
    results = table({VQ: 0.5}, "minigrid", sharpness_first=0.1, sharpness_last=0.2)
    assert verdicts(results)["7a"] == "reproduced"
    results.loc[3, "sharpness_last"] = 0.05
    assert verdicts(results)["7a"] == "not reproduced"
    assert verdicts(table({VQ: 0.5}, "minigrid"))["7a"] == "not tested"


def test_too_few_seeds_decide_for_nobody():
    medians = {VQ: 0.8, ME: 0.9, AP: 0.7, AU: 0.6}
    assert verdicts(table(medians, seeds=3))["3a"] == "not tested"  # smallest p 0.1
    assert verdicts(table(medians, seeds=4))["3a"] == "not tested"  # 0.029, but six pairs
    assert verdicts(table(medians, seeds=5))["3a"] == "reproduced"  # 6 * 0.0079
    assert verdicts(table({**medians, ME: 0.5}, seeds=3))["3a"] == "not reproduced"  # the wrong way round
    close = {VQ: 0.5, ME: 0.6, AP: 0.61, AU: 0.7}
    assert verdicts(table(close, "arm-constrained", seeds=3))["4c"] == "not reproduced"  # 14 % apart
    close[AU] = 0.59
    assert verdicts(table(close, "arm-constrained", seeds=2))["4c"] == "not tested"  # smallest p 0.17
    assert verdicts(table(close, "arm-constrained", seeds=3))["4c"] == "reproduced"  # 0.05
    assert verdicts(table(close, "arm-constrained", seeds=5, spread=0.1))["4c"] == "not tested"


def test_a_difference_that_chance_explains_is_not_reproduced():
    results = table({VQ: 0.8, ME: 0.801, AP: 0.7, AU: 0.6}, spread=0.01)
    assert verdicts(results)["3a"] == "not reproduced"


def test_every_preset_is_judged_apart():
    good, bad = {VQ: 0.8, ME: 0.9, AP: 0.7, AU: 0.6}, {VQ: 0.9, ME: 0.8, AP: 0.7, AU: 0.6}
    results = pd.concat([table(good), table(bad, preset="literal")], ignore_index=True)
    found = {(one.preset, one.claim.number): one.verdict for one in judge(evidence(results, EMPTY))}
    assert found["paper", "3a"] == "reproduced"
    assert found["literal", "3a"] == "not reproduced"


def test_numbers_are_those_of_the_data():
    (judged,) = [
        one for one in judge(evidence(table({VQ: 0.8, ME: 0.9, AP: 0.7, AU: 0.6}), EMPTY)) if one.claim.number == "3a"
    ]
    assert len(judged.numbers) == 6
    # Six pairs at the floor of two groups of ten, 1.08e-05.
    assert "yes: PQD: map-elites 0.9, vq-elites 0.8 (A = 1.00, p = 6.5e-05)" in judged.numbers


@given(st.lists(st.floats(0, 1), min_size=5, max_size=8), st.lists(st.floats(0, 1), min_size=5, max_size=8))
def test_nothing_is_both_above_and_below_and_only_what_is_near_can_be_on_par(one, other):
    rows = [
        ("arm", name, seed, value) for name, values in (("a", one), ("b", other)) for seed, value in enumerate(values)
    ]
    found = Evidence(pd.DataFrame(rows, columns=["task", "algorithm", "seed", "coverage"]), EMPTY)
    above, below = found.above("arm", "coverage", "a", "b"), found.above("arm", "coverage", "b", "a")
    assert not (above.holds and below.holds)
    near = abs(np.median(one) - np.median(other)) < words.ON_PAR * max(np.median(one), np.median(other))
    on_par = found.on_par("arm", "coverage", "a", "b").holds
    assert on_par == found.on_par("arm", "coverage", "b", "a").holds
    assert (on_par is not False) == near


def test_on_par_does_not_accept_mere_non_significance():
    """Medians 0.80 and 0.55 of 5 seeds that scatter: no test finds the difference, and yet they are not on par."""
    one, other = [0.3, 0.5, 0.80, 0.9, 1.0], [0.2, 0.4, 0.55, 0.7, 0.95]
    rows = [("arm", name, i, v) for name, values in (("a", one), ("b", other)) for i, v in enumerate(values)]
    found = Evidence(pd.DataFrame(rows, columns=["task", "algorithm", "seed", "coverage"]), EMPTY)
    assert not found.above("arm", "coverage", "a", "b").holds
    assert found.on_par("arm", "coverage", "a", "b").holds is False


def test_what_is_missing_is_named():
    found = Evidence(table({VQ: 0.8}), EMPTY)
    with pytest.raises(MissingError, match="PQD of aurora on arm is missing"):
        found.median("arm", AU, "pqd")
    with pytest.raises(MissingError, match="no iteration 10"):
        found.at("arm", VQ, "pqd", 10)
