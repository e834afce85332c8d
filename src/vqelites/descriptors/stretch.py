"""Equal stretch: a term of the loss that makes a map equally fine everywhere."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

_NEIGHBOURS = 5
_SAME = 1e-3  # views nearer than this share of the mean distance count as the same one
_TOUCHING = 1e-4  # added to latent distances, so that their logarithm is finite


def unequal_stretch(views: Float[Array, "b p"], latent: Float[Array, "b d"]) -> Float[Array, ""]:
    """Variance of the log ratio of latent distance to distance of views, over the nearest pairs of views.

    It is 0 for a map that stretches equally everywhere, and has no unit: multiplying views or latents changes nothing.
    Principal components and tanh squeeze what lies far from the first data; there a cell would hold more behaviors
    than elsewhere, of which only the fittest would be kept.
    """
    apart = jax.lax.stop_gradient(_distances(views))
    count = views.shape[0]
    apart = jnp.where(apart > _SAME * apart.sum() / max(count * (count - 1), 1), apart, jnp.inf)
    nearest, index = jax.lax.top_k(-apart, min(_NEIGHBOURS, count))
    pairs = jnp.isfinite(nearest)
    gaps = jnp.sqrt(jnp.square(latent[:, None] - latent[index]).sum(axis=2) + _TOUCHING**2)
    ratio = jnp.where(pairs, jnp.log(gaps) - jnp.log(jnp.where(pairs, -nearest, 1)), 0)
    total = jnp.maximum(pairs.sum(), 1)
    return jnp.where(pairs, jnp.square(ratio - ratio.sum() / total), 0).sum() / total


def _distances(rows: Float[Array, "b p"]) -> Float[Array, "b b"]:
    """Euclidean distances of all pairs, exactly 0 on the diagonal."""
    with jax.default_matmul_precision("float32"):
        product = rows @ rows.T
    norm = jnp.diagonal(product)
    squared = norm[:, None] + norm[None, :] - 2 * product
    return jnp.where(jnp.eye(rows.shape[0], dtype=bool), 0, jnp.sqrt(jnp.maximum(squared, 0)))
