"""Small runs with pinned numbers. After a change that is meant to alter them: `python tests/golden/regenerate.py`."""

import json
from pathlib import Path

import pytest
from regenerate import RUNS, summarise

pytestmark = pytest.mark.shipped
PINNED = json.loads((Path(__file__).parent / "runs.json").read_text())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "map-elites" else pytest.mark.slow) for name in RUNS]
)
def test_a_small_run_gives_the_pinned_numbers(name):
    """Other processors and compilers round differently, so learned runs drift a little; a bug moves them a lot."""
    summary = summarise(name)
    assert summary.keys() == PINNED[name].keys()
    tolerance = 1e-4 if name.endswith("map-elites") else 0.05
    for key, value in PINNED[name].items():
        assert summary[key] == pytest.approx(value, rel=tolerance, abs=1e-6), key
