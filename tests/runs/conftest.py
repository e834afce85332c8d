"""What the tests of runs share."""

import signal

import pytest


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    """A folder for compiled programs, shared by all processes that these tests start."""
    folder = tmp_path_factory.getbasetemp().parent / "vqelites-programs"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(autouse=True)
def _nothing_hangs(request):
    """Every test ends, one way or the other."""
    limit = 900 if any(map(request.node.get_closest_marker, ("slow", "long"))) else 300

    def late(*_):
        raise TimeoutError(f"the test took longer than {limit} seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(limit)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
