"""AURORA's descriptor: the latent of an autoencoder (Grillotti & Cully 2022)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from vqelites.descriptors.base import AbstractDescriptor, LearnInfo
from vqelites.descriptors.coding import Coder, Coding, moments
from vqelites.descriptors.training import Terms, Training, select


class AEState(eqx.Module):
    """What an autoencoder remembers; latents are standardised by `mean` and `scale` (0 and 1 if bounded)."""

    model: Coder
    optimizer: PyTree
    mean: Float[Array, "d"]
    scale: Float[Array, "d"]


class AutoEncoder(AbstractDescriptor):
    """A descriptor learned without cells. The optimizer and all statistics of the data are renewed at each training."""

    dim: int = eqx.field(static=True)
    coding: Coding
    training: Training

    def __init__(self, shape: tuple[int, ...], dim: int, *, training: Training | None = None, **coding: Any):
        """Further arguments are those of `Coding`: networks, bounded, loss, reduction, output, ..."""
        self.dim = dim
        self.coding = Coding(shape, dim, **coding)
        self.training = training or Training(reset_optimizer=True, validation=0.25, final=jnp.asarray(1.0))

    def init(self, key: Key[Array, ""]) -> AEState:
        """A fresh model."""
        model = self.coding.init(key)
        return AEState(model, self.training.optimizer_state(model), jnp.zeros(self.dim), jnp.ones(self.dim))

    def describe(
        self, state: AEState, behavior: Float[Array, "n *shape"], truth: Float[Array, "n t"]
    ) -> Float[Array, "n {self.dim}"]:
        """The encoder's outputs, standardised if they are not bounded."""
        return (self.coding.encode(state.model, behavior) - state.mean[None]) / state.scale[None]

    def decode(self, state: AEState, latent: Float[Array, "n d"]) -> Float[Array, "n *shape"]:
        """The behaviors that descriptors stand for."""
        return self.coding.decode(state.model, latent * state.scale[None] + state.mean[None])

    def cells(self, state: AEState) -> None:
        """No cells are learned."""

    def losses(self, model: Coder, batch: Float[Array, "b *shape"], key: Key[Array, ""] | None) -> tuple[Terms, Coder]:
        """How badly each sample is reconstructed."""
        encoder_key, decoder_key = (None, None) if key is None else jax.random.split(key)
        latent, model = self.coding.encode_batch(model, batch, encoder_key)
        loss, model = self.coding.reconstruct_batch(model, latent, batch, decoder_key)
        return Terms(loss, loss, jnp.zeros_like(loss), jnp.zeros_like(loss)), model

    def learn(
        self,
        state: AEState,
        key: Key[Array, ""],
        samples: Float[Array, "n *shape"],
        mask: Bool[Array, "n"],
        progress: Float[Array, ""],
        epochs: Int[Array, ""],
    ) -> tuple[AEState, LearnInfo]:
        """Train the model further; if a number is no longer finite, all stays as it was."""
        model = self.coding.adapt(state.model, samples, mask)
        model, optimizer, terms, epochs, finite = self.training.fit(
            model, state.optimizer, self.losses, samples, mask, key, progress, epochs
        )
        mean, scale = state.mean, state.scale
        if not self.coding.bounded:
            mean, scale = moments(self.coding.encode(model, samples), mask)
        state = select(finite & (epochs > 0), AEState(model, optimizer, mean, scale), state)
        none = LearnInfo.untrained()
        return state, LearnInfo(
            terms.loss, terms.reconstruction, terms.codebook, terms.commitment,
            none.codes_used, none.perplexity, none.reseeded, mask.sum(), epochs, ~finite,
        )  # fmt: skip
