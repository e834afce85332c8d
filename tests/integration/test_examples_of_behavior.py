"""The examples of pyribs, own networks, series and videos, in small."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {"cells": 32, "bootstrap": 64, "bootstrap_epochs": 20, "batch_size": 16}


def example(name):
    """Its module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_pyribs_emitters(tmp_path):
    pytest.importorskip("ribs", reason="needs the extra ribs: pip install 'vqelites[ribs]'")
    import matplotlib as mpl

    mpl.use("Agg")
    archive = example("pyribs_emitters").main(rounds=4, train_every=2, cells=64, out=tmp_path / "space.png")
    assert len(archive) > 20
    assert (tmp_path / "space.png").stat().st_size > 1000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The model has learned next to nothing")  # in 20 epochs
def test_own_encoder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    qd = example("own_encoder").main(rounds=6, **SMALL)
    assert len(qd.archive) > 10
    assert qd.iteration >= 6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["series", "video"])
def test_series_and_video(name, tmp_path):
    run = example(name).main(out=tmp_path / "run", iterations=6, **SMALL)
    assert run.finished
    assert len(run.archive) > 10
    assert (tmp_path / "run" / "figures" / "gallery.png").exists()
