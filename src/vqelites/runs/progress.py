"""Progress in a terminal: a live bar, plain lines where output is not a terminal, or nothing."""

import time
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

Mode = Literal["auto", "bar", "plain", "quiet"]
_EVERY = 10.0  # seconds between plain lines
_SHOWN = {  # metric: label and format
    "coverage": ("coverage", ".3f"),
    "pqd": ("PQD", ".1f"),
    "size": ("size", ".0f"),
    "codes_used": ("codes", ".0f"),
    "perplexity": ("perplexity", ".0f"),
    "saturated": ("saturated", ".0%"),
    "loss": ("loss", ".3g"),
}


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
        self._last_line, self._rate = 0.0, _Rate()

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
        rate = self._rate(event)
        if self.mode == "bar":
            self._update(event, rate)
        elif self.mode == "plain":
            self._line(event, rate)

    def _update(self, event: Status, rate: float | None) -> None:
        key = (event.config.named, event.seeds)
        if key not in self._tasks:
            self._tasks[key] = self._bars.add_task(escape(_title(event)), total=event.iterations)
            self._live.start()
        self._bars.update(self._tasks[key], completed=event.iteration)
        self._status.plain = "  " + (_summary(event, rate) if event.phase != "starting" else "compiling")
        self._live.refresh()

    def _line(self, event: Status, rate: float | None) -> None:
        if event.phase == "starting":
            self.say(f"{_title(event)}: {event.iterations} iterations; the first compiles")
        elif event.phase != "running" or time.monotonic() - self._last_line >= _EVERY:
            self._last_line = time.monotonic()
            left = "" if rate is None or event.phase != "running" else f"  {_left(event, rate)} left"
            self.say(f"iteration {event.iteration}/{event.iterations}  {_summary(event, rate)}{left}")


class _Rate:
    """Iterations per second over the last few chunks, the first left out: it compiles."""

    def __init__(self) -> None:
        self._seen: list[tuple[int, float]] = []

    def __call__(self, event: Status) -> float | None:
        if event.phase == "starting":
            self._seen = []
        elif event.phase == "running":
            self._seen = [*self._seen[-19:], (event.iteration, event.seconds)]
        if len(self._seen) < 2:
            return None
        (first, began), (last, ended) = self._seen[0], self._seen[-1]
        return (last - first) / max(ended - began, 1e-9)


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


def _summary(event: Status, rate: float | None) -> str:
    """The last known metrics; of several seeds, their medians."""
    parts = [] if rate is None else [f"{rate:.3g} it/s"]
    for name, (label, form) in _SHOWN.items():
        values = event.latest[name]
        if not np.isnan(values).all():
            parts.append(f"{label} {np.nanmedian(values):{form}}")
    return "  ".join(parts)


def _left(event: Status, rate: float) -> str:
    seconds = int((event.iterations - event.iteration) / rate)
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
