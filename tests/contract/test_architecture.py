"""Imports point one way: a part knows the shared records and its own folder, only the loop knows all parts."""

import ast
from pathlib import Path

import pytest

import vqelites

ROOT = Path(vqelites.__file__).parent
SHARED = {"vqelites.types", "vqelites.keys", "vqelites.tessellation"}
PARTS = ["archives", "descriptors", "tasks", "variation"]


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "vqelites")


@pytest.mark.parametrize("part", PARTS)
def test_a_part_imports_only_shared_records_and_its_own_folder(part):
    for path in sorted((ROOT / part).rglob("*.py")):
        for name in imported(path):
            own = name.startswith(f"vqelites.{part}")
            assert not name.startswith("vqelites.") or own or name in SHARED, f"{path} imports {name}"


@pytest.mark.parametrize("module", ["types.py", "keys.py", "tessellation.py"])
def test_shared_records_import_nothing_of_the_package_above_them(module):
    below = {"vqelites.types", "vqelites.keys"}
    assert {name for name in imported(ROOT / module) if name.startswith("vqelites")} <= below


def test_nothing_below_the_surface_draws_or_parses_commands():
    for path in ROOT.glob("*.py"):
        if path.name in ("demo.py", "cli.py"):
            continue
        for name in imported(path):
            assert not name.startswith("vqelites.plots"), f"{path} imports {name}"


def test_runs_know_neither_studies_nor_the_command_line_and_draw_in_one_place():
    for path in [*sorted((ROOT / "experiments").rglob("*.py")), *sorted((ROOT / "runs").rglob("*.py"))]:
        for name in imported(path):
            assert not name.startswith(("vqelites.studies", "vqelites.cli")), f"{path} imports {name}"
            assert not name.startswith("vqelites.plots") or path.name == "pictures.py", f"{path} imports {name}"


def test_only_the_command_line_needs_its_parser():
    for path in sorted(ROOT.rglob("*.py")):
        if path.name not in ("cli.py", "commands.py"):
            assert not any(name.split(".")[0] == "tyro" for name in imported(path)), f"{path} imports tyro"
    assert not any(name.split(".")[0] == "tyro" for name in imported(ROOT / "runs" / "commands.py"))


def test_statistics_know_nothing_of_the_package_and_pictures_know_nothing_else_of_studies():
    assert not [name for name in imported(ROOT / "studies" / "statistics.py") if name.startswith("vqelites")]
    for path in sorted((ROOT / "plots").rglob("*.py")):
        found = {name for name in imported(path) if name.startswith("vqelites.studies")}
        assert found <= {"vqelites.studies.statistics"}, f"{path} imports {found}"


def test_claims_are_judged_from_tables_alone():
    """No file, no run and no picture can slip into a verdict."""
    below = ("vqelites.studies.catalogue", "vqelites.studies.evidence", "vqelites.studies.study")
    assert {name for name in imported(ROOT / "studies" / "claims.py") if name.startswith("vqelites")} <= set(below)


def test_files_stay_short():
    for path in sorted(ROOT.rglob("*.py")):
        assert len(path.read_text().splitlines()) <= 300, f"{path} is too long; split it by what its parts do"
