"""Run folders of any size and kind of behavior, written in an instant by the writers of real runs."""

from dataclasses import replace

import numpy as np

from vqelites.runs import contents, metrics_file
from vqelites.runs.config import Config
from vqelites.runs.contents import Snapshot
from vqelites.runs.files import save_arrays
from vqelites.runs.folder import create
from vqelites.tasks import Interface

SHAPES = {"vector": (6,), "series": (15, 2), "image": (16, 16, 1), "colour": (12, 12, 3), "video": (5, 16, 16, 1)}
MOMENTS = (5, 10, 20)


def write_run(path, kind="vector", count=60, latent=2, task="ball", seed=0, moments=MOMENTS, saved=True, in_jax=False):
    """A run of VQ-Elites of 20 iterations, with snapshots in which elites become more and move apart.

    The behavior of elite i is full of i / count, so that one can tell which one is shown.
    """
    config = Config.of(task, "vq-elites", "quick", iterations=20)
    interface = None if in_jax else Interface(3, behavior_shape=SHAPES[kind], truth_dim=2)
    settings = replace(config.settings, cells=count + 4)
    folder = create(path, replace(config, settings=settings, interface=interface), seed, {})
    random = np.random.default_rng(seed)
    codes = random.uniform(-1, 1, (count + 4, latent)).astype(np.float32)
    places = codes[:count] + random.normal(0, 0.001, (count, latent)).astype(np.float32)
    fitness = -np.linalg.norm(places, axis=1)
    ids = np.sort(random.permutation(20 * count)[:count]).astype(np.int32)
    metrics = metrics_file.MetricsFile(folder.metrics)
    metrics.append(_rows(count, max(moments)))
    for moment in moments:
        some = slice(0, count * moment // max(moments))
        shrunk = np.float32(moment / max(moments))
        taken = Snapshot(moment, ids[some], fitness[some], places[some] * shrunk, codes * shrunk)
        contents.save_snapshot(folder, taken)
    if saved:
        levels = np.arange(count, dtype=np.float32).reshape(-1, *(1 for _ in SHAPES[kind])) / count
        arrays = {
            "ids": ids, "solutions": random.normal(size=(count, 3)).astype(np.float32), "fitness": fitness,
            "behavior": np.broadcast_to(levels, (count, *SHAPES[kind])).copy(), "descriptors": places,
            "truth": places[:, :2] * 5, "cells": np.arange(count, dtype=np.int32),
        }  # fmt: skip
        about = {"format": contents.FORMAT, "config": folder.identity, "save": 20, "iteration": max(moments)}
        about |= {"bootstrapping": False, "seconds": 1.0, "rejected": 0, "metrics": metrics.mark(), "chosen": None}
        save_arrays(folder.archive, arrays, about)
    return path


def _rows(count, iterations):
    rows = {name: np.full(iterations + 1, np.nan) for name in metrics_file.COLUMNS}
    steps = np.arange(iterations + 1)
    rows |= {"iteration": steps, "evaluations": count * (steps + 1), "size": steps, "loss": 1 / (steps + 1)}
    rows |= {name: np.zeros(iterations + 1) for name in ("rejected", "restarted", "elites_lost", "seconds")}
    return metrics_file.lines(rows)
