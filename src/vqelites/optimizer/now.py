"""All of an ask/tell optimizer that changes."""

import time
from dataclasses import dataclass, replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vqelites.drive import Host, Piece, Position, Rows, StepInfo
from vqelites.loop import State, TellInfo, UpdateInfo
from vqelites.optimizer.blueprint import Blueprint
from vqelites.optimizer.pending import Pending
from vqelites.optimizer.told import Told
from vqelites.runs import contents, plan
from vqelites.runs.contents import Snapshot
from vqelites.runs.metrics_file import columns
from vqelites.types import Elites


@dataclass(frozen=True)
class Now:
    """Where it stands. Whoever holds it replaces it in one step, so that Ctrl-C leaves everything as it was."""

    blueprint: Blueprint
    host: Host
    at: Position
    pending: Pending
    rejected: int = 0  # evaluations kept out
    recorded: int = 0  # of them those in the history
    pixels: frozenset[str] = frozenset()  # kinds of image that were told
    history: tuple[dict[str, np.ndarray], ...] = ()  # a row (1,) of each column for the bootstrap and every iteration
    snapshots: tuple[Snapshot, ...] = ()
    seconds: float = 0.0  # spent in tell

    @classmethod
    def of(cls, blueprint: Blueprint) -> "Now":
        """Before anything was asked."""
        host = blueprint.host()
        now = cls(blueprint, host, host.begin(blueprint.seed), Pending.nothing(host.qd.space.dim))
        if now.at.bootstrapping:
            return now
        nothing = StepInfo(TellInfo.nothing(), UpdateInfo.nothing(), host.measured(now.state))
        return replace(now, history=(now._row(nothing),))

    @property
    def state(self) -> State:
        """The state of the loop."""
        return self.at.state

    def with_truth(self, width: int) -> "Now":
        """The same with room for a truth of this width; only while nothing has been told."""
        blueprint = self.blueprint.with_truth(width)
        if width == self.host.qd.sizes.truth:
            return replace(self, blueprint=blueprint)
        host = blueprint.host()
        sizes = host.qd.sizes
        empty = (
            host.qd.archive.init(sizes, host.qd.descriptor.cells(self.state.descriptor)),
            Elites.empty(self.state.seeds.capacity, sizes),
        )
        state = eqx.tree_at(lambda s: (s.archive, s.seeds), self.state, empty)
        return replace(self, blueprint=blueprint, host=host, at=Position.of(state))

    def with_model_of(self, folder: Path) -> "Now":
        """The same with the model of a saved run."""
        from vqelites.optimizer.saved import load

        saved = load(folder, self.blueprint.own)
        wanted, found = (jax.tree.map(jnp.shape, now.state.descriptor) for now in (self, saved))
        if wanted != found:
            raise ValueError(
                f"The model saved in {folder} has other shapes than this one. "
                "Use the same behavior_shape, latent_dim, cells, blur and networks."
            )
        descriptor = saved.state.descriptor
        archive = self.host.qd.archive.init(self.host.qd.sizes, self.host.qd.descriptor.cells(descriptor))
        state = eqx.tree_at(lambda s: (s.descriptor, s.archive), self.state, (descriptor, archive))
        return replace(self, at=Position.of(state), pixels=saved.pixels)

    def trains_within(self, count: int) -> str:
        """What will be trained on when so many more evaluations are told; nothing if no training falls due."""
        qd, missing = self.host.qd, self.host.missing(self.at)
        if not qd.schedule.learns or count < missing:
            return ""
        if self.at.bootstrapping:
            return f"Training on the {qd.bootstrap} behaviors of the bootstrap"
        ends = range(self.at.iteration, self.at.iteration + 1 + (count - missing) // qd.batch_size)
        return "Training" if any(self.host.learns_at(iteration) for iteration in ends) else ""

    def told(self, rows: Rows, began: float) -> tuple["Now", Told]:
        """What these evaluations lead to, and what they did."""
        at, pieces = self.host.tell(self.at, rows)
        told = Told.of(pieces[0])
        for piece in pieces[1:]:
            told = told.and_then(Told.of(piece))
        seconds = self.seconds + time.monotonic() - began
        after = replace(self, at=at, pending=self.pending.without(rows.ids), seconds=seconds)
        return after._recorded(pieces), told

    def _recorded(self, pieces: list[Piece]) -> "Now":
        """With a row of history for every iteration that was completed, and the snapshots that are due."""
        now, ends = self, (self.host.qd.schedule.iterations,)
        for piece in pieces:
            now = replace(now, rejected=now.rejected + int(piece.tell.rejected))
            if piece.done is not None:
                row = now._row(piece.info)
                now = replace(now, recorded=now.rejected, history=(*now.history, row))
                if piece.done.iteration in plan.snapshots(ends, 1):
                    taken = contents.snapshot(self.host.qd, piece.done.state, decoded=False)
                    now = replace(now, snapshots=(*now.snapshots, taken))
        return now

    def _row(self, info: StepInfo) -> dict[str, np.ndarray]:
        """The next row of history."""
        iteration, qd = len(self.history), self.host.qd
        numbers = (iteration, qd.bootstrap + iteration * qd.batch_size, self.seconds)
        return columns(info, *map(np.atleast_1d, numbers)) | {"rejected": np.array([self.rejected - self.recorded])}
