"""What `import vqelites` costs and offers, seen from a fresh interpreter."""

import importlib.metadata
import json
import subprocess
import sys

import pytest

import vqelites

HEAVY = ["bokeh", "matplotlib", "orbax", "pandas", "panel", "rich", "scipy", "tensorstore", "tyro"]
WORKER = "vqelites.evaluation.worker"


def fresh(code):
    """What a new interpreter prints, as JSON."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_import_leaves_what_only_runs_and_figures_need_for_later():
    names = "from vqelites import VQElites, vq_elites"
    code = f"import json, sys; {names}; print(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    assert fresh(code) == []


def test_a_worker_process_imports_no_jax():
    """It starts in a quarter of a second, not in two. Of the command `vqelites` it imports the main module again."""
    heavy = [*HEAVY, "cloudpickle", "equinox", "jax", "optax"]
    code = f"import json, sys, vqelites.__main__, {WORKER}"
    code += f"; print(json.dumps([name for name in {heavy} if name in sys.modules]))"
    assert fresh(code) == []


def test_import_starts_no_device():
    """On a GPU that takes seconds, reserves memory, and is too early for `jax.distributed` and for flags."""
    code = "from vqelites import VQElites; from jax._src.xla_bridge import backends_are_initialized as started"
    assert fresh(f"{code}; print(int(started()))") == 0


def test_all_names_are_there_and_listed():
    for name in vqelites.__all__:
        assert getattr(vqelites, name).__module__.startswith("vqelites."), name
    assert set(vqelites.__all__) <= set(dir(vqelites))
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        vqelites.rum  # noqa: B018


def test_version_is_that_of_the_package_wherever_it_is_asked_for():
    version = importlib.metadata.version("vqelites")
    assert vqelites.__version__ == version
    command = [sys.executable, "-m", "vqelites", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"vqelites {version}\n"
