"""The process of a run's trackers: `python -m vqelites.runs.follow DIR NAME...`, until its input ends."""

import json
import math
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from vqelites import track
from vqelites.runs import metrics_file
from vqelites.runs.files import write_whole
from vqelites.runs.folder import open_folder, siblings
from vqelites.runs.records import to_json
from vqelites.runs.run import Run

_EVERY = 2.0  # seconds between two looks at what the run has written


class Follower:
    """One tracker of one run, fed from the run's folder; after an error in it, it is left out."""

    def __init__(self, name: str, run: Run):
        self._name, self._run = name, run
        self._place = run.folder.path / "track" / name
        self._kept = self._place / "shown.json"
        self._tracker: track.AbstractTracker | None = None
        self._shown = -1
        self._works = True

    def show(self) -> None:
        """All metrics that were not shown yet."""
        self._safely(self._show)

    def end(self) -> None:
        """The pictures and the elites of a run that is finished; and write what is left."""
        self._safely(self._end)

    def _safely(self, do: Callable[[], None]) -> None:
        try:
            if self._works:
                do()
        except Exception as error:
            self._works = False
            reason = " ".join(repr(error).split())
            text = f"The tracker {self._name} failed and is left out; the run goes on. {reason}"
            self._run.folder.log(text)
            print(text, flush=True)

    def _open(self) -> track.AbstractTracker:
        if self._tracker is None:
            if self._kept.exists():  # followed before it was interrupted
                self._shown = json.loads(self._kept.read_text())["iteration"]
            config, seed = self._run.config, self._run.seed
            about = {"task": config.task, "algorithm": config.algorithm, "preset": config.preset, "seed": seed}
            settings = {**about, **to_json(config.settings)}
            self._place.mkdir(parents=True, exist_ok=True)
            self._tracker = track.make(self._name, self._place, f"{config.named}, seed {seed}", settings, self._shown)
        return self._tracker

    def _show(self) -> None:
        tracker, table = self._open(), metrics_file.read(self._run.folder.metrics)
        fresh = table[table["iteration"] > self._shown]
        if fresh.empty:
            return
        rows = [{str(name): float(value) for name, value in row.items()} for row in fresh.to_dict("records")]
        tracker.rows([{name: value for name, value in row.items() if not math.isnan(value)} for row in rows])
        self._shown = int(fresh["iteration"].iloc[-1])
        write_whole(self._kept, json.dumps({"iteration": self._shown}).encode())

    def _end(self) -> None:
        tracker, run = self._open(), Run(self._run.folder)  # as it is now
        if run.finished:
            for picture in sorted(run.folder.figures.glob("*.png")):
                tracker.figure(picture, run.iteration)
            if len(run.archive):
                tracker.archive(run.folder.archive, run.archive, run.iteration)
        tracker.close()


def follow(folder: Path, names: Sequence[str]) -> None:
    """Feed the trackers of a run, and of those computed together with it, until the input ends."""
    runs = [Run(member) for member in siblings(open_folder(folder))]
    followers = [Follower(name, run) for run in runs for name in names]
    over, ended = threading.Event(), False

    def wait() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    while not ended:
        ended = over.wait(_EVERY)
        for follower in followers:
            follower.show()
    for follower in followers:
        follower.end()


if __name__ == "__main__":
    follow(Path(sys.argv[1]), sys.argv[2:])
