"""The guide for users of QDax and pyribs: the same job in all three, as it stands, but shorter."""

import re
from pathlib import Path

import jax
import numpy as np
import pytest

pytest.importorskip("qdax", reason="needs the extra qdax: pip install 'vqelites[qdax]'")
pytest.importorskip("ribs", reason="needs the extra ribs: pip install 'vqelites[ribs]'")

GUIDE = Path(__file__).parents[2] / "docs" / "coming_from.md"


@pytest.mark.slow
def test_every_block_of_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text().replace("ITERATIONS = 200", "ITERATIONS = 10")
    names = {"__name__": "guide"}
    with jax.numpy_rank_promotion("allow"):  # QDax relies on it
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            exec(compile(block, GUIDE.name, "exec"), names)
    found = [names["given"].archive, names["learned"].archive, names["theirs"]]
    sizes = [len(names["archive"]), *map(len, found)]
    assert min(sizes) > 100
    filled = np.asarray(names["mine"].fitnesses)[:, 0] > -np.inf
    assert filled.sum() == len(names["learned"].archive)
    assert names["again"].finished
