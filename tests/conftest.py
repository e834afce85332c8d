"""Settings every test runs under."""

import contextlib
import ctypes
import gc
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import pytest
from hypothesis import settings
from jax import clear_caches
from xdist.scheduler import LoadScopeScheduling

# The same program is compiled again by other tests, workers and processes: once is enough. The first process to get
# here makes a folder for them, those it starts inherit it.
_OWN_CACHE = None if "JAX_COMPILATION_CACHE_DIR" in os.environ else tempfile.mkdtemp(prefix="vqelites-compiled-")
if _OWN_CACHE:
    os.environ["JAX_COMPILATION_CACHE_DIR"] = _OWN_CACHE
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"
    jax.config.update("jax_compilation_cache_dir", _OWN_CACHE)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)

# Workers share few cores; threads of one that wait for each other take them from the other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Scripts start background jobs deaf to Ctrl-C, and all that those start inherit it: tests that press it would wait.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_BEGAN = time.monotonic()

# Deadlines measure the machine and the compiler, not the code; derandomised runs fail the same way twice.
settings.register_profile("vqelites", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("vqelites")
jax.config.update("jax_numpy_rank_promotion", "raise")


# Tests compile many small programs and run each for a moment: what makes programs fast but compiling slow is left out.
# Measured, CPU seconds to compile the bootstrap of a VQ-Elites: 18 as shipped, 11, 8 and 6 with one flag after another.
_FAST = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1 "
    "--xla_llvm_disable_expensive_passes=true"
)

# Who uses what takes long to make is slow: a real cluster, a finished study, the site, runs with pictures.
_LONG_TO_MAKE = {"blind", "cluster", "finished", "site", "walked"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """One option that chooses both which tests run and how they are compiled."""
    text = "run the tests marked as shipped, compiled as users' programs are; without this option, all others"
    parser.addoption("--shipped", action="store_true", help=text)
    parser.addoption("--minutes", type=float, default=float("inf"), help="skip the tests that are not begun by then")


def pytest_configure(config: pytest.Config) -> None:
    """Tell the compiler before any test file is imported; processes that tests start inherit it."""
    if not config.getoption("--shipped"):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_FAST}".strip()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Few files have tests marked as shipped; importing the others takes longer than some of those tests."""
    if config.getoption("--shipped") and collection_path.suffix == ".py":
        return "shipped" not in collection_path.read_text() or None
    return None


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Where time is limited, what there is no time for is skipped and said to be."""
    if time.monotonic() - _BEGAN > 60 * item.config.getoption("--minutes"):
        pytest.skip(f"not begun within {item.config.getoption('--minutes'):g} minutes")


class _ByFile(LoadScopeScheduling):
    """Tests of one file run in one process, and files that ask and tell in the same sizes too: they share programs.

    (`--dist loadgroup` does the same by marks, but is silently ignored from pytest 9.2 on.)
    """

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.split("::")[0]
        return "ask and tell" if Path(path).stem.startswith("test_ask_tell") else path


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Who divides the tests among processes."""
    return _ByFile(config, log)


@pytest.hookimpl(tryfirst=True)  # before -m looks at the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Every test runs under one of the two and is deselected under the other, or under both, then slow as shipped.

    What is slow anyway runs once, as shipped.
    """
    shipped, wanted, others = config.getoption("--shipped"), [], []
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        once = "shipped" in marks or ("also_shipped" in marks and bool(marks & {"slow", "long"}))
        both = "also_shipped" in marks and not once
        if _LONG_TO_MAKE.intersection(item.fixturenames) or (both and shipped):
            item.add_marker("slow")
        (wanted if both or once == shipped else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = wanted


@pytest.fixture(autouse=True)
def _tasks_of_this_test_alone():
    """A task that a test registers, or a task file that it loads, is unknown to the tests after it.

    What a fixture of a module or the session registers stays.
    """
    from vqelites.runs import taskfiles  # not before the compiler has been told how to compile
    from vqelites.tasks import registry

    places: list[Any] = [registry._ENTRIES, taskfiles._LOADED, taskfiles._NAMES]
    before = [place.copy() for place in places]
    yield
    for place, content in zip(places, before, strict=True):
        place.clear()
        (place.extend if isinstance(place, list) else place.update)(content)


@pytest.fixture(scope="session")
def cluster():
    """A real Ray cluster of two nodes on loopback addresses, which have room for three workers."""
    ray_cluster = pytest.importorskip("ray.cluster_utils")
    import ray

    quiet = {"include_dashboard": False, "object_store_memory": 80 * 2**20}
    health = {"initial_delay_ms": 0, "period_ms": 500, "failure_threshold": 6}  # a lost node is noticed in seconds
    # By itself Ray gives way to all other work: on a busy machine its workers would take a minute to start.
    system = {"worker_niceness": 0} | {f"health_check_{name}": value for name, value in health.items()}
    head = {"num_cpus": 1, "node_ip_address": "127.0.0.2", "_system_config": system, **quiet}
    nodes = ray_cluster.Cluster(initialize_head=True, head_node_args=head)
    nodes.add_node(num_cpus=2, node_ip_address="127.0.0.3", **quiet)
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def _memory() -> tuple[int, float]:
    """Maps of memory and gigabytes that this process holds, where the system says so."""
    status = Path("/proc/self")
    if not status.exists():
        return 0, 0.0
    pages = int((status / "statm").read_text().split()[1])
    return (status / "maps").read_bytes().count(b"\n"), pages * os.sysconf("SC_PAGE_SIZE") / 1e9


_held = 1.0  # gigabytes that stay when all programs are forgotten


@pytest.fixture(autouse=True)
def _forget_too_many_compilations():
    """Compiled programs fill memory, and take maps of it: with more than the 65,530 of Linux the compiler aborts.

    What is forgotten is given back, and what cannot be is no reason to forget again: else every test that follows would
    compile everything anew.
    """
    yield
    global _held
    maps, gigabytes = _memory()
    if maps > 30_000 or gigabytes > _held + 3:
        clear_caches()
        gc.collect()
        with contextlib.suppress(AttributeError):  # not every C library can
            ctypes.CDLL(None).malloc_trim(0)
        _held = _memory()[1]


def pytest_sessionfinish() -> None:
    """Whoever made the folder of compiled programs removes it."""
    if _OWN_CACHE:
        shutil.rmtree(_OWN_CACHE, ignore_errors=True)
