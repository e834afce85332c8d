"""The folder of a saved ask/tell optimizer."""

import jax.numpy as jnp
import numpy as np
import pytest
from asking import assert_same_archive, new, run

from vqelites import AskTell, VQElites


def test_numpy_scalars_and_arrays_as_settings_can_be_saved(tmp_path):
    settings = {
        "cells": np.int64(24),
        "latent_dim": np.int32(2),
        "epochs": np.int16(2),
        "seed": np.uint8(3),
        "bounded": np.bool_(True),
        "iso": np.float32(0.1),
        "bootstrap": np.int64(96),  # nothing is trained
    }
    qd = run(new(**settings, low=np.full(3, -2.0, np.float32), high=jnp.ones(3), behavior_shape=np.array([4])), 3)
    qd.save(tmp_path / "run")
    loaded = VQElites.load(tmp_path / "run")
    assert_same_archive(run(qd, 2), run(loaded, 2))


def test_the_class_of_one_algorithm_does_not_load_another(tmp_path):
    AskTell("aurora", solution_dim=3, behavior_shape=4, bootstrap=8).save(tmp_path)
    with pytest.raises(ValueError, match=r"run of aurora: use AskTell\.load"):
        VQElites.load(tmp_path)
