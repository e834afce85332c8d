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
_HASTE = 5.0  # the same, where a run ends by an error or a second Ctrl-C


@contextlib.contextmanager
def tracked(observe: Observe, names: str | Sequence[str] | None, folder: Path) -> Iterator[Observe]:
    """What watches a run and has these trackers follow it; None: those that followed it before."""
    chosen = _as_before(observe, folder) if names is None else track.check(names)
    if not chosen:
        yield observe
        return
    tracking = Tracking(observe, chosen, folder)
    try:
        yield tracking
    except BaseException:
        tracking.close(_HASTE)
        raise
    tracking.close(_PATIENCE)


def _as_before(observe: Observe, folder: Path) -> list[str]:
    """The trackers that a run had so far; one that is not installed here does not keep it from going on."""
    found: list[str] = []
    for place in sorted((folder / "track").glob("*/shown.json")):
        try:
            found += track.check(place.parent.name)
        except ValueError as error:
            observe(Note(f"{error} The run goes on without it."))
    return found


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

    def close(self, patience: float) -> None:
        """Let the trackers write what is left, for so many seconds at most, and tell what went wrong in them."""
        if self._followers is None:
            return
        try:
            said, _ = self._followers.communicate(timeout=patience)  # closes its input, which tells it to end
            failed = f"Trackers ended with exit code {code}." if (code := self._followers.returncode) else ""
        except subprocess.TimeoutExpired:
            self._followers.kill()
            said, _ = self._followers.communicate()
            failed = f"Trackers were not done {patience:g} s after the run and were ended."
        for line in [*said.splitlines(), *([failed] if failed else [])]:
            self._observe(Note(line))

    def _start(self) -> None:
        if self._followers is not None or not self._names:
            return
        try:
            self._followers = subprocess.Popen(
                [*_COMMAND, str(self._folder), *self._names],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env={**os.environ, "JAX_PLATFORMS": "cpu"},  # they compute nothing, and must not take a device
                start_new_session=True,  # Ctrl-C is for the run, which then ends them in order
            )
        except OSError as error:
            self._names = ()
            self._observe(Note(f"Trackers could not be started; the run goes on. {error!r}"))
