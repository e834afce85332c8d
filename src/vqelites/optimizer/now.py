"""All of an ask/tell optimizer that changes."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vqelites.archives.base import InsertOutcome
from vqelites.diagnosis import diagnoses
from vqelites.drive import Host, Piece, Position, Rows, StepInfo
from vqelites.drive.bundle import Bundle
from vqelites.drive.leafwise import Waiting
from vqelites.loop import State, TellInfo, UpdateInfo
from vqelites.optimizer.blueprint import Blueprint
from vqelites.optimizer.history import History, Iterated
from vqelites.optimizer.pending import Pending
from vqelites.optimizer.told import Told
from vqelites.runs import contents, plan
from vqelites.runs.contents import Snapshot
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
    history: History = field(default_factory=History)
    snapshots: tuple[Snapshot, ...] = ()
    seconds: float = 0.0  # spent in ask and tell

    @classmethod
    def of(cls, blueprint: Blueprint) -> "Now":
        """Before anything was asked."""
        host = blueprint.host()
        now = cls(blueprint, host, host.begin(blueprint.seed), Pending.nothing(host.qd.space.dim))
        if now.at.bootstrapping:
            return now
        nothing = Bundle.of(StepInfo(TellInfo.nothing(), UpdateInfo.nothing(), host.measured(now.state)))
        return replace(now, history=now.history.then(Iterated(nothing, 0, 0, 0.0)))

    @property
    def state(self) -> State:
        """The state of the loop."""
        return self.at.state

    def shown(self, behavior: np.ndarray, truth_dim: int) -> "Now":
        """The same with room for what is told first; only while nothing has been told."""
        blueprint = self.blueprint.shown(behavior, truth_dim)
        known, sizes = blueprint.interface, self.host.sizes
        if (known.truth_dim, known.eight_bit) == (sizes.truth, sizes.eight_bit):
            return replace(self, blueprint=blueprint)
        host = blueprint.host()
        sizes = host.sizes
        empty = (
            host.qd.archive.init(sizes, host.qd.descriptor.cells(self.state.descriptor)),
            host.qd.dataset.init(sizes),
            Elites.empty(self.state.seeds.capacity, sizes),
        )
        state = eqx.tree_at(lambda s: (s.archive, s.dataset, s.seeds), self.state, empty)
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
        host, missing = self.host, self.host.missing(self.at)
        if not host.learns or count < missing:
            return ""
        if self.at.bootstrapping:
            return f"Training on the {host.bootstrap} behaviors of the bootstrap"
        ends = range(self.at.iteration, self.at.iteration + 1 + (count - missing) // host.batch_size)
        return "Training" if any(self.host.learns_at(iteration) for iteration in ends) else ""

    def pretrained(self, behavior: np.ndarray, waiting: Waiting) -> tuple["Now", Told]:
        """The same with a model trained on behavior (n, *shape), and how that went."""
        at, updated = self.host.pretrain(self.at, behavior, waiting)
        step = Bundle.of(StepInfo(TellInfo.nothing(), updated, {}))
        return replace(self, at=at), Told((Piece(step, Bundle.of(InsertOutcome.nothing()), slice(0, 0), None),))

    def illnesses(self, told: Told) -> dict[str, str]:
        """What is wrong with the map after its last training, by kind."""
        return diagnoses(
            evaluations=self.host.evaluations(self.at),
            behaviors=told.behaviors,
            codes_used=told.codes_used,
            saturated=told.saturated,
            restarted=told.restarted > 0,
            unexplained=told.unexplained,
            latent=self.host.qd.descriptor.dim,
            cells=getattr(self.blueprint.settings, "cells", 0),
        )

    def asked(self, count: int, *, by_order: bool) -> tuple["Now", np.ndarray, np.ndarray]:
        """Ids and solutions to try."""
        began = time.monotonic()
        at, ids, solutions = self.host.ask(self.at, count)
        pending = self.pending.with_asked(ids, solutions, by_order=by_order)
        seconds = self.seconds + time.monotonic() - began
        return replace(self, at=at, pending=pending, seconds=seconds), ids, solutions

    def told(self, rows: Rows, bad: np.ndarray, began: float, waiting: Waiting) -> tuple["Now", Told]:
        """What these evaluations, of which some (n,) are `bad`, lead to, and what they did."""
        at, pieces = self.host.tell(self.at, rows, waiting=waiting)
        seconds = self.seconds + time.monotonic() - began
        rejected, recorded, history, snapshots, done = self.rejected, self.recorded, self.history, self.snapshots, 0
        for piece in pieces:
            size = piece.places.stop - piece.places.start
            rejected += int(np.count_nonzero(bad[done : done + size]))
            done += size
            if piece.done is not None:
                so_far = self.host.evaluations(piece.done)
                history = history.then(Iterated(piece.numbers, rejected - recorded, so_far, seconds))
                snapshots, recorded = (*snapshots, *self._snapshots(piece.done)), rejected
        after = replace(
            self,
            at=at,
            pending=self.pending.without(rows.ids),
            rejected=rejected,
            recorded=recorded,
            history=history,
            snapshots=snapshots,
            seconds=seconds,
        )
        return after, Told(tuple(pieces))

    def _snapshots(self, at: Position) -> tuple[Snapshot, ...]:
        """The one that is due after this iteration, or none."""
        if at.iteration not in plan.snapshots((self.host.iterations,), 1):
            return ()
        return (contents.snapshot(self.host.qd, at.state, decoded=False),)
