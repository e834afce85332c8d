"""Training on masked samples in shuffled minibatches, in one compiled loop."""

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from vqelites.branches import select
from vqelites.descriptors.evenness import drawn

Model = TypeVar("Model", bound=eqx.Module)


class Terms(eqx.Module):
    """The loss and what it is made of, per sample or averaged."""

    loss: Float[Array, "*n"]
    reconstruction: Float[Array, "*n"]
    codebook: Float[Array, "*n"]
    commitment: Float[Array, "*n"]
    stretch: Float[Array, "*n"]


# (model, batch, key) -> (terms of each sample, model with new statistics); without a key, in evaluation mode.
Losses = Callable[[Any, Float[Array, "b *shape"], Key[Array, ""] | None], tuple[Terms, Any]]


class Training(eqx.Module):
    """How a model is trained: Adam, with a learning rate that follows a cosine over the whole run.

    The rate goes from `learning_rate` down to its share `final` (1 keeps it constant, as in the paper). If
    `validation` is above 0, that share of the samples is held out, the best parameters on it are kept and training
    ends after `patience` epochs without a better one.
    """

    learning_rate: float | Float[Array, ""] = eqx.field(converter=jnp.asarray, default=7e-4)
    final: float | Float[Array, ""] = eqx.field(converter=jnp.asarray, default=0.02)
    patience: int | Int[Array, ""] = eqx.field(converter=jnp.asarray, default=10)
    batch: int = eqx.field(static=True, default=64)
    validation: float = eqx.field(static=True, default=0.0)
    reset_optimizer: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        if self.batch < 1:
            raise ValueError(f"The minibatch needs at least 1 sample, got batch={self.batch}.")
        if not 0 <= self.validation < 1:
            raise ValueError(f"validation is the share of samples held out, in [0, 1), got {self.validation}.")

    def rate(self, progress: Float[Array, ""]) -> Float[Array, ""]:
        """The learning rate when a share `progress` of the run is over."""
        cosine = (1 + jnp.cos(jnp.pi * jnp.clip(progress, 0, 1))) / 2
        return self.learning_rate * (self.final + (1 - self.final) * cosine)

    def optimizer_state(self, model: Model) -> PyTree:
        """A fresh optimizer state."""
        return _ADAM.init(eqx.filter(model, eqx.is_inexact_array))

    def fit(
        self,
        model: Model,
        optimizer_state: PyTree,
        losses: Losses,
        samples: Float[Array, "n *shape"],
        mask: Bool[Array, "n"],
        key: Key[Array, ""],
        progress: Float[Array, ""],
        epochs: Int[Array, ""],
        weight: Float[Array, "n"] | None = None,
    ) -> tuple[Model, PyTree, Terms, Int[Array, ""], Bool[Array, ""]]:
        """Train for at most `epochs` epochs on the samples where `mask` is True.

        Returns model, optimizer state, mean terms of the last epoch, epochs run, and whether all stayed finite; if
        not, or if no epoch was run, the caller keeps what it had.
        """
        split_key, key = jax.random.split(key)
        train_rows, held_out = self._split(mask, split_key)
        if self.reset_optimizer:
            optimizer_state = self.optimizer_state(model)

        def more(loop: _Loop) -> Bool[Array, ""]:
            return (loop.epoch < epochs) & loop.finite & mask.any() & (loop.waited < self.patience)

        def epoch(loop: _Loop) -> _Loop:
            epoch_key = jax.random.fold_in(key, loop.epoch)
            loop = self._epoch(loop, losses, samples, train_rows, epoch_key, self.rate(progress), weight)
            return self._validate(loop, losses, samples, held_out) if self.validation else loop

        start = _Loop(model, optimizer_state, model if self.validation else None)
        loop = jax.lax.while_loop(more, epoch, start)
        model = loop.best if self.validation else loop.model
        return model, loop.optimizer_state, loop.terms, loop.epoch, loop.finite & _all_finite(model)

    def _split(self, mask: Bool[Array, "n"], key: Key[Array, ""]) -> tuple[Bool[Array, "n"], Bool[Array, "n"]]:
        """Which samples to train on and which to hold out; too few to hold one out, and all serve both purposes."""
        if not self.validation:
            return mask, mask
        held_count = jnp.floor(self.validation * mask.sum()).astype(jnp.int32)
        rank = jnp.argsort(_shuffled(mask, key)).astype(jnp.int32)
        held_out = mask & (rank < held_count)
        return mask & ~held_out, jnp.where(held_count > 0, held_out, mask)

    def _epoch(
        self,
        loop: "_Loop",
        losses: Losses,
        samples: Float[Array, "n *shape"],
        rows: Bool[Array, "n"],
        key: Key[Array, ""],
        rate: Float[Array, ""],
        weight: Float[Array, "n"] | None,
    ) -> "_Loop":
        """One pass over the rows in a new order."""
        count = rows.sum()
        order = _shuffled(rows, jax.random.fold_in(key, 0))
        if weight is not None:
            order = drawn(jax.random.fold_in(key, 0), jnp.where(rows, weight, 0))
        steps = -(-count // self.batch)
        learned = _learned(loop.model)

        def mean_loss(
            part: Any, rest: Any, batch: Float[Array, "b *shape"], step_key: Key[Array, ""]
        ) -> tuple[Array, Any]:
            terms, model = losses(eqx.combine(part, rest), batch, step_key)
            terms = jax.tree.map(jnp.mean, terms)
            return terms.loss, (terms, model)

        def step(i: Int[Array, ""], carry: tuple[Any, PyTree, Terms]) -> tuple[Any, PyTree, Terms]:
            model, optimizer_state, total = carry
            # Wrapping around fills the last minibatch; only rows that count are ever seen.
            batch = samples[order[(i * self.batch + jnp.arange(self.batch)) % count]]
            step_key = jax.random.fold_in(key, i + 1)
            parts = eqx.partition(model, learned)
            gradient, (terms, model) = eqx.filter_grad(mean_loss, has_aux=True)(*parts, batch, step_key)
            updates, optimizer_state = _updates(gradient, optimizer_state, learned)
            model = eqx.apply_updates(model, jax.tree.map(lambda u: -rate * u, updates))
            return model, optimizer_state, jax.tree.map(jnp.add, total, terms)

        carry = (loop.model, loop.optimizer_state, jax.tree.map(jnp.zeros_like, loop.terms))
        model, optimizer_state, total = jax.lax.fori_loop(0, steps, step, carry)
        terms = jax.tree.map(lambda t: t / steps, total)
        return _Loop(
            model, optimizer_state, loop.best, loop.best_loss, loop.waited, loop.epoch + 1, terms,
            jnp.isfinite(terms.loss),
        )  # fmt: skip

    def _validate(
        self, loop: "_Loop", losses: Losses, samples: Float[Array, "n *shape"], rows: Bool[Array, "n"]
    ) -> "_Loop":
        """Keep the model if it is the best so far on the rows held out."""
        count = rows.sum()
        order = _shuffled(rows, jax.random.key(0))

        def add(i: Int[Array, ""], total: Float[Array, ""]) -> Float[Array, ""]:
            places = i * self.batch + jnp.arange(self.batch)
            terms, _ = losses(loop.model, samples[order[places % count]], None)
            return total + jnp.where(places < count, terms.loss, 0).sum()

        loss = jax.lax.fori_loop(0, -(-count // self.batch), add, jnp.zeros(())) / count
        better = loss < loop.best_loss
        return eqx.tree_at(
            lambda s: (s.best, s.best_loss, s.waited, s.finite),
            loop,
            (
                select(better, loop.model, loop.best),
                jnp.where(better, loss, loop.best_loss),
                jnp.where(better, 0, loop.waited + 1),
                loop.finite & jnp.isfinite(loss),
            ),
        )


_ADAM = optax.scale_by_adam()


class Known(eqx.Module):
    """What a model takes from data and no gradient reaches: training passes over it."""


def _learned(model: Model) -> Model:
    """For each leaf of a model whether it is learned."""

    def known(part: Any) -> bool:
        return isinstance(part, Known)

    return jax.tree.map(lambda part: not known(part) and eqx.is_inexact_array(part), model, is_leaf=known)


def _updates(gradient: PyTree, state: Any, learned: PyTree) -> tuple[PyTree, Any]:
    """Adam's updates of what is learned; the rest stays 0 in its state."""
    few = state._replace(mu=eqx.filter(state.mu, learned), nu=eqx.filter(state.nu, learned))
    updates, few = _ADAM.update(gradient, few)
    return updates, few._replace(mu=eqx.combine(few.mu, state.mu), nu=eqx.combine(few.nu, state.nu))


class _Loop(eqx.Module):
    """What one epoch hands to the next."""

    model: Any
    optimizer_state: PyTree
    best: Any
    best_loss: Float[Array, ""] = eqx.field(default_factory=lambda: jnp.array(jnp.inf, jnp.float32))
    waited: Int[Array, ""] = eqx.field(default_factory=lambda: jnp.array(0, jnp.int32))
    epoch: Int[Array, ""] = eqx.field(default_factory=lambda: jnp.array(0, jnp.int32))
    terms: Terms = eqx.field(default_factory=lambda: Terms(*jnp.full((5,), jnp.nan)))
    finite: Bool[Array, ""] = eqx.field(default_factory=lambda: jnp.array(True))


def _shuffled(rows: Bool[Array, "n"], key: Key[Array, ""]) -> Int[Array, "n"]:
    """A random order of all indices in which the rows that count come first."""
    return jnp.argsort(jnp.where(rows, jax.random.uniform(key, rows.shape), 2.0))


def _all_finite(model: eqx.Module) -> Bool[Array, ""]:
    """Whether no number of the model is NaN or infinite."""
    leaves = jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array))
    return jnp.isfinite(jnp.concatenate([leaf.reshape(-1) for leaf in leaves])).all()
