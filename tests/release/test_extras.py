"""The wheel in an empty environment, with each extra alone: what the extra is for works. Needs a package index."""

import os
import subprocess
import textwrap
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

START = """
import numpy as np
import vqelites

small = {"cells": 20, "iterations": 2, "batch_size": 16, "bootstrap": 32, "epochs": 1, "bootstrap_epochs": 1}

def throw(solution, seed):
    angle, speed = np.pi / 4 * (1 + 0.9 * solution[0]), 6 + 4 * solution[1]
    return -speed, np.stack([np.cos(angle) * speed * np.linspace(0, 1, 8), np.linspace(0, 1, 8)], axis=1)
"""
RUN = "run = vqelites.run(throw, solution_dim=2, out='run', workers=2, **small)\nassert run.finished"
# What each extra is for, in the smallest size.
USES = {
    "": RUN,
    "bench": "import qdax",
    "brax": """
task = vqelites.BraxTask("hopper-uni", behavior="path", steps=3, hidden=(4,))
assert vqelites.run(task, out="run", **small).finished
""",
    "cluster": """
run = vqelites.run(throw, solution_dim=2, out="run", cluster="auto", workers=1, **small)
assert run.finished
""",
    "docs": "import material, mkdocs, mkdocstrings",
    "explore": f"""
{RUN}
import urllib.request
from vqelites.runs.explored import serve_run

assert urllib.request.urlopen(serve_run(run.folder.path)).status == 200
""",
    "gym": """
run = vqelites.run(vqelites.GymTask("LunarLander-v3", steps=8), out="run", workers=2, **small)
assert run.finished and run.render(0).frames.ndim == 4
""",
    "qdax": f"""
{RUN}
from vqelites.qdax import from_repertoire, to_repertoire

repertoire = to_repertoire(run.archive, run.state().archive.cells)
assert len(from_repertoire(repertoire)) == len(run.archive)
""",
    "ribs": """
from vqelites.ribs import VQArchive

archive = VQArchive(solution_dim=2, behavior_shape=(3,), cells=10)
behavior = np.random.default_rng(0).normal(size=(40, 3))
archive.add(np.zeros((40, 2)), np.zeros(40), archive.encode(behavior), behavior=behavior)
archive.train()
assert len(archive) > 3
""",
    "track": """
run = vqelites.run(throw, solution_dim=2, out="run", track="tensorboard", **small)
assert list(run.folder.path.glob("track/tensorboard/**/events*"))
""",
}


@pytest.mark.soak
@pytest.mark.parametrize("extra", sorted(USES))
def test_the_wheel_with_one_extra_alone(extra, wheel, tmp_path):
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"

    def run(*command):
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(python, "-m", "pip", "install", "--quiet", f"{wheel}[{extra}]" if extra else wheel)
    run(python, "-m", "pip", "check")
    (tmp_path / "use.py").write_text(START + "\nif __name__ == '__main__':\n" + textwrap.indent(USES[extra], "    "))
    run(python, "use.py")
    assert run(python.parent / "vqelites", "--version").split()[1] in wheel.name


def test_every_extra_is_tried():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(USES) == {"", *extras} - {"dev"}  # `make test` itself stands on that one
