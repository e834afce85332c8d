"""When to train, rebuild and cooperate: numbers that say what is due in any iteration, also past the planned end."""

import enum
from collections.abc import Iterator

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


class Due(enum.IntEnum):
    """What happens after an iteration."""

    NOTHING = 0
    LEARN = 1
    REBUILD = 2


class Moment(eqx.Module):
    """What is due in one iteration."""

    learn: Bool[Array, ""]  # train the descriptor afterwards
    rebuild: Bool[Array, ""]  # re-insert all elites afterwards
    cooperate: Bool[Array, ""]  # newcomers always win
    epochs: Int[Array, ""]  # of training
    progress: Float[Array, ""]  # share of the planned run that is over, in [0, 1]

    @property
    def due(self) -> Int[Array, ""]:
        """A `Due`."""
        return self.learn * Due.LEARN + (self.rebuild & ~self.learn) * Due.REBUILD


class Rhythm(eqx.Module):
    """The times `first`, `first + gap`, ..., without end; each gap is `growth` longer than the one before."""

    first: int = eqx.field(static=True)
    gap: int = eqx.field(static=True)
    growth: int = eqx.field(static=True, default=0)

    def times(self, begin: int, end: int) -> Iterator[int]:
        """Those from `begin` on, before `end`."""
        time, gap = self.first, self.gap
        if not self.growth:
            time += max(0, -(-(begin - self.first) // self.gap)) * self.gap
        while time < end:
            if time >= begin:
                yield time
            time, gap = time + gap, gap + self.growth

    def due(self, time: Int[Array, ""]) -> Bool[Array, ""]:
        """Whether this is one of the times."""
        since = time - self.first
        if not self.growth:
            return (since >= 0) & (since % self.gap == 0)
        # The n-th time is n gaps and n (n - 1) / 2 growths after the first. The root of that, a float, is only near.
        steep = 2 * self.gap - self.growth
        root = (jnp.sqrt(steep**2 + 8.0 * self.growth * jnp.maximum(since, 0)) - steep) / (2 * self.growth)
        n = jnp.round(root).astype(jnp.int32) + jnp.arange(-1, 2)
        return ((n >= 0) & (n * self.gap + n * (n - 1) // 2 * self.growth == since)).any()


class Schedule(eqx.Module):
    """Training and rebuilding in their rhythms, cooperation at first; None is never.

    `iterations` is the planned run, over which the learning rate decays; beyond it the same intervals continue.
    """

    iterations: int = eqx.field(static=True)
    learning: Rhythm | None = None
    rebuilding: Rhythm | None = None
    epochs: int = eqx.field(static=True, default=0)
    cooperate: int = eqx.field(static=True, default=0)  # iterations, from the first on
    frozen: int = eqx.field(static=True, default=0)  # iterations without training, up to the last planned one

    def __check_init__(self) -> None:
        if self.iterations < 1:
            raise ValueError(f"A schedule needs iterations >= 1, but got iterations={self.iterations}.")

    @property
    def learns(self) -> bool:
        """Whether the descriptor is trained: after the bootstrap, and when due."""
        return self.learning is not None

    def trainings(self, first: int, count: int) -> list[int]:
        """After which of so many iterations, from number `first` on, the descriptor is trained."""
        if self.learning is None:
            return []
        times = self.learning.times(first + 1, first + count + 1)
        return [time - 1 for time in times if not self.iterations - self.frozen < time <= self.iterations]

    def at(self, iteration: int | Int[Array, ""]) -> Moment:
        """What is due in this iteration, counted from 0."""
        done = jnp.asarray(iteration, jnp.int32) + 1
        frozen = (done > self.iterations - self.frozen) & (done <= self.iterations)
        learn = jnp.array(False) if self.learning is None else self.learning.due(done) & ~frozen
        rebuild = jnp.array(False) if self.rebuilding is None else self.rebuilding.due(done)
        return Moment(
            learn=learn,
            rebuild=rebuild & ~learn,  # training ends with a rebuild of its own
            cooperate=done <= self.cooperate,
            epochs=jnp.array(self.epochs, jnp.int32),
            progress=jnp.minimum(done.astype(jnp.float32) / self.iterations, 1),
        )


def never(iterations: int) -> Schedule:
    """No training: hand-coded descriptors."""
    return Schedule(iterations)


def every(iterations: int, update_every: int, epochs: int, cooperate: int = 0, frozen: int = 0) -> Schedule:
    """Train after every `update_every` iterations (VQ-Elites), but not in the last `frozen` ones.

    Newcomers cooperate in the first `cooperate` ones.
    """
    _check(update_every=update_every, epochs=epochs)
    return Schedule(iterations, Rhythm(update_every, update_every), None, epochs, cooperate, frozen)


def growing_gaps(
    iterations: int,
    epochs: int,
    first: int = 1,
    gap: int = 20,
    growth: int = 10,
    rebuild_every: int = 10,
    cooperate: int = 0,
) -> Schedule:
    """Train after iterations 1, 21, 51, 91, ... (AURORA: each gap is longer), rebuild every `rebuild_every`."""
    _check(epochs=epochs, first=first, gap=gap, rebuild_every=rebuild_every)
    learning, rebuilding = Rhythm(first, gap, growth), Rhythm(rebuild_every, rebuild_every)
    return Schedule(iterations, learning, rebuilding, epochs, cooperate)


def _check(**counts: int) -> None:
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"A schedule needs {name} >= 1, but got {name}={value}.")
