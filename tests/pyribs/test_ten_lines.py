"""CMA-ME on learned descriptors in ten lines: those of the docs run as they stand, and so does one round of them."""

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ribs", reason="needs the extra ribs: pip install 'vqelites[ribs]'")

from ribs.emitters import EvolutionStrategyEmitter
from ribs.schedulers import Scheduler

from vqelites.ribs import VQArchive

DOCS = Path(__file__).parents[2] / "docs"
WEIGHTS = np.random.default_rng(0).normal(size=(8, 30))


def simulate(solutions):
    """Small solutions are best, and do 30 things."""
    return -np.square(solutions).sum(axis=1), np.sin(solutions @ WEIGHTS)


@pytest.mark.slow
def test_one_round():
    archive = VQArchive(solution_dim=8, behavior_shape=(30,), cells=300, latent_dim=2, seed=0)
    emitter = EvolutionStrategyEmitter(archive, x0=np.zeros(8), sigma0=0.5, ranker="2imp", batch_size=36)
    scheduler = Scheduler(archive, [emitter])
    solutions = scheduler.ask()
    objective, behavior = simulate(solutions)
    scheduler.tell(objective, archive.encode(behavior), behavior=behavior)
    with pytest.warns(RuntimeWarning, match="oriented on 36 distinct behaviors, fewer than its 300 cells"):
        archive.train()
    assert len(archive) > 10


@pytest.mark.slow
def test_the_first_block_of_the_docs(capsys):
    block = re.search(r"```python\n(.*?)```", (DOCS / "pyribs.md").read_text(), re.DOTALL)[1]
    names = {"simulate": simulate}
    exec(compile(block, "pyribs.md", "exec"), names)
    assert names["archive"].stats.coverage > 0.5
    assert "num_elites" in capsys.readouterr().out
