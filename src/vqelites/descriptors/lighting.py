"""Brightness that all pixels of an image share, and its removal."""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

_PIXELS = 256  # of an image are enough to know its brightness
_LIT = 0.1  # of the brightest pixel: darker ones say little
_PICTURES = 256  # are enough to know whether the light changes
_OTHER = 0.5  # share of how much a typical pixel varies that may be left without the light
_LEFT = 0.25  # share of the variance that must be left; with less, brightness is what there is to see
_STILL = 1e-4  # a pixel that varies by less than this share of itself is still


class Lighting(eqx.Module):
    """The light under which images of one scene are taken, known from the first ones.

    A lamp that flickers, or the exposure of a camera, changes all pixels by one factor. That is little beside an object
    that moves, but a blur leaves it as large as it is, and the object is then small beside it.
    """

    usual: Float[Array, "*frames p"]  # median of each of the pixels that are compared
    pixels: Int[Array, "p"]  # where they are in a flat image
    changes: Bool[Array, ""]

    def brightness(self, images: Float[Array, "n *frames h w c"]) -> Float[Array, "n *frames"]:
        """The factor of each image: that of its median pixel, which few objects hide."""
        return jnp.median(self.relative(images), axis=-1)

    def relative(self, images: Float[Array, "n *frames h w c"]) -> Float[Array, "n *frames p"]:
        """The compared pixels, as shares of what they usually are."""
        return _flat(images)[..., self.pixels] / jnp.where(self.usual > 0, self.usual, 1)[None]

    def removed(self, images: Float[Array, "n *frames h w c"]) -> Float[Array, "n *frames h w c"]:
        """Images under the same light; exactly as they are if it does not change."""
        factor = self.brightness(images)
        return images / jnp.where(self.changes & (factor > 0), factor, 1)[..., None, None, None]


def still_light(shape: tuple[int, ...]) -> Lighting:
    """Images (or what has no pixels at all) of this shape stay as they are."""
    return Lighting(jnp.zeros((*shape[:-3], _PIXELS)), jnp.zeros(_PIXELS, jnp.int32), jnp.array(False))


def lighting(images: Float[Array, "n *frames h w c"], mask: Bool[Array, "n"]) -> Lighting:
    """The light of images where `mask` is True.

    It changes if a typical pixel varies mostly by a factor that all share, unless hardly anything else varies.
    """
    some = jnp.argsort(~mask, stable=True)[:_PICTURES]
    few, counts = images[some], mask[some]
    mean = _flat(_masked(few, counts, 0)).reshape(-1, math.prod(few.shape[-3:])).mean(axis=0)
    lit = mean > _LIT * jnp.abs(mean).max()
    pixels = jnp.argsort(~lit, stable=True)[jnp.arange(_PIXELS) * lit.sum() // _PIXELS]
    usual = jnp.nanmedian(_masked(_flat(few)[..., pixels], counts, jnp.nan), axis=0)
    found = Lighting(jnp.nan_to_num(usual), pixels, jnp.array(True))
    relative, factor = found.relative(few), found.brightness(few)[..., None]
    factor = jnp.where(factor > 0, factor, 1)
    before, after = (_typical(ratio, counts) for ratio in (relative, relative / factor))
    total, left = (_variance(these, counts) for these in (few, found.removed(few)))
    shared = (before > _STILL) & (after < _OTHER * before)
    return eqx.tree_at(lambda light: light.changes, found, lit.any() & shared & (left >= _LEFT * total))


def _flat(images: Float[Array, "n *frames h w c"]) -> Float[Array, "n *frames p"]:
    return images.reshape(*images.shape[:-3], math.prod(images.shape[-3:]))


def _masked(rows: Float[Array, "n *s"], mask: Bool[Array, "n"], other: float) -> Float[Array, "n *s"]:
    """The rows where `mask` is True, else the other number."""
    return jnp.where(mask.reshape(-1, *[1] * (rows.ndim - 1)), rows, other)


def _typical(ratio: Float[Array, "n *frames p"], mask: Bool[Array, "n"]) -> Float[Array, ""]:
    """How much the median pixel varies where `mask` is True: by medians, since objects pass in few images."""
    rows = _masked(ratio, mask, jnp.nan)
    return jnp.median(jnp.nanmedian(jnp.abs(rows - jnp.nanmedian(rows, axis=0)[None]), axis=0))


def _variance(rows: Float[Array, "n *s"], mask: Bool[Array, "n"]) -> Float[Array, ""]:
    """Of all elements together, where `mask` is True."""
    count = jnp.maximum(mask.sum(), 1)
    mean = _masked(rows, mask, 0).sum(axis=0) / count
    return _masked(jnp.square(rows - mean[None]), mask, 0).sum() / count
