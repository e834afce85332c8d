"""One elite: what it did, its numbers, its solution, its neighbours, and a replay when asked for."""

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import panel as pn

from vqelites.explore import columns, texts
from vqelites.explore.behaviors import BehaviorView, FramesView, view_of
from vqelites.explore.source import NotShownError, Record, Scene, Source
from vqelites.frames import ArchiveFrame
from vqelites.plots.behavior import limits
from vqelites.plots.channels import own_ranges
from vqelites.words import counted

_NEIGHBOURS = 5
_MOST_BYTES = 30_000_000  # of behaviors and solutions in a file
_WIDTH, _SMALL = 360, 96  # pixels of a behavior, and of a neighbour's


class EliteView:
    """The elite chosen last. It is built for one archive, whose shapes and limits its plots have."""

    def __init__(self, source: Source, archive: ArchiveFrame, no_replay: str, choose: Callable[[int], None]):
        self._source, self._archive, self._choose = source, archive, choose
        self.id: int | None = None
        shape = archive.behavior.shape[1:]
        ranges = own_ranges(archive.behavior) if len(shape) == 2 and len(archive) else None
        behavior = (shape, *limits([archive.behavior]))
        self.behavior = view_of(*behavior, _WIDTH, ranges=ranges)
        self.solution = view_of(archive.solutions.shape[1:], *limits([archive.solutions]), _WIDTH)
        self.facts = texts.pane()
        self.note = pn.Column()
        small = [view_of(*behavior, _SMALL, ranges=ranges, small=True) for _ in range(_NEIGHBOURS)]
        self.neighbours = [_Neighbour(view, choose) for view in small]
        self.button = pn.widgets.Button(label="Replay", width=100, visible=not no_replay)
        self.button.on_click(self._replay)
        self.no_replay = texts.pane(texts.small(f"No replay. {no_replay}"), visible=bool(no_replay))
        self.replayed = pn.Column()
        row = pn.Row(*(one.view for one in self.neighbours))
        self.near = pn.Column(texts.pane(texts.heading("Neighbours on the map")), row)
        self.view = pn.Column(
            self.facts,
            self.note,
            texts.pane(texts.heading("Behavior")),
            self.behavior.view,
            pn.Row(self.button, self.no_replay),
            self.replayed,
            texts.pane(texts.heading("Solution")),
            self.solution.view,
            self.near,
            visible=False,
            width=_NEIGHBOURS * (_SMALL + 10) + 20,
        )

    def show(self, record: Record, scene: Scene, id: int) -> None:
        """Show an elite of this scene."""
        row = int(np.flatnonzero(scene.ids == id)[0])
        stored = record.row(id)
        if id != self.id:
            self.replayed.clear()
        self.id, self.view.visible = id, True
        self.facts.object = self._text(record, scene, row, stored)
        self.button.disabled = stored is None
        if stored is None:
            self.note[:] = [texts.sentence(texts.REPLACED)]
            self.behavior.clear()
            self.solution.clear()
        else:
            self.note.clear()
            self.behavior.show(self._archive.behavior[stored])
            self.solution.show(self._archive.solutions[stored])
        near = columns.neighbours(scene.descriptors, row, _NEIGHBOURS)
        self.near.visible = bool(len(near))
        for i, neighbour in enumerate(self.neighbours):
            neighbour.show(record, scene, int(near[i]) if i < len(near) else None)

    def leave_to_browser(self, record: Record, scene: Scene) -> dict[str, BehaviorView]:
        """Remove what needs a server; return the views that the browser fills for any elite, none if data are too many.

        One is filled already: the elite chosen last or, if it is no longer stored, the best of the scene that is.
        """
        stored = np.flatnonzero(np.isin(scene.ids, self._archive.ids))
        few = self._archive.behavior.nbytes + self._archive.solutions.nbytes <= _MOST_BYTES
        filled = bool(stored.size) and few
        if filled and (self.id is None or record.row(self.id) is None):
            self.show(record, scene, int(scene.ids[stored[scene.fitness[stored].argmax()]]))
        self.button.visible = self.no_replay.visible = self.near.visible = False
        return {"behavior": self.behavior, "solution": self.solution} if filled else {}

    def hide(self) -> None:
        """Show no elite."""
        self.id, self.view.visible = None, False

    def _text(self, record: Record, scene: Scene, row: int, stored: int | None) -> str:
        """All that is known of an elite in numbers."""
        facts = {"descriptor": texts.numbers(scene.descriptors[row])}
        if stored is not None:
            truth = self._archive.truth[stored]
            facts |= {"truth": texts.numbers(truth)} if len(truth) else {}
            facts |= {
                "cell": str(self._archive.cells[stored]),
                "solution": texts.numbers(self._archive.solutions[stored]),
            }
        facts["age"] = counted(int(columns.values(record, scene, "age")[row]), "evaluation")
        return texts.heading(f"Elite {scene.ids[row]}", f"fitness {scene.fitness[row]:.4g}") + texts.table(facts)

    async def _replay(self, _: Any) -> None:
        """Replay the elite in a thread, since it may take seconds."""
        asked = self.id
        if asked is None:
            return
        self.button.loading = True
        try:
            shown = await asyncio.to_thread(self._source.replay, asked)
            if isinstance(shown, np.ndarray):
                frames = FramesView(shown.shape, 0.0, max(float(shown.max()), 1e-6), _WIDTH, False)
                frames.show(shown)
                frames.play()
                found = frames.view
            else:
                found = pn.pane.Matplotlib(shown, width=_WIDTH, tight=False)
        except NotShownError as error:
            found = texts.sentence(str(error))
        finally:
            self.button.loading = False
        if self.id == asked:
            self.replayed[:] = [found]


class _Neighbour:
    """A small behavior with its fitness, and a button that chooses its elite."""

    def __init__(self, behavior: Any, choose: Callable[[int], None]):
        self.behavior = behavior
        self.id = 0
        self.fitness = texts.pane(margin=(0, 5))  # not the label of the button, for which all is laid out again
        button = pn.widgets.Button(label="Show", width=_SMALL, height=26, margin=(0, 5))
        button.on_click(lambda _: choose(self.id))
        self.view = pn.Column(behavior.view, self.fitness, button, width=_SMALL + 10)

    def show(self, record: Record, scene: Scene, row: int | None) -> None:
        """Show an elite of a scene; None: there are not that many."""
        self.view.visible = row is not None
        if row is None:
            return
        self.id = int(scene.ids[row])
        self.fitness.object = texts.small(f"{scene.fitness[row]:.3g}")
        stored = record.row(self.id)
        if stored is None or record.archive is None:
            self.behavior.clear()
        else:
            self.behavior.show(record.archive.behavior[stored])
