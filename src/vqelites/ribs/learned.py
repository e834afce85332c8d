"""The learned map behind an archive: VQ-Elites' VQ-VAE with its state, NumPy in and NumPy out."""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from vqelites.dataset import Dataset
from vqelites.descriptors import VQVAE, LearnInfo
from vqelites.descriptors.base import MapInfo, Observed
from vqelites.descriptors.vqvae import VQState
from vqelites.drive.compiling import OPTIONS
from vqelites.experiments.build import Networks, vqvae
from vqelites.experiments.config import VQElitesSettings
from vqelites.keys import Stream, stream_key

_SMALLEST = 64  # rows that are compiled for


@dataclass(frozen=True)
class Trained:
    """What one training did to the map, and to the elites that live on it."""

    loss: float  # mean over the last epoch
    unexplained: float  # share of the variance of the first behaviors, by the first training; NaN for later ones
    behaviors: int  # stored ones that differ
    codes_used: int  # codes with at least one of them
    perplexity: float  # how many codes are in use, each counted by how much it is used
    saturated: float  # share of descriptors at the limits of the learned space; NaN if it has none
    moved: int  # codes moved to where cells were too large
    restarted: bool  # the map had collapsed and was begun anew
    rolled_back: bool  # the training was undone because a number was no longer finite
    lost: int = 0  # elites that lost their cell to a fitter one


class LearnedMap:
    """Where behaviors belong, and the codes that are the cells there."""

    def __init__(self, shape: tuple[int, ...], settings: VQElitesSettings, seed: int, own: Networks | None = None):
        self.shape, self.settings = shape, settings
        self._seed, self._own, self._calls = seed, own, 0
        self._model = vqvae(shape, settings, own)
        self._thinning = Dataset(distinct=settings.data.distinct, overlap=settings.data.overlap)
        self._state: VQState = eqx.filter_jit(self._model.init)(stream_key(seed, Stream.MODEL))

    def __getstate__(self) -> dict[str, Any]:
        """What makes it anew, and its numbers: functions inside of models cannot be pickled."""
        numbers = [np.asarray(leaf) for leaf in jax.tree.leaves(self._state)]
        made = {"shape": self.shape, "settings": self.settings, "seed": self._seed, "own": self._own}
        return {"made": made, "calls": self._calls, "numbers": numbers}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        LearnedMap.__init__(self, **saved["made"])
        self._calls = saved["calls"]
        self._state = jax.tree.unflatten(jax.tree.structure(self._state), map(jnp.asarray, saved["numbers"]))

    @property
    def trained(self) -> bool:
        """Whether it has learned anything yet."""
        return int(self._state.trainings) > 0

    @property
    def codebook(self) -> np.ndarray:
        """The codes, (k, d)."""
        return np.asarray(self._model.cells(self._state))

    @property
    def bounded(self) -> bool:
        """Whether all descriptors lie in [-1, 1]."""
        return self._model.coding.bounded

    def encode(self, behavior: np.ndarray) -> np.ndarray:
        """Descriptors (n, d) of behaviors (n, *shape)."""
        rows, _ = _padded(behavior, _power_of_two(len(behavior)))
        return np.asarray(_encoded(self._model, self._state, rows))[: len(behavior)]

    def learn(self, recent: np.ndarray, stored: np.ndarray, fitness: np.ndarray, progress: float) -> Trained:
        """Learn from the behaviors since the last training and those of kept solutions, both (n, *shape).

        As in VQ-Elites the first training, longer than later ones, takes the recent behaviors, which are all; a later
        one adds as many of the kept ones. Codes are then fitted to all of them, finer where the kept ones have more
        `fitness`. `progress` is the share of the search that is over, with which the learning rate falls.
        """
        samples, epochs = self._samples(recent, stored)
        most = max(2 * self.settings.cells, len(stored))
        key = stream_key(self._seed, Stream.LEARNING, self._calls)
        state, learned, found = _learned(
            self._model,
            self._state,
            self._thinning,
            key,
            _padded(samples, _power_of_two(len(samples))),
            Observed(*_padded(stored, most), _padded(fitness, most)[0]),
            jnp.asarray(progress, jnp.float32),
            jnp.asarray(epochs, jnp.int32),
        )
        self._state, self._calls = state, self._calls + 1
        return Trained(
            loss=float(learned.loss),
            unexplained=float(learned.unexplained),
            behaviors=int(found.behaviors),
            codes_used=int(found.codes_used),
            perplexity=float(found.perplexity),
            saturated=float(found.saturated),
            moved=int(found.moved),
            restarted=bool(found.restarted),
            rolled_back=bool(learned.rolled_back),
        )

    def _samples(self, recent: np.ndarray, stored: np.ndarray) -> tuple[np.ndarray, int]:
        """What to train on, and for how many epochs: later an epoch passes over as many samples as are recent."""
        if not self.trained:
            return recent, self.settings.model.bootstrap_epochs
        epochs = self.settings.epochs
        if not len(recent):
            return stored, epochs
        some = min(len(recent), len(stored))
        rows = np.random.default_rng((self._seed, self._calls)).permutation(len(stored))[:some]
        return np.concatenate([recent, stored[rows]]), max(round(epochs * len(recent) / (len(recent) + some)), 1)


def _power_of_two(count: int) -> int:
    """As many or a few more: few sizes are compiled for."""
    return max(_SMALLEST, 1 << (count - 1).bit_length())


def _padded(rows: np.ndarray, size: int) -> tuple[Float[Array, "{size} *shape"], Bool[Array, "{size}"]]:
    """Rows with others of zeros after them, and which are the true ones."""
    whole = np.zeros((size, *rows.shape[1:]), np.float32)
    whole[: len(rows)] = rows
    return jnp.asarray(whole), jnp.asarray(np.arange(size) < len(rows))


@eqx.filter_jit
def _encoded(model: VQVAE, state: VQState, behavior: Float[Array, "n *shape"]) -> Float[Array, "n d"]:
    return model.describe(state, behavior, jnp.zeros((behavior.shape[0], 0)))


@eqx.filter_jit(**OPTIONS)
def _learned(
    model: VQVAE,
    state: VQState,
    thinning: Dataset,
    key: Key[Array, ""],
    samples: tuple[Float[Array, "n *shape"], Bool[Array, "n"]],
    stored: Observed,
    progress: Float[Array, ""],
    epochs: Int[Array, ""],
) -> tuple[VQState, LearnInfo, MapInfo]:
    """Train further, then fit the codes to all behaviors at hand."""
    learn_key, settle_key = jax.random.split(key)
    rows, mask = samples
    mask = thinning.thinned(rows, mask)
    rows = jnp.where(mask.reshape(-1, *[1] * (rows.ndim - 1)), rows, 0)
    state, learned = model.learn(state, learn_key, rows, mask, progress, epochs)
    state, _, found = model.settle(state, settle_key, [stored, Observed(rows, mask, jnp.full(mask.shape, jnp.nan))])
    return state, learned, found
