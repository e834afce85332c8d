"""What the tables of a report say beside their numbers."""

import jax.numpy as jnp
import numpy as np
import pandas as pd

from vqelites.statistics import compare
from vqelites.studies.evidence import Evidence
from vqelites.studies.finals import METRICS, _from_lowest
from vqelites.studies.tables import answer, floor, meanings
from vqelites.tessellation import grid
from vqelites.types import Bins


def test_tasks_with_fewer_seeds_have_a_floor_of_their_own():
    """The smallest of all floors used to stand above every column: 1.1e-05 for a task that can only reach 0.0079."""
    rng = np.random.default_rng(0)
    rows = [
        (task, algorithm, seed, rng.uniform())
        for task, seeds in {"arm": 10, "minigrid": 5}.items()
        for algorithm in ("vq-elites", "map-elites")
        for seed in range(seeds)
    ]
    results = pd.DataFrame(rows, columns=["task", "algorithm", "seed", "coverage"])
    assert floor(compare(results, ["coverage"])) == (
        "With 10 and 10 seeds the smallest reachable p is 1.1e-05; corrected for 1 pair it is 1.1e-05. "
        "With 5 and 5 seeds the smallest reachable p is 0.0079; corrected for 1 pair it is 0.0079."
    )


def test_an_answer_names_the_algorithms_by_their_medians_the_largest_first():
    results = pd.DataFrame(
        [("arm", name, 0.9 + shift, 0.5 + shift, 300.0) for name, shift in (("a", 0.0), ("b", 0.04), ("b", 0.06))],
        columns=["task", "algorithm", "coverage", "coverage_near_goal", "pqd"],
    )
    assert answer(Evidence(results, pd.DataFrame()), "arm") == (
        "coverage: b 0.950, a 0.900",
        "coverage within 5 cm: b 0.550, a 0.500",
        "PQD: a 300.0, b 300.0",
    )


def test_where_no_truth_is_known_answer_and_meanings_speak_of_the_archive_alone():
    results = pd.DataFrame({"task": ["t"], "algorithm": ["a"], **dict.fromkeys(METRICS, np.nan)})
    results = results.assign(qd_score=2.0, size=7, lowest=0.0)
    assert answer(Evidence(results, pd.DataFrame()), "t") == ("QD score: a 2.00", "archive size: a 7")
    [table] = meanings(results).blocks
    assert [row[0] for row in table.rows] == ["archive size", "QD score"]
    assert "true descriptor" in table.caption


def test_sums_of_negative_fitness_do_not_favour_small_archives():
    """Of two archives with elites of fitness -1, the one with fewer had the higher QD score, and came first."""
    bins = Bins(grid((10,), (0.0,), (1.0,)), jnp.arange(10) < 8)
    sizes = np.array([2.0, 6.0])
    curve = pd.DataFrame({"size": sizes, "qd_score": -sizes, "coverage": sizes / 8, "pqd": -sizes})
    counted = _from_lowest(curve, bins, -10.0)
    np.testing.assert_allclose(counted["qd_score"], 9 * sizes)
    np.testing.assert_allclose(counted["pqd"], 9 * sizes)
    assert _from_lowest(curve, None, -10.0)["pqd"].isna().all()
    pd.testing.assert_frame_equal(_from_lowest(curve, bins, 0.0), curve)
