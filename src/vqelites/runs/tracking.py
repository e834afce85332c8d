"""Experiment trackers beside a run, in a process of their own: they can neither break nor slow it."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from vqelites import track
from vqelites.runs.events import Note, Observe, Status

_COMMAND = (sys.executable, "-m", "vqelites.runs.follow")
_PATIENCE = 60.0  # seconds that the end of a run waits for its trackers


def trackers_of(folder: Path) -> tuple[str, ...]:
    """The trackers that a run had so far."""
    return tuple(sorted(path.name for path in (folder / "track").glob("*") if path.is_dir()))


@contextlib.contextmanager
def tracked(observe: Observe, names: str | Sequence[str], folder: Path) -> Iterator[Observe]:
    """What watches a run and has these trackers follow it."""
    chosen = track.check(names)
    if not chosen:
        yield observe
        return
    tracking = Tracking(observe, chosen, folder)
    try:
        yield tracking
    finally:
        tracking.close()


class Tracking:
    """Hands on what a run tells, and starts its followers once there is something to follow."""

    def __init__(self, observe: Observe, names: Sequence[str], folder: Path):
        self._observe, self._names, self._folder = observe, names, folder
        self._followers: subprocess.Popen[str] | None = None

    def __call__(self, event: Status | Note) -> None:
        self._observe(event)
        # Not before: until the first chunk is done, a resumed run may take back rows of its metrics.
        if isinstance(event, Status) and event.phase in ("running", "interrupted", "finished"):
            self._start()

    def close(self) -> None:
        """Let the trackers write what is left, for a while at most, and tell what went wrong in them."""
        if self._followers is None:
            return
        try:
            said, _ = self._followers.communicate(timeout=_PATIENCE)  # closes its input, which tells it to end
            failed = f"Trackers ended with exit code {code}." if (code := self._followers.returncode) else ""
        except subprocess.TimeoutExpired:
            self._followers.kill()
            said, _ = self._followers.communicate()
            failed = f"Trackers were not done {_PATIENCE:.0f} s after the run and were ended."
        for line in [*said.splitlines(), *([failed] if failed else [])]:
            self._observe(Note(line))

    def _start(self) -> None:
        if self._followers is not None:
            return
        self._followers = subprocess.Popen(
            [*_COMMAND, str(self._folder), *self._names],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu"},  # they compute nothing, and must not take a device
            start_new_session=True,  # Ctrl-C is for the run, which then ends them in order
        )
