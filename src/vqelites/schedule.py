"""When to train, rebuild and cooperate: plain arrays over the iterations, so that every algorithm's timing is data."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int


class Moment(eqx.Module):
    """What is due in one iteration."""

    learn: Bool[Array, "*n"]  # train the descriptor afterwards
    rebuild: Bool[Array, "*n"]  # re-insert all elites afterwards
    cooperate: Bool[Array, "*n"]  # newcomers always win
    epochs: Int[Array, "*n"]  # of training
    progress: Float[Array, "*n"]  # share of the run that is over, in [0, 1]


class Schedule(eqx.Module):
    """One `Moment` per iteration of the planned run; past its end, the last `period` iterations repeat."""

    moments: Moment
    learns: bool = eqx.field(static=True)  # whether the descriptor is trained: after the bootstrap, and when due
    period: int = eqx.field(static=True)

    @property
    def iterations(self) -> int:
        """Length of the planned run: the horizon of the learning-rate schedule."""
        return self.moments.learn.shape[0]

    def at(self, iteration: int | Int[Array, ""]) -> Moment:
        """What is due in this iteration, counted from 0."""
        past = iteration - self.iterations
        index = jnp.where(past < 0, iteration, self.iterations - self.period + past % self.period)
        return jax.tree.map(lambda x: x[index], self.moments)


def _schedule(
    learn: np.ndarray, rebuild: np.ndarray, cooperate: int, epochs: int, period: int, learns: bool = True
) -> Schedule:
    iterations = len(learn)
    moments = Moment(
        learn=jnp.asarray(learn),
        rebuild=jnp.asarray(rebuild),
        cooperate=jnp.arange(iterations) < cooperate,
        epochs=jnp.full(iterations, epochs, jnp.int32),
        progress=jnp.arange(1, iterations + 1, dtype=jnp.float32) / iterations,
    )
    return Schedule(moments, learns, period=min(period, iterations))


def _check(iterations: int, **counts: int) -> None:
    for name, value in {"iterations": iterations, **counts}.items():
        if value < 1:
            raise ValueError(f"A schedule needs {name} >= 1, but got {name}={value}.")


def never(iterations: int) -> Schedule:
    """No training: hand-coded descriptors."""
    _check(iterations)
    nothing = np.zeros(iterations, bool)
    return _schedule(nothing, nothing, cooperate=0, epochs=0, period=1, learns=False)


def every(iterations: int, update_every: int, epochs: int, cooperate: int = 0) -> Schedule:
    """Train after every `update_every` iterations (VQ-Elites); cooperate in the first `cooperate` ones."""
    _check(iterations, update_every=update_every, epochs=epochs)
    learn = np.arange(1, iterations + 1) % update_every == 0
    return _schedule(learn, np.zeros(iterations, bool), cooperate, epochs, period=update_every)


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
    _check(iterations, epochs=epochs, first=first, gap=gap, rebuild_every=rebuild_every)
    count = np.arange(1, iterations + 1)
    learn = np.zeros(iterations, bool)
    due = first
    while due <= iterations:
        learn[due - 1] = True
        due, gap = due + gap, gap + growth
    # Training ends with a rebuild of its own.
    return _schedule(learn, (count % rebuild_every == 0) & ~learn, cooperate, epochs, period=rebuild_every)
