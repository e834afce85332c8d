"""Time series as behavior: all the ways in which a pendulum can be swung, without saying what a way is.

    python examples/series.py

A series has the shape (T, d): T moments of d channels, which count equally by default. Here they are an angle and an
angular velocity, in different units.
"""

import numpy as np

import vqelites

MOMENTS, STEP = 40, 0.05


def swing(solution, seed):
    """A torque of two sines moves a pendulum: the less effort the better, and how angle and velocity went."""
    strength, pace = solution[:2] * 4, 1 + 2 * (solution[2:] + 1)
    angle, velocity, effort, series = 0.0, 0.0, 0.0, []
    for moment in range(4 * MOMENTS):
        torque = float(np.sum(strength * np.sin(pace * moment * STEP)))
        velocity += STEP * (torque - 9.81 * np.sin(angle) - 0.1 * velocity)
        angle += STEP * velocity
        effort += STEP * torque**2
        if moment % 4 == 3:
            series.append((angle, velocity))
    return -effort, np.array(series)


def main(out="runs/series", **settings):
    """A run like any other; `vqelites show runs/series`, and pictures of some elites' series in its figures."""
    options = {"solution_dim": 4, "bounded": True, "cells": 300, "iterations": 100}
    run = vqelites.run(swing, out=out, **options | settings)
    print(run.archive.stats)
    return run


if __name__ == "__main__":
    main()
