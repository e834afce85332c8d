"""One progress display over all runs of a study: two bars in a terminal, plain lines elsewhere, or nothing."""

import time
from typing import Literal, Self, TextIO

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from vqelites.runs.events import Note, Status
from vqelites.runs.progress import Speeds, activity_parts, metric_parts
from vqelites.studies.work import Progress

Mode = Literal["auto", "bar", "plain", "quiet"]
_EVERY = 15.0  # seconds between plain lines
_SHOWN = ("coverage", "pqd", "size")
_UNJUDGED = ("size", "max_fitness", "qd_score")  # where no bins tell the coverage


class StudyDisplay:
    """Shows where a study stands: give it as `watch`, and use it as a context manager so that the bars are closed."""

    def __init__(self, mode: Mode = "auto", file: TextIO | None = None):
        self.console = Console(file=file, highlight=False, soft_wrap=True)
        if mode == "auto":
            mode = "bar" if self.console.is_terminal else "plain"
        self.mode = mode
        self._bars = _bars(self.console) if mode == "bar" else None
        self._rows: list[TaskID] = []
        self._last_line, self._speed = time.monotonic(), Speeds()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the terminal as it was found."""
        if self._bars is not None:
            self._bars.stop()

    def say(self, text: str) -> None:
        """A line of its own, above the bars."""
        if self.mode != "quiet":
            self.console.print(escape(text))

    def __call__(self, progress: Progress) -> None:
        event = progress.event
        if isinstance(event, Note):
            self.say(event.text)
            return
        if event is not None:
            self._speed.see(event)
        if self._bars is not None:
            self._update(self._bars, progress, event)
        elif self.mode == "plain":
            self._line(progress, event)

    def _update(self, bars: Bars, progress: Progress, event: Status | None) -> None:
        if not self._rows:
            self._rows = [bars.add_task("all runs", total=progress.runs, status=""), bars.add_task("", status="")]
            bars.start()
        whole, current = self._rows
        done, total = (0, progress.work.group.config.iterations) if event is None else _moment(event)
        bars.update(whole, completed=progress.finished + done / total * len(progress.work.seeds))
        status = "compiling" if event is None or event.phase == "starting" else self._summary(event)
        bars.update(current, description=escape(_title(progress)), total=total, completed=done, status=status)

    def _line(self, progress: Progress, event: Status | None) -> None:
        done = f"[{progress.finished}/{progress.runs} runs finished]"
        if event is None:
            self.say(
                f"{done} {_title(progress)}: {progress.work.group.config.iterations} iterations, the first compiles"
            )
            return
        iteration, iterations = _moment(event)
        late = time.monotonic() - self._last_line >= _EVERY
        under_way = event.phase in ("running", "evaluating") and iteration < iterations
        if event.phase == "finished" or (under_way and late):
            self._last_line = time.monotonic()
            where = f"iteration {iteration}/{iterations}, {event.seconds:.0f} s"
            self.say(f"{done} {_title(progress)}: {where}, {self._summary(event)}")

    def _summary(self, event: Status) -> str:
        names = _UNJUDGED if np.isnan(event.latest["coverage"]).all() else _SHOWN
        return ", ".join([*activity_parts(event, self._speed.evaluations), *metric_parts(event, names)])


def _bars(console: Console) -> Bars:
    return Bars(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[status]}"),
        console=console,
        redirect_stderr=False,
    )


def _title(progress: Progress) -> str:
    seeds = progress.work.seeds
    return f"{progress.work.group.named}, {'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, seeds))}"


def _moment(event: Status) -> tuple[int, int]:
    return event.iteration, event.iterations
