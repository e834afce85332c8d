"""The loop driven evaluation by evaluation: counts what was told and does what is due."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vqelites.drive import call
from vqelites.loop import QD, State, TellInfo, UpdateInfo
from vqelites.types import Evaluation, Sizes


@dataclass(frozen=True)
class Told:
    """What one `tell` changed."""

    added: int = 0  # solutions that entered an empty cell
    replaced: int = 0  # solutions that took a cell from a less fit elite
    rejected: int = 0  # evaluations with a non-finite number, kept out
    lost: int = 0  # elites that lost their cell because the model moved
    trainings: int = 0
    rolled_back: int = 0  # trainings undone because a number was no longer finite
    loss: float = float("nan")  # of the last training
    behaviors: int = 0  # stored ones that differ, at the last training; so are the next three
    codes_used: float = float("nan")  # codes with at least one of them
    perplexity: float = float("nan")  # how many equally used codes would be as diverse
    saturated: float = float("nan")  # share of descriptors at the limits of the learned space
    moved: int = 0  # codes moved to where cells were too large
    restarted: int = 0  # times the map had collapsed and was begun anew

    @classmethod
    def of(cls, told: TellInfo, updated: UpdateInfo) -> "Told":
        """The counts of one piece."""
        return cls(
            added=int(told.insert.added),
            replaced=int(told.insert.replaced),
            rejected=int(told.rejected),
            lost=int(updated.lost),
            trainings=int(updated.learn.epochs > 0),
            rolled_back=int(updated.learn.rolled_back),
            loss=float(updated.learn.loss),
            behaviors=int(updated.map.behaviors),
            codes_used=float(updated.map.codes_used),
            perplexity=float(updated.map.perplexity),
            saturated=float(updated.map.saturated),
            moved=int(updated.map.moved),
            restarted=int(updated.map.restarted),
        )

    def and_then(self, later: "Told") -> "Told":
        """Both, in this order."""
        last = later if later.trainings else self
        return Told(
            added=self.added + later.added,
            replaced=self.replaced + later.replaced,
            rejected=self.rejected + later.rejected,
            lost=self.lost + later.lost,
            trainings=self.trainings + later.trainings,
            rolled_back=self.rolled_back + later.rolled_back,
            loss=last.loss,
            behaviors=last.behaviors,
            codes_used=last.codes_used,
            perplexity=last.perplexity,
            saturated=last.saturated,
            moved=self.moved + later.moved,
            restarted=self.restarted + later.restarted,
        )


class Rows(NamedTuple):
    """Evaluated solutions on the host, one row each."""

    solutions: np.ndarray  # (n, s)
    fitness: np.ndarray  # (n,)
    behavior: np.ndarray  # (n, *shape)
    truth: np.ndarray  # (n, t)

    def part(self, start: int, stop: int) -> "Rows":
        """The rows from start to stop."""
        return Rows(*(column[start:stop] for column in self))

    def then(self, other: "Rows") -> "Rows":
        """These rows, then the other's."""
        return Rows(*(np.concatenate(columns) for columns in zip(self, other, strict=True)))

    def padded(self, size: int) -> "Rows":
        """These rows, then zeros up to `size` rows."""
        return Rows(*(np.pad(x, [(0, size - len(x))] + [(0, 0)] * (x.ndim - 1)) for x in self))

    @property
    def evaluation(self) -> Evaluation:
        """What the solutions did, as the loop takes it."""
        return Evaluation(jnp.asarray(self.fitness), jnp.asarray(self.behavior), jnp.asarray(self.truth))


