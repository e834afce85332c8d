"""The processes a test has started, as the system sees them."""

import os
import time
from pathlib import Path


def workers_of(parent=None):
    """Process ids of the workers of a process, those that are still starting included."""
    return [int(stat.name) for stat in Path("/proc").glob("[0-9]*") if _is_worker(stat, parent or os.getpid())]


def _is_worker(place, parent):
    try:
        after_name = (place / "stat").read_text().rpartition(")")[2].split()
        return int(after_name[1]) == parent and after_name[0] != "Z" and "spawn_main" in (place / "cmdline").read_text()
    except OSError:
        return False


def alive(pid):
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)
