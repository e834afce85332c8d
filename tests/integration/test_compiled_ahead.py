"""Compiling the first training takes longer than the training: it is done beside the first evaluations."""

import concurrent.futures

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vqelites import AskTell, drive
from vqelites.algorithms import Effort, aurora
from vqelites.archives import UnstructuredArchive
from vqelites.descriptors import AutoEncoder
from vqelites.tasks import PlanarArm


def _tell(qd, count):
    solutions = qd.ask(count)
    return qd.tell(-np.square(solutions).sum(axis=1), np.repeat(solutions, 3, axis=1))


@pytest.mark.parametrize("algorithm", ["aurora", pytest.param("vq-elites", marks=pytest.mark.slow)])
def test_the_first_training_is_compiled_beside_the_bootstrap(algorithm, caplog):
    sizes = {"bootstrap": 24, "batch_size": 8, "bootstrap_epochs": 60, "epochs": 1}  # no other test has them
    qd = AskTell(algorithm, solution_dim=3, behavior_shape=9, **sizes)
    _tell(qd, 8)
    concurrent.futures.wait([qd._now.host._ahead])
    with jax.log_compiles(), caplog.at_level("WARNING"):
        told = [_tell(qd, 8) for _ in range(2)][-1]
        qd.ask(5)  # so many were not asked for before: the log hears that
    assert told.trainings == 1
    assert len([text for text in caplog.messages if "Compiling jit(call)" in text]) == 1


def test_a_bootstrap_told_at_once_trains_without_compiling_ahead():
    qd = AskTell("aurora", solution_dim=3, behavior_shape=9, bootstrap=8, batch_size=8, bootstrap_epochs=60, epochs=1)
    assert _tell(qd, 8).trainings == 1
    assert qd._now.host._ahead is None


def test_what_fails_to_compile_ahead_fails_where_it_is_needed(monkeypatch):
    from vqelites.drive.host import Host

    monkeypatch.setattr(Host, "_compile_training", lambda *_: 1 / 0)
    qd = AskTell("aurora", solution_dim=3, behavior_shape=9, bootstrap=24, batch_size=8, bootstrap_epochs=60, epochs=1)
    assert _tell(qd, 24).trainings == 1


def test_a_compiled_run_compiles_each_program_once(caplog):
    """Two threads that need a program at the same time would both compile it."""
    task = PlanarArm(joints=3, behavior="joints")
    effort = Effort(iterations=3, batch_size=8, bootstrap=24, bootstrap_epochs=1)
    model, archive = AutoEncoder(task.behavior_shape, 2, bounded=False), UnstructuredArchive(24, 16)
    runs = drive.Compiled(aurora(task, model, archive, epochs=1, effort=effort), task)
    jax.config.update("jax_log_compiles", True)  # in all threads
    try:
        with caplog.at_level("WARNING"):
            state, _ = runs.begin(jnp.arange(1), then=3)
            runs.advance(state, 0, 3)
    finally:
        jax.config.update("jax_log_compiles", False)
    compiled = [text.split("jit(")[1].split(")")[0] for text in caplog.messages if "Compiling jit(" in text]
    assert all(compiled.count(name) == 1 for name in ("_begin", "_learn", "_iterate", "_assign")), compiled
