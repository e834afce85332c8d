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
def _nothing_hangs():
    """Every test ends, one way or the other."""

    def late(*_):
        raise TimeoutError("the test took longer than 300 seconds")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(300)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
