"""The documentation site builds without a warning, asks no other host for anything, and its first page runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for page in tmp_path.rglob("*.html"):
        assert not re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="https?://[^"]+"', page.read_text())


@pytest.mark.slow
def test_the_first_page_runs_as_it_stands(tmp_path):
    [code] = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "index.md").read_text(), re.DOTALL)
    (tmp_path / "page.py").write_text(code)
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Stats(size=" in done.stdout
