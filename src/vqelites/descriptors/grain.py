"""Pixel noise (grain) of images, and its removal."""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

_PICTURES = 64  # are enough to know the grain
_MEDIAN = 0.6745  # of a normal distribution's absolute values, in standard deviations
_FACTOR = 3.0  # in standard deviations of the noise: nearly all of it is smaller
_LEFT = 0.25  # share of the variance that must be left; with less, fine patterns are what there is to see


class Grain(eqx.Module):
    """Noise that every pixel has of its own, known from the first pictures.

    Once blurred, noise looks like a faint object elsewhere. In sharp images it can be recognised, since it is
    small. A difference d of a pixel from its mean loses the share (3 noise / d)^2 of itself, or all if it is smaller
    than 3 noise (the garrote of Breiman 1995).
    """

    mean: Float[Array, "*shape"]  # of every pixel
    noise: Float[Array, ""]  # its standard deviation, 0 without any

    @property
    def there(self) -> Bool[Array, ""]:
        """Whether there is any."""
        return self.noise > 0

    def removed(self, images: Float[Array, "n *shape"]) -> Float[Array, "n *shape"]:
        """Images without grain; exactly as they are if there is none."""
        apart, limit = images - self.mean[None], jnp.square(_FACTOR * self.noise)
        return jnp.where(self.there, images - apart * limit / jnp.maximum(jnp.square(apart), limit), images)


def no_grain(shape: tuple[int, ...]) -> Grain:
    """Images of this shape stay as they are."""
    return Grain(jnp.zeros(shape), jnp.zeros(()))


def grain(images: Float[Array, "n *frames h w c"], mask: Bool[Array, "n"]) -> Grain:
    """The grain of images where `mask` is True.

    Objects change little from pixel to pixel, and most pixels of two images show the same: noise is the median of the
    differences between two images, taken across each 2x2 pixels (Donoho and Johnstone 1994).
    """
    if min(images.shape[-3:-1]) < 2:
        return no_grain(images.shape[1:])
    there = mask.reshape(-1, *[1] * (images.ndim - 1))
    mean = jnp.where(there, images, 0).sum(axis=0) / jnp.maximum(mask.sum(), 1)
    some = jnp.argsort(~mask, stable=True)[:_PICTURES]
    few, there = images[some], there[some]
    apart = jnp.diff(jnp.diff(few[1:] - few[:-1], axis=-3), axis=-2)
    size = jnp.nanmedian(jnp.where(there[1:], jnp.abs(apart), jnp.nan)) if len(some) > 1 else jnp.nan
    noise = jnp.nan_to_num(size) / (_MEDIAN * math.sqrt(8))  # eight pixels are in each difference
    found = Grain(mean, noise)
    total, left = (jnp.where(there, jnp.square(images - mean[None]), 0).sum() for images in (few, found.removed(few)))
    return Grain(mean, jnp.where(left >= _LEFT * total, noise, 0))
