"""VQ-VAE: its encoder describes solutions, its codebook is the archive's cells (van den Oord et al. 2017)."""

import math
from collections.abc import Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from vqelites.branches import only_if, select
from vqelites.descriptors.base import AbstractDescriptor, LearnInfo, MapInfo, Observed
from vqelites.descriptors.coding import Coder, Coding
from vqelites.descriptors.equal_cells import EqualCells
from vqelites.descriptors.evenness import rarity
from vqelites.descriptors.health import collapsed, judge
from vqelites.descriptors.stretch import unequal_stretch
from vqelites.descriptors.training import Terms, Training
from vqelites.distinct import distinct
from vqelites.tessellation import kmeans, nearest, nearest_again, nearest_of


class Quantised(eqx.Module):
    """A coder and its codebook."""

    coder: Coder
    codebook: Float[Array, "k d"]


class VQState(eqx.Module):
    """What a VQ-VAE remembers."""

    model: Quantised
    optimizer: PyTree
    trainings: Int[Array, ""]


class VQVAE(AbstractDescriptor):
    """A descriptor learned together with its cells; the same model is trained further at every update.

    `stretch` weighs equal stretch (`stretch.py`) in the loss, per latent number; `equal` is the share of the codes that
    one round of equal cells (`equal_cells.py`) may move; `even` draws rare samples more often (`evenness.py`).
    `codebook` starts as "kmeans" of uniform points in [-1, 1]^dim (the paper's), "random" (uniform in the same box, or
    normal if not bounded) or "data" (k-means of the encoder's outputs at the first training). A map that has collapsed
    is trained anew from all stored behaviors.
    """

    dim: int = eqx.field(static=True)
    codes: int = eqx.field(static=True)
    coding: Coding
    training: Training
    beta: Float[Array, ""]
    stretch: Float[Array, ""]
    equal: EqualCells | None
    even: bool = eqx.field(static=True)
    codebook: str = eqx.field(static=True)

    def __init__(
        self,
        shape: tuple[int, ...],
        dim: int,
        codes: int,
        *,
        codebook: Literal["kmeans", "random", "data"] = "kmeans",
        beta: float = 0.25,
        stretch: float = 1.0,
        equal: float = 0.25,
        even: bool = True,
        training: Training | None = None,
        **coding: Any,
    ):
        """Further arguments are those of `Coding`: networks, bounded, units, blur, ..."""
        if codes < 1:
            raise ValueError(f"A codebook needs at least 1 code, got codes={codes}.")
        if codebook not in ("kmeans", "random", "data"):
            raise ValueError(f"codebook must be 'kmeans', 'random' or 'data', got {codebook!r}.")
        if not 0 <= equal <= 1 or stretch < 0:
            raise ValueError(f"equal is a share of the codes and stretch a weight >= 0; got {equal} and {stretch}.")
        self.dim, self.codes, self.codebook = dim, codes, codebook
        self.equal = EqualCells(equal) if equal else None
        self.coding = Coding(shape, dim, **coding)
        self.training = training or Training()
        self.beta, self.stretch = jnp.asarray(beta), jnp.asarray(stretch)
        self.even = even

    def init(self, key: Key[Array, ""]) -> VQState:
        """A fresh model."""
        coder_key, codebook_key = jax.random.split(key)
        model = Quantised(self.coding.init(coder_key), self._first_codebook(codebook_key))
        return VQState(model, self.training.optimizer_state(model), jnp.array(0, jnp.int32))

    def _first_codebook(self, key: Key[Array, ""]) -> Float[Array, "k d"]:
        sample_key, cluster_key = jax.random.split(key)
        if self.codebook == "random" and not self.coding.bounded:
            return jax.random.normal(sample_key, (self.codes, self.dim))
        per_code = 25 if self.codebook == "kmeans" else 1
        samples = jax.random.uniform(sample_key, (per_code * self.codes, self.dim), minval=-1, maxval=1)
        return kmeans(cluster_key, samples, self.codes) if self.codebook == "kmeans" else samples

    def describe(
        self, state: VQState, behavior: Float[Array, "n *shape"], truth: Float[Array, "n t"]
    ) -> Float[Array, "n {self.dim}"]:
        """The encoder's outputs."""
        return self.coding.encode(state.model.coder, behavior)

    def decode(self, state: VQState, latent: Float[Array, "n d"]) -> Float[Array, "n *shape"]:
        """The behaviors that descriptors, or codes, stand for."""
        return self.coding.decode(state.model.coder, latent)

    def cells(self, state: VQState) -> Float[Array, "k {self.dim}"]:
        """The codebook."""
        return state.model.codebook

    def losses(
        self, model: Quantised, view: Float[Array, "b *seen"], key: Key[Array, ""] | None
    ) -> tuple[Terms, Quantised]:
        """Reconstruction + codebook + beta * commitment of each view, with the straight-through gradient, + stretch."""
        encoder_key, decoder_key = (None, None) if key is None else jax.random.split(key)
        latent, coder = self.coding.encode_batch(model.coder, view, encoder_key)
        code = model.codebook[nearest(*jax.lax.stop_gradient((latent, model.codebook)))]
        through = latent + jax.lax.stop_gradient(code - latent)
        reconstruction, coder = self.coding.reconstruct_batch(coder, through, view, decoder_key)
        codebook = self.coding.reduce(jnp.square(code - jax.lax.stop_gradient(latent)))
        commitment = self.coding.reduce(jnp.square(latent - jax.lax.stop_gradient(code)))
        stretch = jnp.zeros_like(commitment) + unequal_stretch(view.reshape(view.shape[0], -1), latent)
        loss = reconstruction + codebook + self.beta * commitment + self.stretch / self.dim * stretch
        return Terms(loss, reconstruction, codebook, commitment, stretch), Quantised(coder, model.codebook)

    def learn(
        self,
        state: VQState,
        key: Key[Array, ""],
        samples: Float[Array, "n *shape"],
        mask: Bool[Array, "n"],
        progress: Float[Array, ""],
        epochs: Int[Array, ""],
    ) -> tuple[VQState, LearnInfo]:
        """Train the model further; if a number is no longer finite, all stays as it was."""
        start_key, fit_key = jax.random.split(key)
        model = only_if(state.trainings == 0, self._oriented, state.model, start_key, samples, mask)
        views = self.coding.view.of(model.coder.seen, samples)
        weight = rarity(views.reshape(views.shape[0], -1), mask) if self.even else mask.astype(views.dtype)
        model, optimizer, terms, epochs, finite = self.training.fit(
            model,
            state.optimizer,
            self.losses,
            views,
            mask,
            fit_key,
            progress,
            epochs,
            weight if self.even else None,
        )
        new = VQState(model, optimizer, state.trainings + 1)
        unexplained = self.coding.unexplained(state.trainings == 0, terms.reconstruction, views, weight)
        state = select(finite & (epochs > 0), new, state)
        loss = (terms.loss, terms.reconstruction, terms.codebook, terms.commitment, terms.stretch)
        return state, LearnInfo(*loss, unexplained, mask.sum(), epochs, ~finite)

    def _oriented(
        self, model: Quantised, key: Key[Array, ""], samples: Float[Array, "n *shape"], mask: Bool[Array, "n"]
    ) -> Quantised:
        """A model adapted to the data."""
        coder = self.coding.adapt(model.coder, samples, mask)
        if self.codebook != "data":
            return Quantised(coder, model.codebook)
        return Quantised(coder, _clustered(key, self.coding.encode(coder, samples), mask, self.codes))

    def settle(
        self, state: VQState, key: Key[Array, ""], stored: Sequence[Observed], mend: bool = True
    ) -> tuple[VQState, list[Float[Array, "n {self.dim}"]], MapInfo]:
        """Begin the map anew if it has collapsed, then move codes to where cells are too large."""
        stored = list(stored)
        mask = jnp.concatenate([rows.mask for rows in stored])
        nothing = [jnp.zeros((len(rows.mask), self.dim)) for rows in stored]
        # A loop of one round, or two: what is compiled for a map that has collapsed is only what begins it anew.
        now = jax.lax.while_loop(
            lambda now: (now.rounds == 0) | (mend & (now.rounds == 1) & now.ill),
            lambda now: self._looked(now, key, stored, mask, mend),
            _Look(state, nothing, jnp.zeros_like(mask, jnp.int32)),
        )
        state, code, together, moved = now.state, now.code, jnp.concatenate(now.latent), jnp.array(0, jnp.int32)
        if self.equal is not None:
            limit = 1.0 if self.coding.bounded else math.inf
            fitness = jnp.concatenate([rows.fitness for rows in stored])
            codebook, moved = self.equal(state.model.codebook, together, mask, fitness, limit)
            changed = (codebook != state.model.codebook).any(axis=1)
            code = nearest_again(mask, together, codebook, code, changed)
            state = eqx.tree_at(lambda s: s.model.codebook, state, codebook)
        info = judge(now.behaviors, together, mask, code, self.codes, self.coding.bounded)
        return state, now.latent, eqx.tree_at(lambda i: (i.moved, i.restarted), info, (moved, now.ill))

    def _looked(
        self, now: "_Look", key: Key[Array, ""], stored: Sequence[Observed], mask: Bool[Array, "m"], mend: bool
    ) -> "_Look":
        """Round 1 looks at the map with all stored behaviors; round 2, only after a collapse, at a new one."""
        again = now.rounds > 0
        state = only_if(again, self._anew, now.state, key, stored) if mend else now.state
        latent, views = self.coding.look(state.model.coder, [rows.behavior for rows in stored])
        code, behaviors = self._codes(state, latent, mask), distinct(views, mask).sum()
        ill = jnp.where(again, now.ill, collapsed(behaviors, code, self.codes))
        return _Look(state, latent, code, jnp.where(again, now.behaviors, behaviors), ill, now.rounds + 1)

    def _codes(self, state: VQState, latent: list[Float[Array, "n d"]], mask: Bool[Array, "m"]) -> Int[Array, "m"]:
        """The code of each stored behavior; as many as there are codes where `mask` is False."""
        return nearest_of(mask, jnp.concatenate(latent), state.model.codebook)

    def _anew(self, old: VQState, key: Key[Array, ""], stored: Sequence[Observed]) -> VQState:
        """A fresh model oriented on all stored behaviors."""
        init_key, start_key = jax.random.split(key)
        fresh = self.init(init_key)
        samples, mask, _ = (jnp.concatenate(column) for column in zip(*stored, strict=True))
        return VQState(self._oriented(fresh.model, start_key, samples, mask), fresh.optimizer, old.trainings)


