"""Settings every test runs under."""

import jax
import pytest
from hypothesis import settings

# Deadlines measure the machine and the compiler, not the code; derandomised runs fail the same way twice.
settings.register_profile("vqelites", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("vqelites")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(autouse=True, scope="module")
def _forget_compilations():
    """Compiled programs of one test file are of no use to the next, and they fill memory."""
    yield
    jax.clear_caches()
