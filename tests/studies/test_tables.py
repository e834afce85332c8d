"""What the tables of a report say beside their numbers."""

import numpy as np
import pandas as pd

from vqelites.statistics import compare
from vqelites.studies.tables import floor


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
