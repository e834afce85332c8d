"""A small problem for the ask/tell class."""

import numpy as np

from vqelites import VQElites

SETTINGS = {
    "solution_dim": 3,
    "behavior_shape": (4,),
    "cells": 24,
    "latent_dim": 2,
    "batch_size": 16,
    "iterations": 20,
    "update_every": 2,
    "epochs": 2,
    "bootstrap": 32,
}


def simulate(solutions):
    behavior = np.concatenate([solutions, np.sin(3 * solutions[:, :1])], axis=1)
    return -np.square(solutions).sum(axis=1), behavior


def new(**changes):
    return VQElites(**(SETTINGS | changes))


def run(qd, batches, size=16):
    for _ in range(batches):
        qd.tell(*simulate(qd.ask(size)))
    return qd


def assert_same_archive(a, b):
    for name in ("solutions", "fitness", "behavior", "descriptors", "truth", "cells"):
        np.testing.assert_array_equal(getattr(a.archive, name), getattr(b.archive, name))
