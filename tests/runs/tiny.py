"""Runs small enough for tests: in this process, or as the command line in another."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np

from vqelites.experiments.presets import algorithms, settings
from vqelites.runs.config import Config, Saving
from vqelites.runs.run import Run

ALGORITHMS = algorithms()
_SEARCH = {"batch_size": 16, "bootstrap": 64}
_OWN = {
    "map-elites": {},
    "cvt-map-elites": {"cells": 40},
    "vq-elites": {"cells": 24, "epochs": 2},
    "aurora": {"target": 24, "capacity": 64, "epochs": 3},
    "aurora-plus": {"target": 24, "capacity": 64, "epochs": 3},
}
# Together as many as the bootstrap, or AURORA's capacity: then all trainings are one program.
_DATA = {"vq-elites": {"window": 40, "archive": 24}}
_MODEL = {"minibatch": 16, "bootstrap_epochs": 2}


def config(algorithm, iterations=40, chunk=5, **saving):
    """A tiny run of the planar arm."""
    made = settings("planar-arm", algorithm, "quick")
    changes = {"search": replace(made.search, iterations=iterations, **_SEARCH), **_OWN[algorithm]}
    if hasattr(made, "model"):
        changes["model"] = replace(made.model, **_MODEL)
    if algorithm in _DATA:
        changes["data"] = replace(made.data, **_DATA[algorithm])
    due = {"every": 10, "minutes": 1e6, **saving}  # never by the clock: where checkpoints are is looked at
    return Config("planar-arm", algorithm, "quick", replace(made, **changes), chunk, Saving(**due))


def flags(algorithm, iterations=40, chunk=5, every=10):
    """The same as options of `vqelites run`."""
    named = {f"search.{name}": value for name, value in _SEARCH.items()} | _OWN[algorithm]
    if hasattr(settings("planar-arm", algorithm, "quick"), "model"):
        named |= {f"model.{name}": value for name, value in _MODEL.items()}
    named |= {f"data.{name}": value for name, value in _DATA.get(algorithm, {}).items()}
    named |= {
        "algorithm": algorithm,
        "preset": "quick",
        "iterations": iterations,
        "chunk": chunk,
        "saving.every": every,
        "saving.minutes": 1e6,
    }
    return [
        "planar-arm",
        *(text for name, value in named.items() for text in (f"--{name.replace('_', '-')}", str(value))),
    ]


def command(cache: Path, *arguments, **options) -> subprocess.Popen:
    """`vqelites` in a process of its own, sharing compiled programs with the others of this test."""
    environment = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "COLUMNS": "100",
    }
    call = [sys.executable, "-c", "from vqelites.cli import main; main()", *map(str, arguments)]
    return subprocess.Popen(
        call, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )


def finish(process: subprocess.Popen, code: int = 0, seconds: float = 120) -> str:
    """Its output, once it has ended with this exit code."""
    try:
        output, _ = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert process.returncode == code, output
    assert "Traceback" not in output
    return output


def assert_same(one: Path, other: Path) -> None:
    """Both folders hold the same metrics (their time aside), archive, snapshots and final state, bit for bit."""
    a, b = Run.load(one), Run.load(other)
    assert a.finished
    assert b.finished
    rows = [[line.rsplit(",", 1)[0] for line in run.folder.metrics.read_text().splitlines()] for run in (a, b)]
    assert rows[0] == rows[1]
    assert len(rows[0]) == a.folder.iterations + 2
    for x, y in zip(vars(a.archive).values(), vars(b.archive).values(), strict=True):
        assert x.tobytes() == y.tobytes()
    assert [moment.iteration for moment in a.snapshots] == [moment.iteration for moment in b.snapshots]
    for x, y in zip(a.snapshots, b.snapshots, strict=True):
        for one, other in zip(vars(x).values(), vars(y).values(), strict=True):
            np.testing.assert_array_equal(one, other)
    leaves = [[np.asarray(leaf) for leaf in jax.tree.leaves(run.state())] for run in (a, b)]
    assert all(x.tobytes() == y.tobytes() for x, y in zip(*leaves, strict=True))
