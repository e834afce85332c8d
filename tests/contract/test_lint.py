"""What `make lint` must find."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
MISSPELLED = "def answer() -> int:\n    return anwser\n"


def output(tool, *arguments, code=""):
    """What a tool says when it is run as `make lint` runs it, with the project's settings."""
    call = [sys.executable, "-m", tool, *arguments]
    return subprocess.run(call, cwd=ROOT, input=code, capture_output=True, text=True, check=False).stdout


def test_undefined_names_are_found_in_the_package_by_mypy_and_elsewhere_by_ruff(tmp_path):
    (tmp_path / "any.py").write_text(MISSPELLED)
    assert 'Name "anwser" is not defined' in output("mypy", f"--cache-dir={tmp_path}", tmp_path / "any.py")
    for place in ("tests/test_any.py", "benchmarks/any.py", "examples/any.py"):
        assert "F821" in output("ruff", "check", "--stdin-filename", place, "-", code=MISSPELLED)
