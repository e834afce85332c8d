"""VQ-VAE: its encoder describes solutions, its codebook is the archive's cells (van den Oord et al. 2017)."""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from vqelites.descriptors.base import AbstractDescriptor, LearnInfo
from vqelites.descriptors.coding import Coder, Coding
from vqelites.descriptors.training import Terms, Training, select
from vqelites.tessellation import kmeans, nearest, usage

_NEAR = 0.01  # a code this close to a sample, in spreads of all samples, describes it well enough


class Quantised(eqx.Module):
    """A coder and its codebook."""

    coder: Coder
    codebook: Float[Array, "k d"]


class VQState(eqx.Module):
    """What a VQ-VAE remembers; `average` is None unless the descriptor comes from averaged weights."""

    model: Quantised
    average: Quantised | None
    optimizer: PyTree
    trainings: Int[Array, ""]
    idle: Int[Array, "k"]  # trainings since a sample last used the code


class VQVAE(AbstractDescriptor):
    """A descriptor learned together with its cells; one model is trained further and further, never reset.

    `codebook` starts as "kmeans" of uniform points in [-1, 1]^dim (the paper's), "random" (uniform in the same box,
    or normal if not bounded) or "data" (k-means of the encoder's outputs at the first training). `ema` is the share
    kept, at each training, of an average of all models so far, which then describes solutions. `reseed` is how many
    codes that no sample used for `reseed_after` trainings may be moved to samples far from their codes, per training.
    """

    dim: int = eqx.field(static=True)
    codes: int = eqx.field(static=True)
    coding: Coding
    training: Training
    beta: Float[Array, ""]
    ema: Float[Array, ""] | None
    codebook: str = eqx.field(static=True)
    reseed: int = eqx.field(static=True)
    reseed_after: Int[Array, ""]

    def __init__(
        self,
        shape: tuple[int, ...],
        dim: int,
        codes: int,
        *,
        codebook: Literal["kmeans", "random", "data"] = "kmeans",
        beta: float = 0.25,
        training: Training | None = None,
        ema: float | None = None,
        reseed: int = 0,
        reseed_after: int = 10,
        **coding: Any,
    ):
        """Further arguments are those of `Coding`: networks, bounded, loss, reduction, output, ..."""
        if codes < 1:
            raise ValueError(f"A codebook needs at least 1 code, got codes={codes}.")
        if codebook not in ("kmeans", "random", "data"):
            raise ValueError(f"codebook must be 'kmeans', 'random' or 'data', got {codebook!r}.")
        if not 0 <= reseed <= codes:
            raise ValueError(f"reseed is a number of codes, 0 to {codes}, got {reseed}.")
        self.dim, self.codes, self.codebook, self.reseed = dim, codes, codebook, reseed
        self.coding = Coding(shape, dim, **coding)
        self.training = training or Training()
        self.beta, self.reseed_after = jnp.asarray(beta), jnp.asarray(reseed_after)
        self.ema = None if ema is None else jnp.asarray(ema)

    def init(self, key: Key[Array, ""]) -> VQState:
        """A fresh model."""
        coder_key, codebook_key = jax.random.split(key)
        model = Quantised(self.coding.init(coder_key), self._first_codebook(codebook_key))
        average = None if self.ema is None else model
        idle = jnp.zeros(self.codes, jnp.int32)
        return VQState(model, average, self.training.optimizer_state(model), jnp.array(0, jnp.int32), idle)

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
        return self.coding.encode(_serving(state).coder, behavior)

    def decode(self, state: VQState, latent: Float[Array, "n d"]) -> Float[Array, "n *shape"]:
        """The behaviors that descriptors, or codes, stand for."""
        return self.coding.decode(_serving(state).coder, latent)

    def cells(self, state: VQState) -> Float[Array, "k {self.dim}"]:
        """The codebook."""
        return _serving(state).codebook

    def losses(
        self, model: Quantised, batch: Float[Array, "b *shape"], key: Key[Array, ""] | None
    ) -> tuple[Terms, Quantised]:
        """Reconstruction + codebook + beta * commitment of each sample, with the straight-through gradient."""
        encoder_key, decoder_key = (None, None) if key is None else jax.random.split(key)
        latent, coder = self.coding.encode_batch(model.coder, batch, encoder_key)
        code = model.codebook[nearest(*jax.lax.stop_gradient((latent, model.codebook)))]
        through = latent + jax.lax.stop_gradient(code - latent)
        reconstruction, coder = self.coding.reconstruct_batch(coder, through, batch, decoder_key)
        codebook = self.coding.reduce(jnp.square(code - jax.lax.stop_gradient(latent)))
        commitment = self.coding.reduce(jnp.square(latent - jax.lax.stop_gradient(code)))
        loss = reconstruction + codebook + self.beta * commitment
        return Terms(loss, reconstruction, codebook, commitment), Quantised(coder, model.codebook)

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
        start_key, fit_key, reseed_key = jax.random.split(key, 3)
        model = self._start(state, start_key, samples, mask)
        model, optimizer, terms, epochs, finite = self.training.fit(
            model, state.optimizer, self.losses, samples, mask, fit_key, progress, epochs
        )
        idle, reseeded = state.idle, jnp.array(0, jnp.int32)
        if self.reseed:
            model, idle, reseeded = self._revive(model, idle, reseed_key, samples, mask)
        new = VQState(model, self._averaged(state, model), optimizer, state.trainings + 1, idle)
        state = select(finite & (epochs > 0), new, state)
        codes_used, perplexity = usage(self._counts(_serving(state), samples, mask)[2])
        loss = (terms.loss, terms.reconstruction, terms.codebook, terms.commitment)
        reseeded = jnp.where(finite, reseeded, 0)
        return state, LearnInfo(*loss, codes_used, perplexity, reseeded, mask.sum(), epochs, ~finite)

    def _start(
        self, state: VQState, key: Key[Array, ""], samples: Float[Array, "n *shape"], mask: Bool[Array, "n"]
    ) -> Quantised:
        """The model to train: at the first training, adapted to the data."""
        first = state.trainings == 0
        model = Quantised(self.coding.adapt(state.model.coder, samples, mask), state.model.codebook)
        if self.codebook == "data":
            latent = self.coding.encode(model.coder, samples)
            model = Quantised(model.coder, _clustered(key, latent, mask, self.codes, jnp.where(first, 20, 0)))
        return select(first, model, state.model)

    def _averaged(self, state: VQState, model: Quantised) -> Quantised | None:
        """The average after one more training; the first model is its own average."""
        if self.ema is None:
            return None
        kept = jnp.where(state.trainings == 0, 0.0, self.ema)
        return jax.tree.map(lambda a, b: kept * a + (1 - kept) * b, state.average, model)

    def _counts(
        self, model: Quantised, samples: Float[Array, "n *shape"], mask: Bool[Array, "n"]
    ) -> tuple[Float[Array, "n d"], Int[Array, "n"], Int[Array, "k"]]:
        """Latents of the samples, their codes (k for masked ones), and how many samples use each code."""
        latent = self.coding.encode(model.coder, samples)
        code = jnp.where(mask, nearest(latent, model.codebook), self.codes)
        return latent, code, jnp.zeros(self.codes, jnp.int32).at[code].add(1, mode="drop")

    def _revive(
        self,
        model: Quantised,
        idle: Int[Array, "k"],
        key: Key[Array, ""],
        samples: Float[Array, "n *shape"],
        mask: Bool[Array, "n"],
    ) -> tuple[Quantised, Int[Array, "k"], Int[Array, ""]]:
        """Move codes that were idle for long onto samples, likelier the farther a sample is from its code.

        The odds go with the squared distance, as in k-means++: samples that share a code though they differ get codes
        of their own, however rare they are.
        """
        latent, code, counts = self._counts(model, samples, mask)
        idle = jnp.where(counts > 0, 0, idle + 1)
        dead_key, sample_key = jax.random.split(key)
        at_most = min(self.reseed, samples.shape[0])
        dead, is_dead = _draw(dead_key, (idle >= self.reseed_after).astype(latent.dtype), at_most)
        distance = jnp.square(latent - model.codebook[code]).sum(axis=1)
        # A second code beside one that is near enough would split what looks the same by rounding errors.
        near = _NEAR**2 * _variance(latent, mask)
        chosen, is_apart = _draw(sample_key, jnp.where(mask & (distance > near), distance, 0.0), at_most)
        moved = is_dead & is_apart & ~_near_earlier(latent[chosen], near)
        place = jnp.where(moved, dead, self.codes)
        codebook = model.codebook.at[place].set(latent[chosen], mode="drop")
        return Quantised(model.coder, codebook), idle.at[place].set(0, mode="drop"), moved.sum()


