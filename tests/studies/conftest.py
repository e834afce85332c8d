"""A small study that the tests of this folder share, computed once."""

import shutil
from dataclasses import replace

import pytest

from vqelites.studies import catalogue
from vqelites.studies.execute import run_study

_SMALL = {
    "search": {"iterations": 60, "batch": 16, "bootstrap": 64},
    "model": {"minibatch": 32, "bootstrap_epochs": 2},
    "codes": 32,
    "reserve": 32,
    "target": 32,
    "capacity": 64,
    "epochs": 2,
}


def shrunk(settings, **changes):
    """Settings of any algorithm, as small as they get."""
    values = {}
    for name, value in {**_SMALL, **changes}.items():
        if hasattr(settings, name):
            values[name] = replace(getattr(settings, name), **value) if isinstance(value, dict) else value
    return replace(settings, **values)


def small(study, chunk=5, **changes):
    """The same study with tiny runs."""
    groups = [
        replace(group, config=replace(group.config, settings=shrunk(group.config.settings, **changes), chunk=chunk))
        for group in study.groups
    ]
    return replace(study, groups=tuple(groups))


@pytest.fixture(scope="session")
def study():
    """Two tasks, two algorithms, three seeds: the first learns a codebook, the second task is an arm in space."""
    planar = small(catalogue.comparison(["planar-arm"], ["vq-elites", "map-elites"], preset="quick", seeds=3))
    arm = small(catalogue.comparison(["arm"], ["map-elites"], preset="quick", seeds=3))
    return replace(planar, groups=(*planar.groups, *arm.groups))


@pytest.fixture(scope="session")
def finished(study, tmp_path_factory):
    """The folder of that study after all its runs; not to be changed."""
    root = tmp_path_factory.mktemp("study")
    assert run_study(study, root)
    return root


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of it to damage."""
    return shutil.copytree(finished, tmp_path / "copied")
