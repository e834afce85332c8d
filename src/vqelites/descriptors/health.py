"""How well a map tells stored behaviors apart, and whether it has collapsed."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from vqelites.descriptors.base import MapInfo
from vqelites.tessellation import distinct, usage

_LIMIT = 0.99  # a bounded descriptor beyond it is saturated: there tanh has a slope of 0.02
_FEW = 0.05  # a map that uses fewer codes than this share of those it could use has collapsed


def judge(
    views: Float[Array, "n p"],
    latent: Float[Array, "n d"],
    mask: Bool[Array, "n"],
    code: Int[Array, "n"] | None,
    codes: int,
    bounded: bool,
) -> MapInfo:
    """The state of a map, from the stored behaviors where `mask` is True and, if there are any, their codes."""
    count = jnp.maximum(mask.sum(), 1)
    unknown = MapInfo.unknown()
    saturated = jnp.where(mask, (jnp.abs(latent) > _LIMIT).any(axis=1), False).sum() / count
    used, perplexity = unknown.codes_used, unknown.perplexity
    if code is not None:
        used, perplexity = usage(jnp.zeros(codes, jnp.int32).at[code].add(1, mode="drop"))
    return MapInfo(
        distinct(views, mask).sum(),
        used.astype(jnp.float32),
        perplexity,
        saturated if bounded else unknown.saturated,
        unknown.moved,
        unknown.restarted,
    )


def collapsed(info: MapInfo, codes: int) -> Bool[Array, ""]:
    """Whether distinct behaviors share few codes."""
    return info.codes_used < _FEW * jnp.minimum(info.behaviors, codes)
