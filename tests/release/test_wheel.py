"""What is shipped: every module, the data, the command and true metadata."""

import email
import re
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def contents(wheel):
    with zipfile.ZipFile(wheel) as file:
        return {name: file.read(name) for name in file.namelist()}


def of_the_info(contents, name):
    [found] = [text.decode() for path, text in contents.items() if path.endswith(f".dist-info/{name}")]
    return found


def test_every_file_of_the_package_is_in_the_wheel_and_nothing_else(contents):
    source = ROOT / "src"
    files = {path.relative_to(source).as_posix() for path in (source / "vqelites").rglob("*") if path.is_file()}
    wanted = {name for name in files if "__pycache__" not in name}  # also a file that nobody has committed yet
    assert {"vqelites/py.typed", "vqelites/tasks/data/minigrid_map.txt"} <= wanted
    assert {name for name in contents if ".dist-info/" not in name} == wanted


def test_the_command_and_the_licence_come_along(contents):
    assert "vqelites = vqelites.__main__:main" in of_the_info(contents, "entry_points.txt")
    assert "MIT License" in of_the_info(contents, "licenses/LICENSE")


def test_metadata_say_what_it_is(contents):
    metadata = email.message_from_string(of_the_info(contents, "METADATA"))
    assert metadata["Version"] == PROJECT["version"]
    assert metadata["Requires-Python"] == ">=3.11"
    assert set(metadata.get_all("Provides-Extra")) == set(PROJECT["optional-dependencies"])
    assert "Programming Language :: Python :: 3.11" in metadata.get_all("Classifier")
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert metadata.get_payload().startswith("# VQ-Elites")


def test_changelog_and_citation_are_of_the_present_version():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    versions = re.findall(r"^## (\S+) \((unreleased|\d{4}-\d\d-\d\d)\)$", changelog, re.MULTILINE)
    assert len(versions) == changelog.count("\n## ")
    assert versions[0][0] == PROJECT["version"]
    assert "unreleased" not in [date for _, date in versions[1:]]
    assert versions == sorted(versions, key=lambda entry: [int(part) for part in entry[0].split(".")], reverse=True)
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {PROJECT['version']}\n" in citation
    assert citation.startswith("cff-version: 1.2.0\n")