class Teller:
    """Feeds evaluations to the loop in pieces that never cross the end of the bootstrap or of an iteration.

    An iteration is over after every `qd.batch_size` completed evaluations, however they were grouped.
    """

    def __init__(self, qd: QD, seed: int):
        self.qd = qd
        self.state: State = call(qd, "init", jnp.asarray(seed, jnp.uint32))
        self.told = 0
        self.rejected = 0
        self._seeds = self._nothing()  # what the bootstrap's solutions did, kept until it is complete

    @property
    def bootstrapping(self) -> bool:
        """Whether solutions are still random."""
        return self.told < self.qd.bootstrap

    def ask(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Ids (count,) and solutions (count, s)."""
        first = int(self.state.next_id)
        self.state, solutions = call(self.qd, "ask_random" if self.bootstrapping else "ask", self.state, count)
        return np.arange(first, first + count), np.array(solutions)

    def tell(self, rows: Rows) -> Told:
        """Take in evaluated solutions, doing every update that falls due on the way."""
        told, done, count = Told(), 0, len(rows.fitness)
        while done < count:
            size = min(count - done, self._until_boundary())
            told = told.and_then(self._take(rows.part(done, done + size)))
            done += size
        self.rejected += told.rejected
        return told

    def pretrain(self, behavior: np.ndarray) -> None:
        """Train the model on behavior that was brought along."""
        self.state, _ = call(self.qd, "pretrain", self.state, jnp.asarray(behavior), self.qd.bootstrap_epochs)

    def adopt(self, descriptor: Any, source: str) -> None:
        """Go on with another run's model."""
        wanted, found = (jax.tree.map(jnp.shape, model) for model in (self.state.descriptor, descriptor))
        if wanted != found:
            raise ValueError(
                f"{source} has other shapes than this one. "
                "Use the same behavior_shape, latent_dim, cells, blur and networks."
            )
        self.state = eqx.tree_at(lambda s: s.descriptor, self.state, descriptor)
        self.state, _ = call(self.qd, "rebuild", self.state)

    def expect_truth(self, width: int) -> None:
        """Make room for a truth of this width; only while nothing has been told."""
        old = self.qd.sizes
        sizes = Sizes(old.solution, old.behavior, old.descriptor, width)
        self.qd = eqx.tree_at(lambda qd: qd.sizes, self.qd, sizes, is_leaf=lambda x: isinstance(x, Sizes))
        archive = self.qd.archive.init(sizes, self.qd.descriptor.cells(self.state.descriptor))
        self.state = eqx.tree_at(lambda s: s.archive, self.state, archive)
        self._seeds = self._nothing()

    def host(self) -> dict[str, np.ndarray]:
        """What is not in the state, for saving."""
        counts = {"told": np.array(self.told), "rejected": np.array(self.rejected)}
        return counts | {f"seeds_{name}": column for name, column in self._seeds._asdict().items()}

    def restore(self, state: State, host: Mapping[str, np.ndarray]) -> None:
        """Go on where a saved one stopped."""
        self.state, self.told, self.rejected = state, int(host["told"]), int(host["rejected"])
        self._seeds = Rows(*(host[f"seeds_{name}"] for name in Rows._fields))

    def _nothing(self) -> Rows:
        sizes = self.qd.sizes
        shapes = ((sizes.solution,), (), sizes.behavior, (sizes.truth,))
        return Rows(*(np.zeros((0, *shape), np.float32) for shape in shapes))

    def _until_boundary(self) -> int:
        since = self.told - self.qd.bootstrap
        return min(-since, self.qd.batch_size) if since < 0 else self.qd.batch_size - since % self.qd.batch_size

    def _take(self, rows: Rows) -> Told:
        """One piece, padded to a whole batch so that pieces of every size run the same compiled code."""
        count, bootstrapping = len(rows.fitness), self.bootstrapping
        moment = self.qd.schedule.at(max(self.told - self.qd.bootstrap, 0) // self.qd.batch_size)
        batch, present = rows.padded(self.qd.batch_size), jnp.arange(self.qd.batch_size) < count
        self.state, info = call(
            self.qd, "tell", self.state, jnp.asarray(batch.solutions), batch.evaluation, moment.cooperate, present
        )
        self.told += count
        updated = UpdateInfo.nothing()
        if bootstrapping:
            self._seeds = self._seeds.then(rows)
            if not self.bootstrapping:
                updated = self._start()
        elif (self.told - self.qd.bootstrap) % self.qd.batch_size == 0 and moment.learn:
            self.state, updated = call(self.qd, "learn", self.state, moment)
        return Told.of(info, updated)

    def _start(self) -> UpdateInfo:
        """The bootstrap is complete: train on it, and let all of it compete for the cells."""
        solutions = jnp.asarray(self._seeds.solutions)
        seeds, _ = call(self.qd, "candidates", self.state, solutions, self._seeds.evaluation, None)
        self.state, updated = call(self.qd, "start", self.state, seeds)
        self._seeds = self._nothing()
        return updated
