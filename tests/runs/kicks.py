"""Simulators for tests of runs. Workers import this file, and start the sooner for how little it needs."""

import time

import numpy as np


def kick(solution, seed):
    """Where a ball is after two kicks; it rolls a little by itself."""
    path = np.cumsum(solution.reshape(2, 2) ** 3, axis=0) + np.random.default_rng(seed).normal(0, 0.01, (2, 2))
    return -np.abs(solution).sum(), path.ravel(), path[-1]


def unseen(solution, seed):
    """The same without a truth."""
    return kick(solution, seed)[:2]


def unreliable(solution, seed):
    """The same, but some kicks fail: for good, or because they are nonsense."""
    if solution[0] > 0.8:
        raise RuntimeError("missed the ball")
    fitness, behavior, truth = kick(solution, seed)
    return fitness, np.full(4, np.nan) if solution[0] < -0.8 else behavior, truth


def fails(seed):
    """One evaluation in four."""
    return seed % 4 == 0


def uneven(solution, seed):
    """Takes longer for some, and fails for some: known from the seed alone."""
    time.sleep(0.02 if seed % 10 == 0 else 0.0005)
    if fails(seed):
        raise RuntimeError("missed the ball")
    return kick(solution, seed)
