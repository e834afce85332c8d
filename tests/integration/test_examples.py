"""The examples run as they stand, in small."""

import importlib.util
from pathlib import Path

import jax
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {"cells": 20, "iterations": 1, "batch_size": 16, "bootstrap": 32, "epochs": 1, "bootstrap_epochs": 1}


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Brax, which uses what MuJoCo has renamed
def test_a_robot_of_brax(tmp_path):
    pytest.importorskip("brax", reason="needs the extra brax: pip install 'vqelites[brax]'")
    with jax.numpy_rank_promotion("allow"):
        run = load("brax_ant").main(tmp_path / "run", steps=5, hidden=(4,), **SMALL)
    assert run.config.task == "brax:ant-omni,behavior=path,hidden=4x,steps=5"
    assert run.finished
    assert 0 < run.metrics["coverage"].iloc[-1] < 1


@pytest.mark.slow
@pytest.mark.parametrize(("name", "shape"), [("gymnasium_lander", (32, 8)), ("minigrid_frames", (64, 64, 3))])
def test_environments_of_gymnasium(name, shape, tmp_path):
    pytest.importorskip("gymnasium", reason="needs the extra gym: pip install 'vqelites[gym]'")
    run = load(name).main(tmp_path / "run", **SMALL)
    assert run.finished
    assert run.archive.behavior.shape[1:] == shape
    assert len(run.archive) > 1
