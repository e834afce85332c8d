"""The one loop behind every algorithm, joining a descriptor, an archive, an addition rule and a variation."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, UInt32

from vqelites.archives.addition import AbstractAddition, Scheduled
from vqelites.archives.base import AbstractArchive, InsertInfo
from vqelites.dataset import Dataset, DatasetState
from vqelites.descriptors.base import AbstractDescriptor, LearnInfo, Lesson, MapInfo, Observed, Settled
from vqelites.keys import Stream, stream_key, stream_keys
from vqelites.schedule import Due, Moment, Schedule
from vqelites.types import Elites, Evaluation, Sizes, SolutionSpace, Trials, padded
from vqelites.variation import AbstractVariation, fittest, uniform_rows


class State(eqx.Module):
    """All that changes during a run: one pytree of arrays."""

    seed: UInt32[Array, ""]
    iteration: Int[Array, ""]  # iterations completed
    told: Int[Array, ""]  # evaluations told since then; before the first iteration, those of the bootstrap
    next_id: Int[Array, ""]  # id of the next solution to be asked for
    trainings: Int[Array, ""]
    descriptor: Any
    archive: Any
    dataset: DatasetState
    seeds: Elites  # what the bootstrap's solutions did, until all of them are told; no rows from then on

    @property
    def bootstrapping(self) -> bool:
        """Whether solutions are still random. Known from a shape, so that compiled code holds one phase only."""
        return self.seeds.capacity > 0


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


class Assignment(eqx.Module):
    """What a training works with: the behaviors of `seeds`, solutions that compete for the archive once it is over."""

    seeds: Elites  # at the end of the bootstrap its solutions; else none of them is there, but behaviors are
    mask: Bool[Array, "n"]  # behaviors to train on
    seen: Bool[Array, "n"]  # behaviors the map is settled on
    progress: Float[Array, ""]  # share of the run that is over
    epochs: Int[Array, ""]


class QD(eqx.Module):
    """A Quality-Diversity algorithm, as a composition of four parts with their timing and training data.

    Every driver makes the same calls: `init`; while `state.bootstrapping`, `ask` and `tell` until `bootstrap` solutions
    are told, then `start`; from then on, for every iteration, `ask` and `tell` one batch, in any pieces, then `update`.
    Where a training is due, `assign`, `train` and `adopt` take the place of `start`, or follow `update`. They are
    programs of their own, since most of the time to compile goes into them, and the same ones serve the end of the
    bootstrap (on the `emptied` state) and all later trainings.
    """

    descriptor: AbstractDescriptor
    archive: AbstractArchive
    addition: AbstractAddition
    variation: AbstractVariation
    space: SolutionSpace
    schedule: Schedule
    dataset: Dataset
    sizes: Sizes
    batch_size: int = eqx.field(static=True, default=128)
    bootstrap: int = eqx.field(static=True, default=1280)  # random solutions evaluated before the first iteration
    bootstrap_epochs: int = eqx.field(static=True, default=100)
    fresh_until: float | Float[Array, ""] = eqx.field(converter=jnp.asarray, default=0.1)
    tournament: int = eqx.field(static=True, default=1)  # elites drawn for each parent, which is the fittest of them
    given: Float[Array, "g s"] | None = None  # solutions to start from, evaluated in place of the first random ones

    def __check_init__(self) -> None:
        if self.batch_size < 1 or self.bootstrap < 0 or self.tournament < 1:
            raise ValueError(
                "Expected batch_size and tournament >= 1 and bootstrap >= 0; "
                f"got batch_size={self.batch_size}, tournament={self.tournament}, bootstrap={self.bootstrap}."
            )
        if self.given is not None and len(self.given) > self.bootstrap:
            raise ValueError(
                f"{len(self.given)} solutions to start from are more than the bootstrap tries, which is "
                f"{self.bootstrap}; use bootstrap={len(self.given)}."
            )

    def init(self, seed: int | UInt32[Array, ""]) -> State:
        """An empty archive and an untrained descriptor."""
        seed = jnp.asarray(seed, jnp.uint32)
        descriptor = self.descriptor.init(stream_key(seed, Stream.MODEL))
        zero = jnp.array(0, jnp.int32)
        return State(
            seed=seed,
            iteration=zero,
            told=zero,
            next_id=zero,
            trainings=zero,
            descriptor=descriptor,
            archive=self.archive.init(self.sizes, self.descriptor.cells(descriptor)),
            dataset=self.dataset.init(self.sizes),
            seeds=Elites.empty(self.bootstrap, self.sizes),
        )

    def ask(self, state: State, count: int) -> tuple[State, Trials]:
        """Solutions to evaluate: random ones in the bootstrap, then children of the elites.

        While few cells are filled, half of the children are random solutions (all, if none is filled). Without
        them a run could get stuck with a handful of elites whose children all look alike.
        """
        state, ids = self.claim(state, count)
        if state.bootstrapping:
            return state, Trials(ids, self._first(state, ids))
        keys = jax.vmap(lambda key: jax.random.split(key, 3))(stream_keys(state.seed, Stream.VARIATION, ids))
        elites = self.archive.elites(state.archive)
        dice = jax.vmap(lambda key: jax.random.uniform(key, (2 * self.tournament + 1,)))(keys[:, 0])
        drawn = uniform_rows(dice[:, :-1], elites.valid).reshape(count, 2, self.tournament)
        children = jax.vmap(self._child)(keys[:, 1], elites.solution[fittest(drawn, elites.fitness)])
        sparse = self.archive.filled(state.archive) < self.fresh_until
        fresh = (sparse & (dice[:, -1] < 0.5)) | (elites.size == 0)
        return state, Trials(ids, self.space.renewed(children, fresh, keys[:, 2]))

    def claim(self, state: State, count: int) -> tuple[State, Int[Array, "count"]]:
        """Ids that no other solution of the run will have."""
        ids = state.next_id + jnp.arange(count, dtype=jnp.int32)
        return eqx.tree_at(lambda s: s.next_id, state, state.next_id + count), ids

    def tell(
        self,
        state: State,
        trials: Trials,
        evaluation: Evaluation,
        moment: Moment,
        present: Bool[Array, "n"] | None = None,
    ) -> tuple[State, TellInfo]:
        """Insert evaluated solutions. Rows that are not `present` are padding; non-finite ones are kept out.

        Telling a batch in pieces, each with its rows at their place in the batch, equals telling it at once. In the
        bootstrap the archive is provisional; `start` fills a new one.
        """
        present = jnp.ones(trials.id.shape[0], bool) if present is None else present
        batch = self._described(state, self._candidates(trials, evaluation, present))
        archive, insert = self.archive.insert(state.archive, batch, Scheduled(self.addition, moment.cooperate))
        info = TellInfo(insert, (present & ~batch.valid).sum(dtype=jnp.int32))
        told = state.told + present.sum(dtype=jnp.int32)
        if state.bootstrapping:
            rows = jnp.where(present, state.told + jnp.cumsum(present) - 1, state.seeds.capacity)
            changed = (archive, told, state.dataset, state.seeds.put(rows, batch))
        else:
            changed = (archive, told, self.dataset.add(state.dataset, batch.behavior, batch.valid), state.seeds)
        return eqx.tree_at(lambda s: (s.archive, s.told, s.dataset, s.seeds), state, changed), info

    def start(self, state: State) -> tuple[State, UpdateInfo]:
        """End of a bootstrap that trains nothing: all its solutions compete for an empty archive."""
        return self.rebuild(self.emptied(state), state.seeds)

    def emptied(self, state: State) -> State:
        """The bootstrap forgotten: an empty archive. From here on no shape changes."""
        archive = self.archive.init(self.sizes, self.descriptor.cells(state.descriptor))
        begun = (archive, Elites.empty(0, self.sizes), jnp.zeros_like(state.told))
        return eqx.tree_at(lambda s: (s.archive, s.seeds, s.told), state, begun)

    def update(self, state: State, moment: Moment, due: Due | None = None) -> tuple[State, UpdateInfo]:
        """End of an iteration: steer the archive's size, and rebuild if due. A training is left to the caller.

        If what is due is known at compile time, pass it: a branch copies the whole state. The moment is never batched,
        so that for many runs at once a rebuild stays a branch.
        """
        ended = (self.archive.control(state.archive), state.iteration + 1, jnp.zeros_like(state.told))
        state = eqx.tree_at(lambda s: (s.archive, s.iteration, s.told), state, ended)
        if due is None and self.schedule.rebuilding is not None:
            return jax.lax.cond(moment.rebuild, lambda s: self.rebuild(s), lambda s: (s, UpdateInfo.nothing()), state)
        return self.rebuild(state) if due is Due.REBUILD else (state, UpdateInfo.nothing())

    def assign(self, state: State, moment: Moment) -> Assignment:
        """What to train on: the dataset, or at the end of the bootstrap all: as many rows, for one program."""
        rows = max(self.bootstrap, self.dataset.rows(self.archive.elites(state.archive).capacity))
        if state.bootstrapping:
            seeds = padded(state.seeds, rows)
            mask = self.dataset.thinned(seeds.behavior, seeds.valid)
            begun, epochs = jnp.zeros_like(moment.progress), jnp.array(self.bootstrap_epochs, jnp.int32)
            return Assignment(seeds, mask, seeds.valid, begun, epochs)
        key = stream_key(state.seed, Stream.DATASET, state.trainings)
        found = self.dataset.samples(state.dataset, key, self.archive.elites(state.archive))
        return self._later(*padded(found, rows), moment.progress, moment.epochs)

    def train(self, state: State, assignment: Assignment) -> Lesson:
        """What the descriptor learns. This takes long; the state stays as it is, and may go on meanwhile."""
        learn_key, _ = self._learning_keys(state)
        given = assignment
        descriptor, info = self.descriptor.learn(
            state.descriptor, learn_key, given.seeds.behavior, given.mask, given.progress, given.epochs
        )
        return Lesson(descriptor, info, state.dataset.since_update)

    def adopt(self, state: State, given: Assignment, lesson: Lesson, mend: bool = True) -> tuple[State, UpdateInfo]:
        """Use the trained model from now on: describe every elite again and re-insert it, then the seeds."""
        settled = self.settle(state, lesson, Observed.of(given.seeds, given.seen), mend)
        return self.place(state, lesson, settled, given.seeds)

    def settle(self, state: State, lesson: Lesson, seen: Observed, mend: bool = True) -> Settled:
        """The trained map after its last corrections, made by looking at all stored behaviors and those just `seen`."""
        _, settle_key = self._learning_keys(state)
        stored = self.archive.stored(state.archive)
        groups = [*(Observed.of(group, group.valid) for group in stored), seen]
        descriptor, (*of_stored, of_seen), info = self.descriptor.settle(lesson.descriptor, settle_key, groups, mend)
        return Settled(descriptor, of_stored, of_seen, info)

    def place(self, state: State, lesson: Lesson, settled: Settled, seeds: Elites) -> tuple[State, UpdateInfo]:
        """Use a settled map from now on: re-insert every elite, then the seeds."""
        pairs = zip(self.archive.stored(state.archive), settled.stored, strict=True)
        stored = [group.described(descriptor) for group, descriptor in pairs]
        state = eqx.tree_at(lambda s: (s.descriptor, s.trainings), state, (settled.descriptor, state.trainings + 1))
        state, lost = self._replace(state, stored, seeds.described(settled.seen))
        dataset = self.dataset.trained(state.dataset, lesson.window)
        return eqx.tree_at(lambda s: s.dataset, state, dataset), UpdateInfo(lesson.info, settled.info, lost)

    def pretrain(self, state: State, samples: Float[Array, "n *shape"]) -> tuple[State, UpdateInfo]:
        """Train on given behavior, before any solution is evaluated."""
        mask = jnp.isfinite(samples).reshape(samples.shape[0], -1).all(axis=1)
        samples = jnp.where(mask.reshape(-1, *[1] * (samples.ndim - 1)), samples, 0)
        assignment = self._later(samples, mask, jnp.array(0.0), jnp.array(self.bootstrap_epochs, jnp.int32))
        return self.adopt(state, assignment, self.train(state, assignment))

    def rebuild(self, state: State, extra: Elites | None = None) -> tuple[State, UpdateInfo]:
        """Describe every stored record anew and re-insert it, then the extra ones."""
        stored = [self._described(state, group) for group in self.archive.stored(state.archive)]
        state, lost = self._replace(state, stored, None if extra is None else self._described(state, extra))
        return state, eqx.tree_at(lambda i: i.lost, UpdateInfo.nothing(), lost)

    def _later(
        self,
        samples: Float[Array, "n *shape"],
        mask: Bool[Array, "n"],
        progress: Float[Array, ""],
        epochs: Int[Array, ""],
    ) -> Assignment:
        """A training after the bootstrap: nobody but the elites competes for the archive."""
        nobody = eqx.tree_at(lambda e: e.behavior, Elites.empty(mask.shape[0], self.sizes), samples)
        return Assignment(nobody, mask, mask, progress, epochs)

    def _learning_keys(self, state: State) -> Key[Array, "2"]:
        return jax.random.split(stream_key(state.seed, Stream.LEARNING, state.trainings))

    def _replace(self, state: State, stored: list[Elites], extra: Elites | None) -> tuple[State, Int[Array, ""]]:
        """Re-insert the stored records by their new descriptors, then the extra ones; and how many elites that cost."""
        archive, lost = self.archive.rebuild(state.archive, stored, self.descriptor.cells(state.descriptor), extra)
        return eqx.tree_at(lambda s: s.archive, state, archive), lost

    def _first(self, state: State, ids: Int[Array, "n"]) -> Float[Array, "n s"]:
        """The solutions given to start from, then random ones."""
        random = jax.vmap(self.space.random)(stream_keys(state.seed, Stream.BOOTSTRAP, ids))
        if self.given is None:
            return random
        given = self.given.at[ids].get(mode="clip")
        return jnp.where((ids < len(self.given))[:, None], given, random)

    def _child(self, key: Key[Array, ""], parents: Float[Array, "2 s"]) -> Float[Array, "s"]:
        return self.space.clip(self.variation.child(key, parents[0], parents[1], self.space))

    def _described(self, state: State, elites: Elites) -> Elites:
        return elites.described(self.descriptor.describe(state.descriptor, elites.behavior, elites.truth))

    def _candidates(self, trials: Trials, evaluation: Evaluation, present: Bool[Array, "n"]) -> Elites:
        """The evaluated solutions, not yet described. A NaN must not reach a network, where it would spread."""
        clean = jax.tree.map(lambda x: jnp.where(jnp.isfinite(x), x, 0), evaluation)
        return Elites(
            id=trials.id,
            solution=trials.solution,
            fitness=clean.fitness,
            behavior=self.sizes.held(clean.behavior),
            descriptor=jnp.zeros((trials.id.shape[0], 0)),
            truth=clean.truth,
            valid=evaluation.finite & present,
        )
