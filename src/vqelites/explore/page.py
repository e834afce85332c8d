"""The page: one run, or two side by side, with their curves below."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import panel as pn

from vqelites.explore import in_browser, static
from vqelites.explore.curves import CurvesView
from vqelites.explore.run_view import Choice, RunView
from vqelites.explore.source import Source
from vqelites.statistics import scale_limits

_NONE = "none"
_EVERY = 1000  # milliseconds between two looks at a run


@dataclass(frozen=True)
class PageChoice:
    """Which runs are looked at, and what in them."""

    names: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = field(default=())


class Explorer:
    """The page on some runs, which are chosen by their names."""

    def __init__(self, sources: Sequence[Source], choice: PageChoice | None = None):
        self.sources = {source.name: source for source in sources}
        choice = PageChoice() if choice is None else choice
        names = list(self.sources)
        first, second = (*(choice.names or names[:1]), _NONE)[:2]
        self.run = pn.widgets.Select(label="Run", options=names, value=first, width=420)
        self.beside = pn.widgets.Select(
            label="Beside it", options=[_NONE, *names], value=second, width=420, visible=len(names) > 1
        )
        self.save = pn.widgets.FileDownload(callback=self.as_html, filename="explorer.html", label="This page as HTML")
        self.curves = CurvesView()
        self.views: list[RunView] = []
        self.runs = pn.Row(sizing_mode="stretch_width")
        self.view = pn.Column(
            pn.Row(self.run, self.beside, pn.Column(pn.Spacer(height=14), self.save)),
            self.runs,
            self.curves.view,
            sizing_mode="stretch_width",
        )
        self._open(choice.choices)
        for widget in (self.run, self.beside):
            widget.param.watch(lambda _: self._open(), "value")

    def follow(self) -> None:
        """Read the runs that have changed."""
        for view in self.views:
            view.follow()

    def as_html(self) -> io.BytesIO:
        """The page as it looks now, as one file that needs nothing else."""
        names = [view.source.name for view in self.views]
        choice = PageChoice(tuple(names), tuple(view.choice() for view in self.views))
        page = Explorer(list(self.sources.values()), choice)  # a new one, since models belong to one document only
        in_browser.leave([held for view in page.views if (held := view.held()) is not None])
        return static.as_html(pn.Column(page.runs, page.curves.view, sizing_mode="stretch_width"))

    def _open(self, choices: Sequence[Choice] = ()) -> None:
        """Show the runs that were chosen; names that are not among the sources are ignored."""
        asked = [name for name in (self.run.value, self.beside.value) if name in self.sources]
        wanted = [choices[i] if i < len(choices) else None for i in range(len(asked))]
        self.views = [RunView(self.sources[n], self._changed, c) for n, c in zip(asked, wanted, strict=True)]
        self._changed()  # before the browser hears of the views: what changes in them later may reach it earlier
        self.runs[:] = [view.view for view in self.views]

    def _changed(self) -> None:
        """Redraw the curves; runs of one task that are coloured by one number share a scale."""
        for view in self.views:
            alike = [other.values() for other in self.views if other.coloured_by == view.coloured_by]
            view.map.paint(*scale_limits(np.concatenate(alike)), view.column.value)
        tables = {i: view.record.metrics for i, view in enumerate(self.views) if view.record is not None}
        if self.views:
            self.curves.show(tables, [view.source.name for view in self.views])


def live(sources: Sequence[Source]) -> pn.Column:
    """A page that follows its runs."""
    page = Explorer(sources)
    pn.state.add_periodic_callback(page.follow, period=_EVERY)
    return page.view
