"""One run: its map at a moment, what is shown of it, and the elite chosen on it."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import panel as pn
from bokeh.models import ColumnDataSource, PrintfTickFormatter

from vqelites.explore import axes, columns, export, packing, texts
from vqelites.explore.axes import Axes2D
from vqelites.explore.elite_view import EliteView
from vqelites.explore.in_browser import Held
from vqelites.explore.map_view import MapView
from vqelites.explore.source import NotShownError, Record, Scene, Source
from vqelites.statistics import scale_limits

_NONE_CHOSEN = "Click on the map to choose an elite."
_NO_MAP = "There is no map yet: it appears with the first snapshot or checkpoint."


@dataclass(frozen=True)
class Choice:
    """What is selected in the view of a run; None stands for the default."""

    iteration: int | None = None
    axes: Axes2D | None = None
    column: str = "fitness"
    fitness: tuple[float, float] | None = None
    ids: tuple[int, ...] = ()


class RunView:
    """A run on the page; `changed` is called when its colours may have."""

    def __init__(self, source: Source, changed: Callable[[], None], choice: Choice | None = None):
        self.source, self._changed = source, changed
        self.record: Record | None = None
        self.scene: Scene | None = None
        self.chosen: list[int] = []
        self.elite: EliteView | None = None
        self._stamp: Any = None
        self._busy = False  # widgets are being set by this class, not by a person
        self._widgets()
        self.map = MapView(self.choose)
        self.message, self.title, self.caption = pn.Column(), texts.pane(), texts.pane()
        self._detail = pn.Column()
        controls = pn.Row(self.column, self.across, self.up, self.fitness)
        self._plot = pn.pane.Bokeh(self.map.plot)
        left = pn.Column(controls, self._plot, self.caption, self.moment, self._chosen_row, width=self.map.plot.width)
        self.body = pn.FlexBox(left, self._detail, sizing_mode="stretch_width")
        self.view = pn.Column(self.title, self.message, self.body, sizing_mode="stretch_width")
        self.follow(Choice() if choice is None else choice)

    def choice(self) -> Choice:
        """The present selection."""
        if self.scene is None:
            return Choice()
        chosen = Axes2D(self.across.value, self.up.value)
        narrowed = self.fitness.value if self._narrowed() else None
        return Choice(self.scene.iteration, chosen, self.column.value, narrowed, tuple(self.chosen))

    def follow(self, choice: Choice | None = None) -> None:
        """Read the run again if there is something new."""
        stamp = self.source.stamp()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            before, self.record = self.record, self.source.read()
            self.title.object = texts.heading(self.record.title, self.record.progress)
            if not self.record.moments:
                raise NotShownError(_NO_MAP)
            self._take(before, choice)
            self.message.clear()
        except NotShownError as error:
            self.message[:] = [texts.sentence(str(error))]
        self.body.visible = self.scene is not None and not len(self.message)
        self._changed()

    def held(self) -> Held | None:
        """The parts that a saved page can show without a server; None if there is nothing to show."""
        if self.record is None or self.scene is None:
            return None
        moments, scenes = packing.scenes(self.source, self.record, self.scene)
        views = {} if self.elite is None else self.elite.leave_to_browser(self.record, self._with_stored())
        archive = self.record.archive
        behavior = views["behavior"].packed(archive.behavior) if archive is not None and views else None
        self._busy = True
        self.moment.options = moments
        self._busy = False
        told = _about_file(len(moments), len(self.record.moments), archive is not None and not views)
        self._chosen_row[:] = [texts.pane(texts.small(told))]
        chosen = None if self.elite is None else self.elite.id
        now = {"scene": [moments.index(self.scene.iteration)], "colour": [self.column.value], "chosen": [chosen]}
        widgets = {"moment": self.moment, "colour": self.column, "across": self.across, "up": self.up}
        said = {"caption": self.caption} if self.elite is None else {"caption": self.caption, "facts": self.elite.facts}
        return Held(
            task=self.record.task,
            scenes=ColumnDataSource({"scene": scenes}),
            archive=ColumnDataSource(packing.archive(self.record, behavior)),
            now=ColumnDataSource(now),
            map=self.map,
            plot=self._plot,
            widgets=widgets | {"fitness": self.fitness},
            said=said,
            views=views,
        )

    def values(self) -> np.ndarray:
        """The numbers (n,) that colour its map."""
        if self.record is None or self.scene is None:
            return np.zeros(0)
        return columns.values(self.record, self.scene, self.column.value)

    @property
    def coloured_by(self) -> tuple[str | None, str]:
        """The task, and the number that colours its map: where both are the same, colours can be compared."""
        return None if self.record is None else self.record.task, self.column.value

    def choose(self, ids: list[int], join: bool = False) -> None:
        """Choose elites of the scene; the last is shown."""
        assert self.scene is not None
        wanted = list(dict.fromkeys([*(self.chosen if join else []), *ids]))
        known = np.isin(wanted, self.scene.ids)
        self.chosen = [id for id, there in zip(wanted, known, strict=True) if there]
        with pn.io.hold():  # one message to the browser, not one for each part of the page
            self.map.mark(self.chosen)
            self._show_chosen()

    def _take(self, before: Record | None, choice: Choice | None) -> None:
        """Show what was read: the newest moment, unless an earlier one was chosen."""
        record = self.record
        assert record is not None
        newest = before is None or not before.moments or self.moment.value == before.moments[-1]
        wanted = self.moment.value if not newest else record.moments[-1]
        if choice is not None and choice.iteration in record.moments:
            wanted = choice.iteration
        if wanted not in record.moments:
            wanted = record.moments[-1]
        self._busy = True
        self.moment.param.update(options=list(record.moments), value=wanted)
        self._busy = False
        if record.archive is None or (before is not None and before.archive is record.archive):
            self._show_scene(choice)
            return
        self.elite = EliteView(self.source, record.archive, record.no_replay, lambda id: self.choose([id]))
        self._show_scene(choice)
        self._detail[:] = [self.elite.view]  # filled already: what changes in it later may reach a browser earlier

    def _show_scene(self, choice: Choice | None = None) -> None:
        """Read the scene of the moment and draw it."""
        assert self.record is not None
        self.scene = self.source.scene(self.moment.value)
        self._busy = True
        offered, names = axes.choices(self.record, self.scene), columns.names(self.record, self.scene)
        start = axes.default(self.scene)
        if choice is not None:
            start = choice.axes or start
        for widget, value in ((self.across, start.across), (self.up, start.up)):
            kept = widget.value if choice is None and widget.value in offered else value
            widget.param.update(options=offered, value=kept)
        column = choice.column if choice is not None else self.column.value
        self.column.param.update(options=names, value=column if column in names else "fitness")
        self._set_fitness(choice)
        self._busy = False
        self._draw()
        self.choose(list(choice.ids) if choice is not None else self.chosen)

    def _draw(self) -> None:
        """Draw the scene as the widgets say."""
        assert self.record is not None
        assert self.scene is not None
        chosen = Axes2D(self.across.value, self.up.value)
        layout = axes.lay_out(self.record, self.scene, chosen)
        visible = self._visible(self.scene.fitness)
        self.map.show(self.scene, layout, chosen, self.values(), visible)
        hidden = f"; {len(visible) - visible.sum()} hidden by the filter" if not visible.all() else ""
        self.caption.object = texts.small(f"{layout.caption}{hidden}.")

    def _show_chosen(self) -> None:
        count = len(self.chosen)
        self._count.object = f"<b>{count}</b> chosen" if count else _NONE_CHOSEN
        for button in (self.npz, self.csv):
            button.disabled = not count
        if self.elite is None:
            return
        assert self.record is not None
        assert self.scene is not None
        if count:
            self.elite.show(self.record, self.scene, self.chosen[-1])
        else:
            self.elite.hide()

    def _set_fitness(self, choice: Choice | None) -> None:
        """The filter spans the range of the colour scale; if a person has narrowed it, it stays narrowed."""
        assert self.scene is not None
        low, high = scale_limits(self.scene.fitness)
        kept = choice.fitness if choice is not None else (self.fitness.value if self._narrowed() else None)
        value = (low, high) if kept is None else (max(kept[0], low), min(kept[1], high))
        value = value if value[0] <= value[1] else (low, high)
        self.fitness.param.update(start=low, end=high, step=(high - low) / 200, value=value)

    def _visible(self, fitness: np.ndarray) -> np.ndarray:
        """Which elites the filter shows; a handle at the end of the slider hides nothing on that side."""
        (low, high), start, end = self.fitness.value, self.fitness.start, self.fitness.end
        return ((fitness >= low) | (low <= start)) & ((fitness <= high) | (high >= end))

    def _narrowed(self) -> bool:
        low, high = self.fitness.value
        return low > self.fitness.start or high < self.fitness.end

    def _saved(self, write: Callable[[Any], io.BytesIO]) -> io.BytesIO:
        """The chosen elites that are still known, as a file."""
        assert self.record is not None
        assert self.record.archive is not None
        rows = [self.record.row(id) for id in self.chosen]
        return write(self.record.archive.take([row for row in rows if row is not None]))

    def _with_stored(self) -> Scene:
        """The scene, or the newest one if all its elites were replaced since."""
        assert self.record is not None
        assert self.record.archive is not None
        assert self.scene is not None
        some = np.isin(self.scene.ids, self.record.archive.ids).any()
        return self.scene if some else self.source.scene(self.record.moments[-1])

    def _moved(self, what: Callable[[], None]) -> Callable[[Any], None]:
        """A reaction to a person moving a widget; errors become a sentence on the page."""

        def react(_: Any) -> None:
            if not self._busy and self.record is not None:
                try:
                    what()
                    self.message.clear()
                except NotShownError as error:
                    self.message[:] = [texts.sentence(str(error))]
                self._changed()

        return react

    def _widgets(self) -> None:
        self.column = pn.widgets.Select(label="Colour", options=["fitness"], width=125)
        self.across = pn.widgets.Select(label="Across", options=["descriptor 1"], width=125)
        self.up = pn.widgets.Select(label="Up", options=["descriptor 2"], width=125)
        digits = PrintfTickFormatter(format="%.3g")
        self.fitness = pn.widgets.RangeSlider(label="Fitness", start=0, end=1, value=(0, 1), width=170, format=digits)
        self.moment = pn.widgets.DiscretePlayer(
            label="Iteration",
            options=[0],
            value=0,
            interval=400,
            width=520,
            show_loop_controls=False,
            loop_policy="once",
        )
        self._count = pn.pane.HTML(_NONE_CHOSEN, width=220)
        self.npz = pn.widgets.FileDownload(
            callback=lambda: self._saved(export.as_npz), filename="elites.npz", label="Elites as npz", disabled=True
        )
        self.csv = pn.widgets.FileDownload(
            callback=lambda: self._saved(export.as_csv), filename="elites.csv", label="Elites as csv", disabled=True
        )
        self._chosen_row = pn.Row(self._count, self.npz, self.csv)
        self.moment.param.watch(self._moved(self._show_scene), "value")
        for widget in (self.column, self.across, self.up):
            widget.param.watch(self._moved(self._redraw), "value")
        self.fitness.param.watch(self._moved(self._redraw), "value_throttled")

    def _redraw(self) -> None:
        self._draw()
        self.map.mark(self.chosen)


def _about_file(kept: int, of: int, left_out: bool) -> str:
    """What the saved page contains, in words."""
    some = f"{kept} of {of} snapshots" if kept < of else "all snapshots"
    told = f"A saved page with {some}. Replays, neighbours and downloads need `vqelites explore`."
    return f"{told} Behaviors were too large to be saved." if left_out else told
