"""The documentation: the site builds, its links lead somewhere, its code runs and its commands are understood."""

import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import jax
import pytest

import vqelites
from vqelites import cli

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

# Sizes for a test instead of those for a reader.
SMALL = [
    (r"\bITERATIONS = \d+", "ITERATIONS = 10"),
    (r"\biterations=\d+", "iterations=2"),
    (r"\bcells=\d{3,}", "cells=30"),
    (r"range\(1, 201\)", "range(1, 21)"),
    (r"\bsteps=\d+", "steps=8"),
    (r"seeds=5", "seeds=1"),
    (r"(?=\bout=)", "bootstrap=64, bootstrap_epochs=1, epochs=1, batch_size=32, "),
    (r'preset="quick", seed=1', 'preset="quick", seed=1, iterations=2'),
    (r'write_report\("planar", bootstrap.*?out=', 'write_report("planar", out='),
    (r"solution_dim=2, cluster", "solution_dim=2, iterations=2, cells=30, cluster"),
]
NEEDS = {"brax.md": ["brax"], "gymnasium.md": ["Box2D"], "pyribs.md": ["ribs"], "scale.md": ["ray"]}
TESTED_ELSEWHERE = ["README.md", "coming_from.md"]  # their tests also look at what comes out
# By hand: compiling a robot takes minutes, and `make test-slow` has examples/brax_ant.py; a cluster that a page starts
# in this process would be taken for their own by the tests of clusters, which have all of that page.
LONG = ["brax.md", "scale.md"]


# What pages call a file of the reader's.
MY_SIMULATORS = """
import vqelites


@vqelites.simulator(solution_dim=2)
def throw(solution, seed): ...


@vqelites.simulator(solution_dim=6)
def ball(solution, seed): ...
"""


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def commands(page):
    """The `vqelites` commands of a page, and those in its sentences and tables that start something by name."""
    lines = [line for block in blocks(page, "bash") for line in block.splitlines()]
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    lines += [" ".join(words.split()) for words in re.findall(r"`(vqelites (?:run|study)\s[^`]+)`", prose)]
    return [line for line in lines if line.startswith("vqelites ") and " TASK" not in line]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as `make docs` builds it.

    Links and anchors between pages are checked by MkDocs: a broken one is a warning, and warnings are errors.
    """
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_loads_nothing_from_elsewhere(site):
    for page in site.rglob("*.html"):
        assert not re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="https?://[^"]+"', page.read_text())


def test_equations_are_drawn_as_the_site_is_built(site):
    """Left as LaTeX they would need a script."""
    page = (site / "algorithms" / "index.html").read_text()
    written = re.findall(r"\$\$.+?\$\$|\$.+?\$", (ROOT / "docs" / "algorithms.md").read_text(), re.DOTALL)
    assert len(re.findall(r'<svg[^>]+role="img"', page)) == len(written) > 4
    assert "arithmatex" not in page


def test_links_of_pages_outside_the_site_lead_to_files():
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_files_that_pages_name_exist():
    for page in PAGES:
        for name in re.findall(r"(?:examples|benchmarks)/[\w/]+\.(?:py|md)", page.read_text()):
            assert (ROOT / name).exists(), f"{page.name} names {name}"


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=lambda page: page.stem)
def test_commands_are_understood(page, monkeypatch, tmp_path):
    """Every task, algorithm, option and value that a page shows is there; nothing is run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "my_sim.py").write_text(MY_SIMULATORS)
    for line in commands(page):
        cli._parse(shlex.split(line, comments=True)[1:])


@pytest.mark.slow
def test_tests_that_pages_tell_to_run_are_there():
    """One was called slow after it had become long: no test would have run."""
    for page in PAGES:
        for options in re.findall(r"\bpytest( [^`\n]*tests/[^`\n]*)", page.read_text()):
            command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *shlex.split(options)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, f"{page.name}: {' '.join(command)}\n{done.stdout}{done.stderr}"


def public(page):
    """Names of this package that a page imports or writes out in full."""
    for block in blocks(page, "python"):
        for module, names in re.findall(r"^\s*from (vqelites[\w.]*) import ([\w, ]+)", block, re.MULTILINE):
            yield from (f"{module}.{name.strip()}" for name in names.split(","))
        yield from re.findall(r"\bvqelites\.[A-Za-z]\w*(?=\()", block)


def test_whatever_pages_use_is_in_the_reference():
    """By its name, or with the module that defines it."""
    shown = set(re.findall(r"^::: (\S+)", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE))
    wanted = {f"vqelites.{name}" for name in vqelites.__all__} | {name for page in PAGES for name in public(page)}
    for name in wanted - shown:
        module, _, last = name.rpartition(".")
        assert getattr(importlib.import_module(module), last).__module__ in shown, name


CODED = [
    pytest.param(page, id=page.stem, marks=pytest.mark.soak if page.name in LONG else pytest.mark.slow)
    for page in PAGES
    if blocks(page, "python") and page.name not in TESTED_ELSEWHERE
]


def simulate(solutions):
    """What the page on pyribs takes from its reader: objectives (n,) and behavior (n, 30)."""
    return -abs(solutions).sum(axis=1), solutions.repeat(4, axis=1)[:, :30]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of Brax, which uses what MuJoCo has renamed
@pytest.mark.parametrize("page", CODED)
def test_code_runs(page, tmp_path, monkeypatch):
    """All blocks of a page one after the other, in small sizes."""
    for module in NEEDS.get(page.name, []):
        pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__", "simulate": simulate}
    with jax.numpy_rank_promotion("allow"):  # Brax and QDax rely on it
        for block in blocks(page, "python"):
            for pattern, smaller in SMALL:
                block = re.sub(pattern, smaller, block)
            exec(compile(block, page.name, "exec"), names)
