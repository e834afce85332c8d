"""A small problem for pyribs: where the joints of a planar arm are, and how evenly it is bent."""

import numpy as np

from vqelites.ribs import VQArchive

JOINTS = 3


def arm(solutions):
    """Objectives (n,) and behavior (n, 3, 2), the positions of the joints."""
    angles = np.cumsum(solutions, axis=1)
    steps = np.stack([np.cos(angles), np.sin(angles)], axis=2)
    return -np.var(solutions, axis=1), np.cumsum(steps, axis=1)


def small(**options):
    """An archive for it that trains in a moment."""
    plain = {"solution_dim": JOINTS, "behavior_shape": (JOINTS, 2), "cells": 32, "bootstrap_epochs": 3, "epochs": 2}
    return VQArchive(**plain | options)


def some(count, seed=0):
    """Random solutions with their objectives and behavior."""
    solutions = np.random.default_rng(seed).uniform(-1, 1, (count, JOINTS))
    return solutions, *arm(solutions)


def add(archive, count=60, seed=0):
    """Add random solutions; what the archive said."""
    solutions, objective, behavior = some(count, seed)
    return archive.add(solutions, objective, archive.encode(behavior), behavior=behavior)
