"""Simulators in plain NumPy for tests; as a task file it registers all of them."""

import numpy as np


def rolled(solution):
    """The path (8, 2) of a ball that is pushed in two directions."""
    time = np.linspace(0, 1, 8)[:, None]
    return solution[:2] * time + 0.3 * solution[2] * np.sin(3 * time)


def blind(solution, seed):
    """a ball of which nothing is known but its path"""
    if solution[0] > 0.9:
        raise ValueError(f"pushed too hard: {solution[0]:.3f}")
    return 1 - float(np.abs(solution).mean()), rolled(solution)


class Seen:
    """a ball that is seen where it ends, and can be drawn"""

    def simulate(self, solution, seed):
        path = rolled(solution)
        return 1 - float(np.abs(solution).mean()), path, path[-1]

    def draw(self, axes, solutions):
        for solution in solutions:
            axes.plot(*rolled(solution).T)
        axes.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5))


SEEN = {"truth_low": (-1.5, -1.5), "truth_high": (1.5, 1.5), "bins": (6, 6)}


def register():
    """Make them known by name."""
    from vqelites.tasks import registry  # workers import this file too, and need no JAX

    registry.simulator(name="blind", solution_dim=3)(blind)
    registry.simulator(name="seen", solution_dim=3, **SEEN)(Seen)


if __name__.startswith("vqelites_task_file"):
    register()
