"""The folder of a saved ask/tell optimizer."""

import jax.numpy as jnp
import numpy as np
from asking import assert_same_archive, new, run

from vqelites import VQElites


def test_numpy_scalars_and_arrays_as_settings_can_be_saved(tmp_path):
    settings = {
        "cells": np.int64(24),
        "latent_dim": np.int32(2),
        "epochs": np.int16(2),
        "seed": np.uint8(3),
        "bounded": np.bool_(True),
        "iso": np.float32(0.1),
    }
    qd = run(new(**settings, low=np.full(3, -2.0, np.float32), high=jnp.ones(3), behavior_shape=np.array([4])), 3)
    qd.save(tmp_path / "run")
    loaded = VQElites.load(tmp_path / "run")
    assert_same_archive(run(qd, 2), run(loaded, 2))
