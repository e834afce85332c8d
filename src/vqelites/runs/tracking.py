"""Experiment trackers beside a run: fed from its files by a thread, so that they can neither break nor slow it."""

import contextlib
import json
import math
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vqelites import track
from vqelites.runs import metrics_file
from vqelites.runs.events import Note, Observe, Status
from vqelites.runs.files import RunError, write_whole
from vqelites.runs.folder import open_folder, siblings
from vqelites.runs.records import to_json
from vqelites.runs.run import Run

if TYPE_CHECKING:
    import pandas as pd

_EVERY = 2.0  # seconds between two looks at what a run has written
_PATIENCE = 60.0  # seconds that a run's end waits for its trackers
_DONE = ("interrupted", "finished")


def trackers_of(folder: Path) -> tuple[str, ...]:
    """The trackers that a run had so far."""
    return tuple(sorted(path.name for path in (folder / "track").glob("*") if path.is_dir()))


@contextlib.contextmanager
def tracked(observe: Observe, names: str | Sequence[str], folder: Path) -> Iterator[Observe]:
    """What watches a run and has it followed by these trackers too."""
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
    """Hands on what a run tells, and wakes a thread that feeds its trackers."""

    def __init__(self, observe: Observe, names: Sequence[str], folder: Path):
        self._observe, self._names, self._folder = observe, names, folder
        self._notes: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._news: Status | None = None
        self._wake, self._over = threading.Event(), threading.Event()
        self._followers: list[_Follower] = []
        self._thread = threading.Thread(target=self._work, name="trackers", daemon=True)
        self._thread.start()

    def __call__(self, event: Status | Note) -> None:
        self._observe(event)
        self._say()
        if isinstance(event, Status) and event.phase in ("running", *_DONE):
            self._news = event
            self._wake.set()

    def close(self) -> None:
        """Let the trackers write what is left, for a while at most."""
        self._over.set()
        self._wake.set()
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            self._notes.put(f"Trackers were not done {_PATIENCE:.0f} s after the run, and are left behind.")
        self._say()

    def _say(self) -> None:
        """Tell, in the run's own thread, what went wrong in the other."""
        while not self._notes.empty():
            text = self._notes.get()
            self._observe(Note(text))
            with contextlib.suppress(RunError):
                open_folder(self._folder).log(text)

    def _work(self) -> None:
        try:
            over = False
            while not over:
                self._wake.wait()
                self._wake.clear()
                over = self._over.is_set()  # asked before looking: no news come after it
                self._follow()
                self._over.wait(_EVERY)
            for follower in self._followers:
                if self._news is not None and self._news.phase == "finished":
                    follower.show_end()
                follower.close()
        except Exception as error:
            self._notes.put(f"Trackers failed and are left out; the run goes on. {error!r}")

    def _follow(self) -> None:
        if self._news is None:
            return
        if not self._followers:
            runs = [Run(folder) for folder in siblings(open_folder(self._folder))]
            self._followers = [_Follower(name, run, self._notes.put) for run in runs for name in self._names]
        for follower in self._followers:
            follower.show(self._news.iteration)


class _Follower:
    """One tracker of one run; an error in it is told, and it is left out from then on."""

    def __init__(self, name: str, run: Run, say: Callable[[str], None]):
        self._name, self._run, self._say = name, run, say
        self._place = run.folder.path / "track" / name
        self._kept = self._place / "shown.json"
        self._shown = json.loads(self._kept.read_text())["iteration"] if self._kept.exists() else -1
        self._tracker: track.AbstractTracker | None = None
        self._works = True

    def show(self, iteration: int) -> None:
        """All metrics up to this iteration that were not shown yet."""
        self._safely(lambda: self._show(iteration))

    def show_end(self) -> None:
        """The pictures and the elites."""
        self._safely(self._show_end)

    def close(self) -> None:
        """Write what is left."""
        if self._tracker is not None:
            self._safely(self._tracker.close)

    def _safely(self, do: Callable[[], None]) -> None:
        """Nothing that a tracker does may end the run."""
        try:
            if self._works:
                do()
        except Exception as error:
            self._works = False
            self._say(f"The tracker {self._name} failed and is left out; the run goes on. {error!r}")

    def _show(self, iteration: int) -> None:
        table = metrics_file.read(self._run.folder.metrics)
        fresh = table[(table["iteration"] > self._shown) & (table["iteration"] <= iteration)]
        known = [{name: value for name, value in row.items() if not math.isnan(value)} for row in _records(fresh)]
        self._open().rows(known)
        self._shown = max(iteration, self._shown)
        write_whole(self._kept, json.dumps({"iteration": self._shown}).encode())

    def _show_end(self) -> None:
        run = Run(self._run.folder)  # as it is now
        for picture in sorted(run.folder.figures.glob("*.png")):
            self._open().figure(picture, run.iteration)
        if len(run.archive):
            self._open().archive(run.folder.archive, run.archive, run.iteration)

    def _open(self) -> track.AbstractTracker:
        if self._tracker is None:
            config, seed = self._run.config, self._run.seed
            about = {"task": config.task, "algorithm": config.algorithm, "preset": config.preset, "seed": seed}
            self._place.mkdir(parents=True, exist_ok=True)
            self._tracker = track.make(
                self._name,
                self._place,
                f"{config.named}, seed {seed}",
                {**about, **to_json(config.settings)},
                self._shown,
            )
        return self._tracker


def _records(table: "pd.DataFrame") -> list[dict[str, float]]:
    return [{str(name): float(value) for name, value in row.items()} for row in table.to_dict("records")]
