"""Is cell assignment exact on this device, and a descriptor independent of its batch? Run it on every new kind."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vqelites.descriptors import VQVAE
from vqelites.tessellation import nearest

POINTS = 10_000


def wrong_cells(k: int, d: int) -> tuple[int, int]:
    """Of the points, how many `nearest` puts into a wrong cell, and how many a default-precision matmul would."""
    x = np.asarray(jax.random.uniform(jax.random.key(0), (POINTS, d), minval=-1, maxval=1))
    cells = np.asarray(jax.random.uniform(jax.random.key(1), (k, d), minval=-1, maxval=1))
    expanded = jnp.square(cells).sum(axis=1)[None] - 2 * jnp.matmul(x, cells.T)
    candidates = (np.asarray(jax.jit(nearest)(x, cells)), np.asarray(jnp.argmin(expanded, axis=1)))
    wrong = [0, 0]
    for i in range(0, POINTS, 500):
        block = x[i : i + 500].astype(np.float64)
        distance = np.square(block[:, None] - cells[None].astype(np.float64)).sum(axis=2)
        for j, cell in enumerate(candidates):
            chosen = distance[np.arange(500), cell[i : i + 500]]
            wrong[j] += int((chosen > distance.min(axis=1) * (1 + 1e-6) + 1e-12).sum())
    return wrong[0], wrong[1]


def batch_dependence(shape: tuple[int, ...], networks: str) -> float:
    """The largest difference between descriptors computed alone and in a batch."""
    model = VQVAE(shape, 2, 64, networks=networks, codebook="random")
    state = model.init(jax.random.key(0))
    behavior, truth = jax.random.uniform(jax.random.key(2), (300, *shape)), jnp.zeros((300, 0))
    describe = eqx.filter_jit(model.describe)
    together = describe(state, behavior, truth)
    alone = jnp.concatenate([describe(state, behavior[i : i + 1], truth[:1]) for i in (0, 7, 299)])
    return float(jnp.abs(alone - together[jnp.array([0, 7, 299])]).max())


if __name__ == "__main__":
    print(f"device: {jax.devices()[0]}")
    for k, d in ((2000, 2), (1500, 5), (400, 5), (15_000, 10)):
        ours, matmul = wrong_cells(k, d)
        print(f"{k} cells, d={d}: {ours} of {POINTS} points in a wrong cell (default-precision matmul: {matmul})")
    for shape, networks in (((64, 64, 1), "mobile"), ((6,), "arm"), ((18, 18, 3), "minigrid")):
        print(f"{networks}: descriptor alone and in a batch differ by at most {batch_dependence(shape, networks):.1e}")
