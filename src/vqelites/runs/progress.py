"""Progress in a terminal: a live bar, plain lines where output is not a terminal, or nothing."""

import time
from collections.abc import Iterable
from typing import Literal, Self, TextIO

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from vqelites.runs.events import Note, Status
from vqelites.words import counted

Mode = Literal["auto", "bar", "plain", "quiet"]
_EVERY = 10.0  # seconds between plain lines
_RECENT = 10.0  # seconds over which evaluations are counted
_SHOWN = {  # metric: label and format
    "coverage": ("coverage", ".3f"),
    "pqd": ("PQD", ".1f"),
    "size": ("size", ".0f"),
    "max_fitness": ("best", ".3g"),
    "qd_score": ("QD score", ".4g"),
    "codes_used": ("codes", ".0f"),
    "perplexity": ("perplexity", ".0f"),
    "saturated": ("saturated", ".0%"),
    "loss": ("loss", ".3g"),
}
_UNJUDGED = ("max_fitness", "qd_score")  # shown where no bins tell the coverage


class Display:
    """Shows what runs tell: give it as `observe`, and use it as a context manager so that the bar is closed."""

    def __init__(self, mode: Mode = "auto", file: TextIO | None = None):
        self.console = Console(file=file, highlight=False, soft_wrap=True)
        if mode == "auto":
            mode = "bar" if self.console.is_terminal else "plain"
        self.mode = mode
        self._bars, self._status = _bars(self.console), Text(overflow="ellipsis", no_wrap=True)
        self._live = Live(Group(self._bars, self._status), console=self.console, refresh_per_second=8)
        self._tasks: dict[tuple[str, tuple[int, ...]], TaskID] = {}
        self._last_line, self._speed = -_EVERY, Speeds()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the terminal as it was found."""
        self._live.stop()

    def say(self, text: str) -> None:
        """A line of its own, above the bar."""
        if self.mode != "quiet":
            self.console.print(escape(text))

    def __call__(self, event: Status | Note) -> None:
        if isinstance(event, Note):
            self.say(event.text)
            return
        self._speed.see(event)
        if self.mode == "bar":
            self._update(event)
        elif self.mode == "plain":
            self._line(event)

    def _update(self, event: Status) -> None:
        key = (event.config.named, event.seeds)
        if key not in self._tasks:
            self._tasks[key] = self._bars.add_task(escape(_title(event)), total=event.iterations)
            self._live.start()
        self._bars.update(self._tasks[key], completed=event.iteration)
        self._status.plain = "  " + ("compiling" if event.phase == "starting" else "  ".join(self._parts(event)))
        self._live.refresh()

    def _line(self, event: Status) -> None:
        under_way = event.phase in ("running", "evaluating")
        if event.phase == "starting":
            self.say(f"{_title(event)}: {event.iterations} iterations; the first compiles")
        elif not under_way or time.monotonic() - self._last_line >= _EVERY:
            self._last_line = time.monotonic()
            where = [] if bootstrapping(event) else [f"iteration {event.iteration}/{event.iterations}"]
            rate = self._speed.iterations
            left = [f"{_left(event, rate)} left"] if rate and under_way else []
            self.say("  ".join([*where, *self._parts(event), *left]))

    def _parts(self, event: Status) -> list[str]:
        rate = self._speed.iterations
        speed = [] if rate is None else [f"{rate:.3g} it/s"]
        known = not np.isnan(event.latest["coverage"]).all()
        names = [name for name in _SHOWN if not (known and name in _UNJUDGED)]
        return [*speed, *activity_parts(event, self._speed.evaluations), *metric_parts(event, names)]


class Speeds:
    """Iterations per second over the last chunks, and evaluations over the last seconds; None until that is known."""

    def __init__(self) -> None:
        self._iterations: list[tuple[int, float]] = []
        self._evaluations: list[tuple[int, float]] = []

    def see(self, event: Status) -> None:
        """Take note; the first chunk is left out of the iterations, since it compiles."""
        if event.phase == "starting":
            self._iterations, self._evaluations = [], []
        elif event.phase == "running":
            self._iterations = [*self._iterations[-19:], (event.iteration, event.seconds)]
        if event.activity is not None and event.phase != "starting":  # workers start after that, which takes a while
            now = time.monotonic()
            recent = [seen for seen in self._evaluations if now - seen[1] <= _RECENT] or self._evaluations[-1:]
            self._evaluations = [*recent, (event.activity.finished, now)]

    @property
    def iterations(self) -> float | None:
        """Per second of computing."""
        return _per_second(self._iterations)

    @property
    def evaluations(self) -> float | None:
        """Per second."""
        return _per_second(self._evaluations)


def _per_second(seen: list[tuple[int, float]]) -> float | None:
    if len(seen) < 2:
        return None
    (first, began), (last, ended) = seen[0], seen[-1]
    return (last - first) / max(ended - began, 1e-9)


def bootstrapping(event: Status) -> bool:
    """Whether the solutions before the first iteration are being evaluated."""
    return event.phase == "evaluating" and bool(np.isnan(event.latest["evaluations"]).all())


def activity_parts(event: Status, speed: float | None) -> list[str]:
    """What the evaluator of a simulator is doing; nothing where all is compiled."""
    activity = event.activity
    if activity is None:
        return []
    parts = []
    if bootstrapping(event):
        total = len(event.seeds) * event.config.settings.search.bootstrap
        parts.append(f"bootstrap: {activity.finished} of {total} evaluations")
    if speed is not None:
        parts.append(f"{speed:.0f} evaluations/s" if speed >= 10 else f"{speed:.2g} evaluations/s")
    if event.phase == "evaluating" and event.config.evaluating.by_workers:
        nodes = f"{counted(activity.nodes, 'node')}, " if event.config.evaluating.cluster is not None else ""
        parts.append(f"{nodes}{counted(activity.workers, 'worker')}, {activity.queued} queued")
    failed = {kind: count for kind, count in activity.failed.items() if count}
    if failed:
        kinds = ", ".join(f"{count} {kind}" for kind, count in failed.items())
        parts.append(f"{sum(failed.values())} failed ({kinds})")
    return parts


def metric_parts(event: Status, names: Iterable[str]) -> list[str]:
    """The last known metrics of these; of several seeds, their medians."""
    known = {name: event.latest[name] for name in names if not np.isnan(event.latest[name]).all()}
    return [f"{_SHOWN[name][0]} {np.nanmedian(values):{_SHOWN[name][1]}}" for name, values in known.items()]


def _bars(console: Console) -> Progress:
    return Progress(
        SpinnerColumn(finished_text=" "),
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=console,
        expand=True,
    )


def _title(event: Status) -> str:
    seeds = f"seed {event.seeds[0]}" if len(event.seeds) == 1 else f"{len(event.seeds)} seeds"
    return f"{event.config.named}, {seeds}"


def _left(event: Status, rate: float) -> str:
    seconds = int((event.iterations - event.iteration) / rate)
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
