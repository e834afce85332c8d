"""Weights & Biases: online for whoever is logged in, else offline, to be uploaded with `wandb sync`."""

import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import wandb

from vqelites.frames import ArchiveFrame
from vqelites.track.base import AbstractTracker


class WeightsAndBiases(AbstractTracker):
    """One run there for each run here: it keeps its id in the folder, so that a resumed run goes on under it."""

    def __init__(self, folder: Path, title: str, settings: dict[str, Any]):
        folder.mkdir(parents=True, exist_ok=True)
        kept = folder / "id.txt"
        if not kept.exists():
            kept.write_text(uuid.uuid4().hex[:8])
        self._id = kept.read_text()
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", "vqelites"),
            name=title,
            id=self._id,
            resume="allow",
            dir=str(folder),
            config=settings,
            mode=None if "WANDB_MODE" in os.environ or wandb.login(prompt=False, verify=False) else "offline",
            settings=wandb.Settings(console="off", silent=True),  # the terminal belongs to the run
        )
        # Counted in iterations: calls, which it would count itself, begin at 0 again in a resumed run.
        self._run.define_metric("iteration")
        self._run.define_metric("*", step_metric="iteration")

    def rows(self, rows: Sequence[Mapping[str, float]]) -> None:
        """A row of its history for each iteration."""
        for row in rows:
            self._run.log(dict(row))

    def figure(self, path: Path, iteration: int) -> None:
        """An image."""
        self._run.log({"iteration": iteration, f"figures/{path.stem}": wandb.Image(str(path))})

    def archive(self, path: Path, elites: ArchiveFrame, iteration: int) -> None:
        """The file as an artifact, with how many elites it holds."""
        about = {"iteration": iteration, **elites.stats._asdict()}
        artifact = wandb.Artifact(f"archive-{self._id}", type="archive", metadata=about)
        artifact.add_file(str(path))
        self._run.log_artifact(artifact)

    def close(self) -> None:
        """Finish the run there."""
        self._run.finish()
