"""pyribs' emitters on learned descriptors: a planar arm should reach everywhere, and nobody says what "where" is.

pip install "vqelites[ribs]"
python examples/pyribs_emitters.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from ribs.emitters import EvolutionStrategyEmitter, IsoLineEmitter
from ribs.schedulers import Scheduler
from ribs.visualize import cvt_archive_heatmap

from vqelites.ribs import VQArchive

JOINTS = 8


def evaluate(solutions):
    """How evenly the arm is bent (n,), and where its joints are, (n, 8, 2)."""
    angles = np.cumsum(np.pi * solutions, axis=1)
    links = np.stack([np.cos(angles), np.sin(angles)], axis=2) / JOINTS
    return 1 - np.std(solutions, axis=1), np.cumsum(links, axis=1)


def main(rounds=300, train_every=10, cells=500, out="runs/pyribs_emitters.png"):
    """Search, train now and then, and draw the learned space."""
    archive = VQArchive(solution_dim=JOINTS, behavior_shape=(JOINTS, 2), cells=cells, latent_dim=2, seed=0)
    x0 = np.zeros(JOINTS)
    strategies = [
        EvolutionStrategyEmitter(archive, x0=x0, sigma0=0.2, ranker="2imp", batch_size=36, seed=seed) for seed in (1, 2)
    ]
    line = IsoLineEmitter(archive, x0=x0, iso_sigma=0.05, line_sigma=0.2, batch_size=36, seed=3)
    scheduler = Scheduler(archive, [*strategies, line])
    for i in range(1, rounds + 1):
        objective, behavior = evaluate(scheduler.ask())
        scheduler.tell(objective, archive.encode(behavior), behavior=behavior)
        if i % train_every == 0:
            trained = archive.train(progress=i / rounds)
            lost = f"{trained.lost} lost their cells"
            print(f"round {i}: {len(archive)} elites, {lost}, QD score {archive.stats.qd_score:.1f}")
    cvt_archive_heatmap(archive)
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    plt.savefig(out)
    return archive


if __name__ == "__main__":
    main()
