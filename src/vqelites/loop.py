"""The one loop behind every algorithm, joining a descriptor, an archive, an addition rule and a variation."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from vqelites.archives.addition import AbstractAddition, Scheduled
from vqelites.archives.base import AbstractArchive, InsertInfo
from vqelites.dataset import Dataset, DatasetState
from vqelites.descriptors.base import AbstractDescriptor, LearnInfo, MapInfo
from vqelites.keys import Stream, stream_key, stream_keys
from vqelites.schedule import Moment, Schedule
from vqelites.types import Elites, Evaluation, Sizes, SolutionSpace
from vqelites.variation import AbstractVariation, fittest, uniform_rows


class State(eqx.Module):
    """All that changes during a run: one pytree of arrays."""

    seed: UInt32[Array, ""]
    next_id: Int[Array, ""]  # id of the next solution to be asked for
    trainings: Int[Array, ""]
    descriptor: Any
    archive: Any
    dataset: DatasetState


class TellInfo(eqx.Module):
    """What one batch did to the archive."""

    insert: InsertInfo
    rejected: Int[Array, ""]  # evaluations with a non-finite number, kept out

    @classmethod
    def nothing(cls) -> "TellInfo":
        """Nothing was told."""
        return cls(InsertInfo.nothing(), jnp.array(0, jnp.int32))


class UpdateInfo(eqx.Module):
    """What a training, a rebuild, or neither did after a batch."""

    learn: LearnInfo
    map: MapInfo
    lost: Int[Array, ""]  # elites that no longer hold a place

    @classmethod
    def nothing(cls) -> "UpdateInfo":
        """No update was due."""
        return cls(LearnInfo.untrained(), MapInfo.unknown(), jnp.array(0, jnp.int32))


class QD(eqx.Module):
    """A Quality-Diversity algorithm, as a composition of four parts with their timing and training data."""

    descriptor: AbstractDescriptor
    archive: AbstractArchive
    addition: AbstractAddition
    variation: AbstractVariation
    space: SolutionSpace
    schedule: Schedule
    dataset: Dataset
    sizes: Sizes
    batch_size: int = eqx.field(static=True, default=128)
    bootstrap: int = eqx.field(static=True, default=1280)  # random solutions tried before the first iteration
    bootstrap_epochs: int = eqx.field(static=True, default=100)
    fresh_until: float | Float[Array, ""] = eqx.field(converter=jnp.asarray, default=0.1)
    tournament: int = eqx.field(static=True, default=1)  # elites drawn for each parent; the fittest becomes it

    def __check_init__(self) -> None:
        if self.batch_size < 1 or self.bootstrap < 0 or self.tournament < 1:
            raise ValueError(
                "Expected batch_size and tournament >= 1 and bootstrap >= 0; "
                f"got batch_size={self.batch_size}, tournament={self.tournament}, bootstrap={self.bootstrap}."
            )

    def init(self, seed: int | UInt32[Array, ""]) -> State:
        """An empty archive and an untrained descriptor."""
        seed = jnp.asarray(seed, jnp.uint32)
        descriptor = self.descriptor.init(stream_key(seed, Stream.MODEL))
        zero = jnp.array(0, jnp.int32)
        return State(
            seed=seed,
            next_id=zero,
            trainings=zero,
            descriptor=descriptor,
            archive=self.archive.init(self.sizes, self.descriptor.cells(descriptor)),
            dataset=self.dataset.init(self.sizes.behavior),
        )

    def ask(self, state: State, count: int) -> tuple[State, Float[Array, "count s"]]:
        """Children of the elites; while few cells are filled, half of the batch is random (all, if none is).

        Random solutions keep a run from starving: a handful of elites with look-alike children is a fixed point.
        """
        ids = state.next_id + jnp.arange(count, dtype=jnp.int32)
        keys = jax.vmap(lambda key: jax.random.split(key, 3))(stream_keys(state.seed, Stream.VARIATION, ids))
        elites = self.archive.elites(state.archive)
        dice = jax.vmap(lambda key: jax.random.uniform(key, (2 * self.tournament + 1,)))(keys[:, 0])
        drawn = uniform_rows(dice[:, :-1], elites.valid).reshape(count, 2, self.tournament)
        children = jax.vmap(self._child)(keys[:, 1], elites.solution[fittest(drawn, elites.fitness)])
        sparse = self.archive.filled(state.archive) < self.fresh_until
        fresh = (sparse & (dice[:, -1] < 0.5)) | (elites.size == 0)
        solutions = jnp.where(fresh[:, None], jax.vmap(self.space.random)(keys[:, 2]), children)
        return self._asked(state, count), solutions

    def ask_random(self, state: State, count: int) -> tuple[State, Float[Array, "count s"]]:
        """Random solutions, for the bootstrap."""
        ids = state.next_id + jnp.arange(count, dtype=jnp.int32)
        keys = stream_keys(state.seed, Stream.BOOTSTRAP, ids)
        return self._asked(state, count), jax.vmap(self.space.random)(keys)

    def tell(
        self,
        state: State,
        solutions: Float[Array, "n s"],
        evaluation: Evaluation,
        cooperate: Bool[Array, ""],
        present: Bool[Array, "n"] | None = None,
    ) -> tuple[State, TellInfo]:
        """Take in what solutions did. Rows that are not `present` are padding; non-finite ones are kept out."""
        batch, rejected = self.candidates(state, solutions, evaluation, present)
        archive, insert = self.archive.insert(state.archive, batch, Scheduled(self.addition, cooperate))
        dataset = self.dataset.add(state.dataset, batch.behavior, batch.valid)
        state = eqx.tree_at(lambda s: (s.archive, s.dataset), state, (self.archive.control(archive), dataset))
        return state, TellInfo(insert, rejected)

    def candidates(
        self, state: State, solutions: Float[Array, "n s"], evaluation: Evaluation, present: Bool[Array, "n"] | None
    ) -> tuple[Elites, Int[Array, ""]]:
        """The evaluated solutions, described, and how many were rejected for a non-finite number."""
        present = jnp.ones(solutions.shape[0], bool) if present is None else present
        valid = evaluation.finite & present
        # A NaN must not reach a network, where it would spread through batch statistics or sums.
        clean = jax.tree.map(lambda x: jnp.where(jnp.isfinite(x), x, 0), evaluation)
        elites = Elites(
            solution=solutions,
            fitness=clean.fitness,
            behavior=clean.behavior,
            descriptor=self.descriptor.describe(state.descriptor, clean.behavior, clean.truth),
            truth=clean.truth,
            valid=valid,
        )
        return elites, (present & ~valid).sum(dtype=jnp.int32)

    def start(self, state: State, seeds: Elites) -> tuple[State, UpdateInfo]:
        """End of the bootstrap: learn from what random solutions did, and let them seed the archive."""
        if self.schedule.learns:
            mask = self.dataset.thinned(seeds.behavior, seeds.valid)
            state, info = self._learn(state, seeds.behavior, mask, jnp.array(0.0), self.bootstrap_epochs, seeds)
        else:
            state, info = self.rebuild(state, seeds)
        return eqx.tree_at(lambda s: s.dataset, state, self.dataset.trained(state.dataset)), info

    def learn(self, state: State, moment: Moment) -> tuple[State, UpdateInfo]:
        """Train the descriptor on the dataset, describe every elite anew and re-insert it."""
        key = stream_key(state.seed, Stream.DATASET, state.trainings)
        samples, mask = self.dataset.samples(state.dataset, key, self.archive.elites(state.archive))
        state, info = self._learn(state, samples, mask, moment.progress, moment.epochs, None)
        return eqx.tree_at(lambda s: s.dataset, state, self.dataset.trained(state.dataset)), info

    def pretrain(self, state: State, samples: Float[Array, "n *shape"], epochs: int) -> tuple[State, UpdateInfo]:
        """Train on behavior that was brought along, before any solution is tried."""
        mask = jnp.isfinite(samples).reshape(samples.shape[0], -1).all(axis=1)
        return self._learn(state, samples, mask, jnp.array(0.0), epochs, None)

    def rebuild(self, state: State, extra: Elites | None = None) -> tuple[State, UpdateInfo]:
        """Describe every stored record anew and re-insert it, then the extra ones."""
        stored = self._described(state, self.archive.stored(state.archive))
        state, lost = self._replace(state, stored, None if extra is None else self._described(state, extra))
        return state, eqx.tree_at(lambda i: i.lost, UpdateInfo.nothing(), lost)

    def _learn(
        self,
        state: State,
        samples: Float[Array, "n *shape"],
        mask: Bool[Array, "n"],
        progress: Float[Array, ""],
        epochs: int | Int[Array, ""],
        extra: Elites | None,
    ) -> tuple[State, UpdateInfo]:
        learn_key, settle_key = jax.random.split(stream_key(state.seed, Stream.LEARNING, state.trainings))
        samples = jnp.where(mask.reshape(-1, *[1] * (samples.ndim - 1)), samples, 0)
        descriptor, learned = self.descriptor.learn(
            state.descriptor, learn_key, samples, mask, progress, jnp.asarray(epochs, jnp.int32)
        )
        stored = self.archive.stored(state.archive)
        seen = (samples, mask) if extra is None else (extra.behavior, extra.valid)
        descriptor, descriptors, info = self.descriptor.settle(
            descriptor, settle_key, [(stored.behavior, stored.valid), seen]
        )
        state = eqx.tree_at(lambda s: (s.descriptor, s.trainings), state, (descriptor, state.trainings + 1))
        extra = None if extra is None else extra.described(descriptors[1])
        state, lost = self._replace(state, stored.described(descriptors[0]), extra)
        return state, UpdateInfo(learned, info, lost)

    def _replace(self, state: State, stored: Elites, extra: Elites | None) -> tuple[State, Int[Array, ""]]:
        """Re-insert the stored records by their new descriptors, then the extra ones; and how many elites that cost."""
        archive, lost = self.archive.rebuild(state.archive, stored, self.descriptor.cells(state.descriptor), extra)
        return eqx.tree_at(lambda s: s.archive, state, archive), lost

    def _child(self, key: Key[Array, ""], parents: Float[Array, "2 s"]) -> Float[Array, "s"]:
        return self.space.clip(self.variation.child(key, parents[0], parents[1], self.space))

    def _described(self, state: State, elites: Elites) -> Elites:
        return elites.described(self.descriptor.describe(state.descriptor, elites.behavior, elites.truth))

    def _asked(self, state: State, count: int) -> State:
        return eqx.tree_at(lambda s: s.next_id, state, state.next_id + count)
