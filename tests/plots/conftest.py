"""What the tests of figures share."""

import numpy as np
import pytest

from vqelites.studies.catalogue import TASKS
from vqelites.tasks import registry


@pytest.fixture(scope="session")
def tasks():
    """Those of the package; other tests of this process may have registered more."""
    return {name: registry.make(name) for name in (*TASKS, "planar-arm")}


@pytest.fixture
def random():
    return np.random.default_rng(0)
