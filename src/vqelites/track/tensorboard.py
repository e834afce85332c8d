"""TensorBoard: `tensorboard --logdir DIR`, for one run or for all runs in a folder."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.image import imread
from tensorboardX import SummaryWriter

from vqelites.frames import ArchiveFrame
from vqelites.track.base import AbstractTracker


class TensorBoard(AbstractTracker):
    """Event files: a curve for every metric, the pictures, and the elites in the projector."""

    def __init__(self, folder: Path, title: str, settings: dict[str, Any], after: int):
        # What an interrupted run had written beyond `after` is hidden: it comes again.
        self._writer = SummaryWriter(logdir=str(folder), purge_step=after + 1)
        if after < 0:
            self._writer.add_text("run", f"{title}\n\n    " + json.dumps(settings, indent=2).replace("\n", "\n    "))

    def rows(self, rows: Sequence[Mapping[str, float]]) -> None:
        """A point of every curve for each iteration."""
        for row in rows:
            step = int(row["iteration"])
            for name, value in row.items():
                if name != "iteration":
                    self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def figure(self, path: Path, iteration: int) -> None:
        """An image."""
        self._writer.add_image(path.stem, imread(path), iteration, dataformats="HWC")

    def archive(self, path: Path, elites: ArchiveFrame, iteration: int) -> None:
        """The elites by their descriptors in the projector, with id, cell and fitness."""
        labels = [list(row) for row in zip(elites.ids, elites.cells, elites.fitness, strict=True)]
        self._writer.add_embedding(
            elites.descriptors, labels, global_step=iteration, tag="archive", metadata_header=["id", "cell", "fitness"]
        )

    def close(self) -> None:
        """Close the event file."""
        self._writer.close()
