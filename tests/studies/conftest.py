"""A small study that the tests of this folder share, computed once."""

import shutil
from dataclasses import replace

import jax
import pytest
from small_studies import small

from vqelites.runs import pictures
from vqelites.studies import catalogue
from vqelites.studies.execute import run_study


@pytest.fixture(autouse=True, scope="module")
def _compile_once():
    """A study forgets the programs of a group when it is done; here the same few serve all tests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax, "clear_caches", lambda: None)
        yield


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
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "draw", lambda *_: None)  # nobody looks at them
        assert run_study(study, root)
    return root


@pytest.fixture
def copied(finished, tmp_path):
    """A copy of it to damage."""
    return shutil.copytree(finished, tmp_path / "copied")
