"""Settings every test runs under."""

import os
import shutil
import tempfile

# Tests compile many small programs and run each for a moment: compiling without optimisation halves their time.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_backend_optimization_level=0"

import jax
import pytest
from hypothesis import settings

# The same program is compiled again by other tests, workers and processes: once is enough. The first process to get
# here makes a folder for them, those it starts inherit it.
_OWN_CACHE = None if "JAX_COMPILATION_CACHE_DIR" in os.environ else tempfile.mkdtemp(prefix="vqelites-compiled-")
if _OWN_CACHE:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _OWN_CACHE
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"
    jax.config.update("jax_compilation_cache_dir", _OWN_CACHE)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)

# Deadlines measure the machine and the compiler, not the code; derandomised runs fail the same way twice.
settings.register_profile("vqelites", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("vqelites")
jax.config.update("jax_numpy_rank_promotion", "raise")


@pytest.fixture(autouse=True, scope="module")
def _forget_compilations():
    """Compiled programs of one test file are of no use to the next, and they fill memory."""
    yield
    jax.clear_caches()


def pytest_sessionfinish() -> None:
    """Whoever made the folder of compiled programs removes it."""
    if _OWN_CACHE:
        shutil.rmtree(_OWN_CACHE, ignore_errors=True)
