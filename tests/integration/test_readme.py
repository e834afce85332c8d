"""The code of the README's first page does what it says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).parents[2] / "README.md").read_text()


def blocks(heading):
    """The Python code under a heading."""
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


@pytest.mark.slow
def test_the_code_for_jax_runs():
    [code] = blocks("Use it on a JAX task")
    for reader, test in (("jnp.arange(5)", "jnp.arange(1)"), ("400", "5")):
        assert reader in code
        code = code.replace(reader, test)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["info"].measures["coverage"].shape == (1, 5)


@pytest.mark.slow
def test_the_first_page_runs_as_it_stands(tmp_path):
    [own], [loop] = blocks("Your simulator, in ten lines"), blocks("If you own the loop")
    assert own.count("\n") < 18
    guarded = "".join(f"    {line}\n" for line in loop.splitlines())
    (tmp_path / "page.py").write_text(f"{own}\n{guarded}")
    done = subprocess.run([sys.executable, "page.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Stats(size=" in done.stdout
    for folder in ("throws", "my-run"):
        shown = subprocess.run(
            [sys.executable, "-m", "vqelites", "show", folder], cwd=tmp_path, capture_output=True, text=True
        )
        assert "vq-elites on" in shown.stdout, shown.stderr
    assert (tmp_path / "throws" / "figures" / "latent.png").exists()
