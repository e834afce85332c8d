"""Imports point one way: a part knows the shared records and its own folder, only the loop knows all parts."""

import ast
import collections
import graphlib
import sys
from pathlib import Path

import pytest

import vqelites

ROOT = Path(vqelites.__file__).parent
SHARED = {
    f"vqelites.{name}"
    for name in ("types", "branches", "levels", "keys", "inputs", "rows", "tessellation", "distinct", "words")
}
PARTS = ["archives", "descriptors", "evaluation", "tasks", "variation"]
# Packages and modules of the house in their storeys: each imports only what is below it.
STOREYS = [
    ["branches", "levels"],
    ["types", "keys", "inputs", "rows", "tree", "words"],
    ["tessellation", "distinct", "statistics"],
    ["metrics", *PARTS],
    ["schedule", "dataset", "frames", "checkpoint"],
    ["loop"],
    ["algorithms", "drive"],
    ["experiments"],
    ["plots", "track", "ribs"],
    ["explore"],
    ["runs"],
    ["optimizer", "studies", "qdax"],
    ["cli"],
]


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names if node.module == "vqelites")


def room(name):
    """The package, or module beside the packages, that a dotted name belongs to."""
    return name.split(".")[1] if "." in name else "__init__"


def graph():
    """For every room those that it imports, wherever in its files."""
    found = collections.defaultdict(set)
    for path in sorted(ROOT.rglob("*.py")):
        own = path.relative_to(ROOT).parts[0].removesuffix(".py")
        found[own] |= {room(name) for name in imported(path) if name.startswith("vqelites.")} - {own}
    return found


def test_rooms_do_not_import_each_other_in_a_circle():
    graphlib.TopologicalSorter(graph()).prepare()  # raises CycleError with the circle


def test_every_room_imports_only_what_lies_below_it():
    height = {name: i for i, storey in enumerate(STOREYS) for name in storey}
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} <= set(height)
    for own, others in graph().items():
        for other in others:
            if own in height and other in height:
                assert height[other] < height[own], f"{own} imports {other}"


def test_no_two_classes_share_a_name():
    places = collections.defaultdict(list)
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_pictures_and_studies_ask_tasks_about_themselves():
    """A task of one's own is drawn as well as the built-in ones: nothing but the registry knows those."""
    for path in [*sorted((ROOT / "plots").rglob("*.py")), *sorted((ROOT / "studies").rglob("*.py"))]:
        tasks = {name for name in imported(path) if name.startswith("vqelites.tasks.")}
        assert tasks <= {"vqelites.tasks.base", "vqelites.tasks.registry"}, f"{path} imports {tasks}"


@pytest.mark.parametrize("part", PARTS)
def test_a_part_imports_only_shared_records_and_its_own_folder(part):
    for path in sorted((ROOT / part).rglob("*.py")):
        for name in imported(path):
            own = name.startswith(f"vqelites.{part}")
            assert not name.startswith("vqelites.") or own or name in SHARED, f"{path} imports {name}"


SHARED_FILES = ["types", "branches", "levels", "keys", "inputs", "rows", "tessellation", "distinct"]


@pytest.mark.parametrize("module", SHARED_FILES)
def test_shared_records_import_nothing_of_the_package_above_them(module):
    below = {f"vqelites.{name}" for name in ("types", "branches", "levels", "keys", "rows", "tree")}
    assert {name for name in imported(ROOT / f"{module}.py") if name.startswith("vqelites")} <= below


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


def test_the_explorer_knows_runs_only_through_its_source():
    """It reads no file itself: whatever a browser sends, it names no path."""
    for path in sorted((ROOT / "explore").rglob("*.py")):
        assert not {name.split(".")[0] for name in imported(path)} & {"os", "pathlib", "pickle", "shutil", "subprocess"}


def test_only_the_command_line_needs_its_parser():
    for path in sorted(ROOT.rglob("*.py")):
        if path.name not in ("cli.py", "commands.py"):
            assert not any(name.split(".")[0] == "tyro" for name in imported(path)), f"{path} imports tyro"
    assert not any(name.split(".")[0] == "tyro" for name in imported(ROOT / "runs" / "commands.py"))


def test_evaluation_needs_nothing_else_of_the_package_but_levels_and_no_jax():
    """Workers import it, so it decides how fast they start; and it knows nothing of the loop."""
    others = {"packing.py": {"cloudpickle"}, "crew.py": {"ray"}, "station.py": {"ray"}}
    own = "vqelites.evaluation", "vqelites.levels"
    for path in [*sorted((ROOT / "evaluation").rglob("*.py")), ROOT / "levels.py"]:
        known = sys.stdlib_module_names | {"numpy"} | others.get(path.name, set())
        for name in imported(path):
            assert name.split(".")[0] in known or name.startswith(own), f"{path} imports {name}"


def test_statistics_know_nothing_of_the_package():
    assert not [name for name in imported(ROOT / "statistics.py") if name.startswith("vqelites")]


def test_claims_are_judged_from_tables_alone():
    """No file, no run and no picture can slip into a verdict."""
    below = ("vqelites.studies.catalogue", "vqelites.studies.evidence", "vqelites.studies.study", "vqelites.words")
    assert {name for name in imported(ROOT / "studies" / "claims.py") if name.startswith("vqelites")} <= set(below)


def test_files_stay_short():
    for path in sorted(ROOT.rglob("*.py")):
        assert len(path.read_text().splitlines()) <= 300, f"{path} is too long; split it by what its parts do"