def _variance(latent: Float[Array, "n d"], mask: Bool[Array, "n"]) -> Float[Array, ""]:
    """Mean squared distance from the mean, of the rows where `mask` is True."""
    rows, count = mask[:, None], jnp.maximum(mask.sum(), 1)
    mean = jnp.where(rows, latent, 0).sum(axis=0, keepdims=True) / count
    return jnp.where(rows, jnp.square(latent - mean), 0).sum() / count


def _serving(state: VQState) -> Quantised:
    """The model that describes solutions."""
    return state.model if state.average is None else state.average


def _draw(key: Key[Array, ""], odds: Float[Array, "n"], count: int) -> tuple[Int[Array, "m"], Bool[Array, "m"]]:
    """Random indices without repetition, and whether each has any odds; those that have come first."""
    _, index = jax.lax.top_k(jnp.log(odds) + jax.random.gumbel(key, odds.shape), count)
    return index, odds[index] > 0


def _near_earlier(points: Float[Array, "n d"], near: Float[Array, ""]) -> Bool[Array, "n"]:
    """Whether a point is within a squared distance `near` of one before it."""
    gaps = jnp.square(points[:, None] - points[None, :]).sum(axis=2)
    return ((gaps <= near) & jnp.tri(points.shape[0], k=-1, dtype=bool)).any(axis=1)


def _clustered(
    key: Key[Array, ""], latent: Float[Array, "n d"], mask: Bool[Array, "n"], codes: int, iterations: Int[Array, ""]
) -> Float[Array, "{codes} d"]:
    """K-means of the latents where `mask` is True, repeated with a little noise if there are fewer than codes."""
    noise_key, cluster_key = jax.random.split(key)
    size = max(codes, latent.shape[0])
    rows = jnp.argsort(~mask)[jnp.arange(size) % jnp.maximum(mask.sum(), 1)]
    spread = jnp.where(mask[:, None], latent, jnp.nan)
    noise = 0.05 * jnp.nan_to_num(jnp.nanstd(spread)) * jax.random.normal(noise_key, (size, latent.shape[1]))
    return kmeans(cluster_key, latent[rows] + noise, codes, iterations)
