"""Equal cells: codes move from where behaviors are told apart more than needed to where they are told apart least."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vqelites.tessellation import nearest

_FACTOR = 2.0  # how many times its cost a move must gain
_ROUNDING = 1e-10  # a squared distance smaller than this share of the squared views themselves is rounding
_TIE = 1e-5  # squared distances that differ by a smaller share are equal
_MANY = 0.25  # share of the codes that may move at once while there are fewer behaviors than codes
_ROUNDS = 4  # of moves in that case


class EqualCells(eqx.Module):
    """Moves at most a share of the codes: an optimal quantiser is equally coarse in every cell.

    A code gains from a split the largest squared distance of one of its samples' views to their mean; removing it
    costs the squared distance of that mean to the mean of the code that would take its samples over, or nothing if it
    has none. The cheapest codes move onto the farthest samples where the gain is more than twice the cost. While there
    are fewer distinct behaviors than codes, each could have one of its own: then a quarter of the codes may move if
    they have no samples, four times over.
    """

    share: float = eqx.field(static=True, default=0.025)

    def __call__(
        self,
        codebook: Float[Array, "k d"],
        latent: Float[Array, "n d"],
        views: Float[Array, "n p"],
        code: Int[Array, "n"],
        behaviors: Int[Array, ""],
    ) -> tuple[Float[Array, "k d"], Int[Array, "n"], Int[Array, ""]]:
        """The new codebook, the new code of each sample, and how many codes moved.

        `code` is each sample's code, k for those that do not count; `behaviors` is how many distinct ones do.
        """
        k = codebook.shape[0]
        plenty, there = behaviors < k, code < k

        def again(
            _: Int[Array, ""], before: tuple[Float[Array, "k d"], Int[Array, "n"], Int[Array, ""]]
        ) -> tuple[Float[Array, "k d"], Int[Array, "n"], Int[Array, ""]]:
            codebook, code, moved = before
            place, where = self._moves(codebook, views, code, plenty)
            codebook = codebook.at[place].set(latent[where], mode="drop")
            return codebook, jnp.where(there, nearest(latent, codebook), k), moved + (place < k).sum()

        start = codebook, code, jnp.array(0, jnp.int32)
        return jax.lax.fori_loop(0, jnp.where(plenty, _ROUNDS, 1), again, start)

    def _moves(
        self, codebook: Float[Array, "k d"], views: Float[Array, "n p"], code: Int[Array, "n"], plenty: Bool[Array, ""]
    ) -> tuple[Int[Array, "m"], Int[Array, "m"]]:
        """Which codes move, k for those that stay after all, and onto which samples."""
        k = codebook.shape[0]
        means, counts = _means(code, views, k)
        used = counts > 0
        gain, farthest = _farthest(code, views, means)
        cost = _costs(codebook, means, used)
        cheap, movers = jax.lax.top_k(-cost, math.ceil(_MANY * k))
        high, split = jax.lax.top_k(gain, math.ceil(_MANY * k))
        allowed = (jnp.arange(len(movers)) < math.ceil(self.share * k)) | (plenty & ~used[movers])
        moved = allowed & (high > 0) & (high > -_FACTOR * cheap)
        return jnp.where(moved, movers, k), farthest[split]


def _means(code: Int[Array, "n"], views: Float[Array, "n p"], k: int) -> tuple[Float[Array, "k p"], Int[Array, "k"]]:
    """The mean view of each code's samples, 0 without any, and their number; code k is nobody's."""
    counts = jnp.zeros(k, jnp.int32).at[code].add(1, mode="drop")
    sums = jnp.zeros((k, views.shape[1])).at[code].add(views, mode="drop")
    return sums / jnp.maximum(counts, 1)[:, None], counts


def _farthest(
    code: Int[Array, "n"], views: Float[Array, "n p"], means: Float[Array, "k p"]
) -> tuple[Float[Array, "k"], Int[Array, "k"]]:
    """The squared distance of each code's farthest sample from the mean, and which sample that is (the first one)."""
    (n, _), k = views.shape, means.shape[0]
    apart = jnp.square(views - means.at[code].get(mode="clip")).sum(axis=1)
    # The mean of equal views differs from them by rounding, for which no second code is needed.
    apart = jnp.where(apart > _ROUNDING * jnp.square(views).sum(axis=1), apart, 0)
    gain = jnp.zeros(k).at[code].max(apart, mode="drop")
    # Of two samples both are equally far from their mean: rounding, which differs between machines, does not decide.
    leads = jnp.where(apart >= (1 - _TIE) * gain.at[code].get(mode="clip"), code, k)
    return gain, jnp.full(k, n - 1, jnp.int32).at[leads].min(jnp.arange(n, dtype=jnp.int32), mode="drop")


def _costs(
    codebook: Float[Array, "k d"],
    means: Float[Array, "k p"],
    used: Bool[Array, "k"],
) -> Float[Array, "k"]:
    """What it costs to remove each code; of two that would take over each other's samples only one may go."""
    index = jnp.arange(codebook.shape[0], dtype=jnp.int32)
    heir = nearest(codebook, jnp.where(used[:, None], codebook, jnp.inf), other_than=index)
    cost = jnp.where(used, jnp.square(means - means[heir]).sum(axis=1), 0)
    alone = used.sum() < 2  # then nobody would take over its samples
    stays = used & (alone | ((heir[heir] == index) & (heir > index)))
    return jnp.where(stays, jnp.inf, cost)
