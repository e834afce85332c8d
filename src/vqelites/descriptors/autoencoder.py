"""AURORA's descriptor: the latent of an autoencoder (Grillotti & Cully 2022)."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from vqelites.branches import only_if, select
from vqelites.descriptors.base import AbstractDescriptor, LearnInfo, MapInfo, Observed
from vqelites.descriptors.coding import Coder, Coding
from vqelites.descriptors.health import judge
from vqelites.descriptors.stretch import unequal_stretch
from vqelites.descriptors.training import Terms, Training
from vqelites.distinct import distinct


class AEState(eqx.Module):
    """What an autoencoder remembers; latents are standardised by `mean` and `scale` (0 and 1 if bounded)."""

    model: Coder
    optimizer: PyTree
    mean: Float[Array, "d"]
    scale: Float[Array, "d"]
    trainings: Int[Array, ""]


class AutoEncoder(AbstractDescriptor):
    """A descriptor learned without cells; a fresh optimizer trains it further each time.

    `stretch` is the weight of equal stretch (`stretch.py`) in the loss; AURORA itself has none.
    """

    dim: int = eqx.field(static=True)
    coding: Coding
    training: Training
    stretch: float = eqx.field(static=True)

    def __init__(
        self, shape: tuple[int, ...], dim: int, *, stretch: float = 0.0, training: Training | None = None, **coding: Any
    ):
        """Further arguments are those of `Coding`: networks, bounded, units, blur, ..."""
        self.dim, self.stretch = dim, stretch
        self.coding = Coding(shape, dim, **coding)
        self.training = training or Training(reset_optimizer=True, validation=0.25, final=jnp.asarray(1.0))

    def init(self, key: Key[Array, ""]) -> AEState:
        """A fresh model."""
        model = self.coding.init(key)
        return AEState(
            model,
            self.training.optimizer_state(model),
            jnp.zeros(self.dim),
            jnp.ones(self.dim),
            jnp.array(0, jnp.int32),
        )

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

    def losses(self, model: Coder, view: Float[Array, "b *seen"], key: Key[Array, ""] | None) -> tuple[Terms, Coder]:
        """How badly each view is reconstructed and, where wanted, how unequally the batch is stretched."""
        encoder_key, decoder_key = (None, None) if key is None else jax.random.split(key)
        latent, model = self.coding.encode_batch(model, view, encoder_key)
        loss, model = self.coding.reconstruct_batch(model, latent, view, decoder_key)
        nothing = jnp.zeros_like(loss)
        stretch = unequal_stretch(view.reshape(view.shape[0], -1), latent) + nothing if self.stretch else nothing
        return Terms(loss + self.stretch / self.dim * stretch, loss, nothing, nothing, stretch), model

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
        model = only_if(state.trainings == 0, self.coding.adapt, state.model, samples, mask)
        views = self.coding.view.of(model.seen, samples)
        model, optimizer, terms, epochs, finite = self.training.fit(
            model, state.optimizer, self.losses, views, mask, key, progress, epochs
        )
        mean, scale = state.mean, state.scale
        if not self.coding.bounded:
            mean, scale = _moments(self.coding.encode(model, samples), mask)
        unexplained = self.coding.unexplained(
            state.trainings == 0, terms.reconstruction, views, mask.astype(views.dtype)
        )
        state = select(finite & (epochs > 0), AEState(model, optimizer, mean, scale, state.trainings + 1), state)
        loss = (terms.loss, terms.reconstruction, terms.codebook, terms.commitment, terms.stretch)
        return state, LearnInfo(*loss, unexplained, mask.sum(), epochs, ~finite)

    def settle(
        self, state: AEState, key: Key[Array, ""], stored: Sequence[Observed], mend: bool = True
    ) -> tuple[AEState, list[Float[Array, "n {self.dim}"]], MapInfo]:
        """Describe the stored behaviors; there are no cells to fit."""
        latent, views = self.coding.look(state.model, [rows.behavior for rows in stored])
        mask = jnp.concatenate([rows.mask for rows in stored])
        info = judge(distinct(views, mask).sum(), jnp.concatenate(latent), mask, None, 0, self.coding.bounded)
        return state, [(x - state.mean[None]) / state.scale[None] for x in latent], info


def _moments(latent: Float[Array, "n d"], mask: Bool[Array, "n"]) -> tuple[Float[Array, "d"], Float[Array, "d"]]:
    """Mean and standard deviation of each latent number where `mask` is True; the scale of a constant one is 1."""
    rows, count = mask[:, None], jnp.maximum(mask.sum(), 1)
    mean = jnp.where(rows, latent, 0).sum(axis=0) / count
    spread = jnp.sqrt(jnp.where(rows, jnp.square(latent - mean[None]), 0).sum(axis=0) / count)
    return mean, jnp.where(spread > 1e-6, spread, 1.0)