class _Look(eqx.Module):
    """What round 1, or after a collapse round 2, has found: where the map puts all stored behaviors."""

    state: VQState
    latent: list[Float[Array, "n d"]]
    code: Int[Array, "m"]
    behaviors: Int[Array, ""] = eqx.field(default_factory=lambda: jnp.array(0, jnp.int32))  # that differ, at first
    ill: Bool[Array, ""] = eqx.field(default_factory=lambda: jnp.array(False))  # at first
    rounds: Int[Array, ""] = eqx.field(default_factory=lambda: jnp.array(0, jnp.int32))


def _clustered(
    key: Key[Array, ""], latent: Float[Array, "n d"], mask: Bool[Array, "n"], codes: int
) -> Float[Array, "{codes} d"]:
    """K-means of the latents where `mask` is True, repeated with a little noise if there are fewer than codes."""
    noise_key, cluster_key = jax.random.split(key)
    size = max(codes, latent.shape[0])
    rows = jnp.argsort(~mask)[jnp.arange(size) % jnp.maximum(mask.sum(), 1)]
    spread = jnp.where(mask[:, None], latent, jnp.nan)
    noise = 0.05 * jnp.nan_to_num(jnp.nanstd(spread)) * jax.random.normal(noise_key, (size, latent.shape[1]))
    return kmeans(cluster_key, latent[rows] + noise, codes)
