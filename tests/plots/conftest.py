"""What the tests of figures share."""

import numpy as np
import pytest

from vqelites.tasks import registry


@pytest.fixture(scope="session")
def tasks():
    return {name: registry.make(name) for name in registry.names()}


@pytest.fixture
def random():
    return np.random.default_rng(0)
