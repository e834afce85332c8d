"""How well a map tells stored behaviors apart, and whether it has collapsed."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vqelites.descriptors.base import MapInfo
from vqelites.tessellation import usage

_LIMIT = 0.99  # a bounded descriptor beyond it is saturated: there tanh has a slope of 0.02
_FEW = 0.05  # a map that uses fewer codes than this share of those it could use has collapsed


def collapsed(behaviors: Int[Array, ""], code: Int[Array, "n"], codes: int) -> Bool[Array, ""]:
    """Whether distinct behaviors share only a few codes; the value `codes` stands for no code."""
    return usage(_counts(code, codes))[0] < _FEW * jnp.minimum(behaviors, codes)


def judge(
    behaviors: Int[Array, ""],
    latent: Float[Array, "n d"],
    mask: Bool[Array, "n"],
    code: Int[Array, "n"] | None,
    codes: int,
    bounded: bool,
) -> MapInfo:
    """How well a map tells the stored behaviors apart.

    `behaviors` is how many of them are distinct; `latent` counts where `mask` is True; `code` is the code of each, or
    None for a map without a codebook.
    """
    count = jnp.maximum(mask.sum(), 1)
    unknown = MapInfo.unknown()
    saturated = jnp.where(mask, (jnp.abs(latent) > _LIMIT).any(axis=1), False).sum() / count
    used, perplexity = unknown.codes_used, unknown.perplexity
    if code is not None:
        used, perplexity = usage(_counts(code, codes))
    return MapInfo(
        behaviors,
        used.astype(jnp.float32),
        perplexity,
        saturated if bounded else unknown.saturated,
        unknown.moved,
        unknown.restarted,
    )


def _counts(code: Int[Array, "n"], codes: int) -> Int[Array, "{codes}"]:
    return jnp.zeros(codes, jnp.int32).at[code].add(1, mode="drop")
