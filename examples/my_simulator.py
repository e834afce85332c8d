"""A simulator of your own, in plain NumPy: three blows drive a puck over a table that is never quite even.

    vqelites run puck --task-file examples/my_simulator.py --preset quick --workers 4 --out runs/puck
    vqelites show runs/puck
    vqelites verify runs/puck --task-file examples/my_simulator.py

A function will do as well: `@vqelites.simulator(solution_dim=6)` above `def puck(solution, seed)`.
"""

import numpy as np

import vqelites


@vqelites.simulator(
    name="puck",
    solution_dim=6,
    bounded=True,  # random solutions and their children lie in [-1, 1]
    truth_low=(-1, -1),  # of the truth that `simulate` returns: with bins, metrics say how much of the table is reached
    truth_high=(1, 1),
    bins=(12, 12),
)
class Puck:
    """three blows drive a puck over a table"""

    def simulate(self, solution, seed):
        """Fitness (maximised), behavior (what is seen), and truth (for metrics only; may be left out)."""
        path = self.path(solution, seed)
        effort = np.square(solution).mean()
        return -effort, path, path[-1]

    def path(self, solution, seed):
        """Where the puck is after each blow, (4, 2). All randomness comes from the seed, so that it can be replayed."""
        blows = (solution * np.abs(solution)).reshape(3, 2)
        slips = np.random.default_rng(seed).normal(0, 0.01, (3, 2))
        return np.concatenate([np.zeros((1, 2)), np.cumsum([0.5, 0.3, 0.2] * (blows + slips).T, axis=1).T])

    def draw(self, axes, solutions):
        """Some solutions in their world."""
        for solution in solutions:
            axes.plot(*self.path(solution, 0).T, marker="o", markevery=[-1])
        axes.set(xlim=(-1, 1), ylim=(-1, 1), aspect="equal", xlabel="x", ylabel="y")
