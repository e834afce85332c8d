"""Brightness that all pixels of an image share, and its removal."""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

_PIXELS = 256  # of an image are enough to know its brightness
_PICTURES = 64  # are enough to know the light
_OTHER = 0.5  # share of how much a typical pixel varies that may be left without the light
_LEFT = 0.75  # share of the variance that must be left; with less, brightness is what there is to see
_STILL = 1e-3  # a pixel that varies by less than this share of what the image varies by is still


class Lighting(eqx.Module):
    """The light under which images of one scene are taken, known from the first ones.

    A lamp that flickers, or the exposure of a camera, changes all pixels of an image at once. That is little beside an
    object that moves, but a blur leaves it as large as it is, and the object is then small beside it.
    """

    usual: Float[Array, "*frames p"]  # the median of every pixel, flat
    swing: Float[Array, "*frames p"]  # how far it usually is from that; 0 if the light does not change
    pixels: Int[Array, "m"]  # those that are compared

    @property
    def changes(self) -> Bool[Array, ""]:
        """Whether there is anything to remove."""
        return (self.swing > 0).any()

    def brightness(self, images: Float[Array, "n *frames h w c"]) -> Float[Array, "n *frames"]:
        """How bright each image is, in units of each pixel's usual deviation: the median over pixels."""
        usual, swing = (known[..., self.pixels][None] for known in (self.usual, self.swing))
        return jnp.median((_flat(images)[..., self.pixels] - usual) / jnp.where(swing > 0, swing, 1), axis=-1)

    def removed(self, images: Float[Array, "n *frames h w c"]) -> Float[Array, "n *frames h w c"]:
        """Images under the same light; exactly as they are if it does not change."""
        light = self.brightness(images)[..., None] * self.swing[None]
        return jnp.where(self.changes, images - light.reshape(images.shape), images)


def still_light(shape: tuple[int, ...]) -> Lighting:
    """Images of this shape stay as they are; other behaviors have no light."""
    flat = (*shape[:-3], math.prod(shape[-3:]) if len(shape) > 2 else 0)
    return Lighting(jnp.zeros(flat), jnp.zeros(flat), jnp.zeros(_PIXELS, jnp.int32))


def lighting(images: Float[Array, "n *frames h w c"], mask: Bool[Array, "n"]) -> Lighting:
    """The light of images where `mask` is True.

    It is said to change if a typical pixel varies mostly together with all others, and removing that leaves most of the
    variance.
    """
    some = jnp.argsort(~mask, stable=True)[:_PICTURES]
    few, counts = images[some], mask[some]
    rows = _masked(_flat(few), counts, jnp.nan)
    usual = jnp.nan_to_num(jnp.nanmedian(rows, axis=0))
    swing = jnp.nan_to_num(jnp.nanmedian(jnp.abs(rows - usual[None]), axis=0))
    total = _variance(few, counts)
    moves = swing.reshape(-1, swing.shape[-1]).min(axis=0) > _STILL * jnp.sqrt(total / swing.size)
    pixels = jnp.argsort(~moves, stable=True)[jnp.arange(_PIXELS) * moves.sum() // _PIXELS]
    found = Lighting(usual, swing, pixels)
    even = found.removed(few)
    rest = jnp.nanmedian(jnp.abs(_masked(_flat(even), counts, jnp.nan) - usual[None]), axis=0)
    other = (rest / jnp.where(swing > 0, swing, 1))[..., pixels]
    changes = (2 * moves.sum() > moves.size) & (jnp.median(other) < _OTHER) & (_variance(even, counts) >= _LEFT * total)
    return eqx.tree_at(lambda light: light.swing, found, jnp.where(changes, swing, 0))


def _flat(images: Float[Array, "n *frames h w c"]) -> Float[Array, "n *frames p"]:
    return images.reshape(*images.shape[:-3], math.prod(images.shape[-3:]))


def _masked(rows: Float[Array, "n *s"], mask: Bool[Array, "n"], other: float) -> Float[Array, "n *s"]:
    """The rows where `mask` is True, else the other number."""
    return jnp.where(mask.reshape(-1, *[1] * (rows.ndim - 1)), rows, other)


def _variance(rows: Float[Array, "n *s"], mask: Bool[Array, "n"]) -> Float[Array, ""]:
    """Of all elements together, where `mask` is True."""
    count = jnp.maximum(mask.sum(), 1)
    mean = _masked(rows, mask, 0).sum(axis=0) / count
    return _masked(jnp.square(rows - mean[None]), mask, 0).sum() / count
