"""Named random streams: a key depends on what it is for, never on the order of calls.

Compiled, ask/tell, asynchronous and resumed runs therefore draw the same numbers.
"""

import enum
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import define_prng_impl
from jaxtyping import Array, Int, Key, UInt32


class Stream(enum.IntEnum):
    """What randomness is used for. Values are part of reproducibility: append, never renumber."""

    MODEL = 0
    CELLS = 1
    VARIATION = 2
    EVALUATION = 3
    LEARNING = 4
    BOOTSTRAP = 5
    DATASET = 6


def stream_key(seed: int | Int[Array, ""], stream: Stream, index: int | Int[Array, ""] = 0) -> Key[Array, ""]:
    """The key of one purpose at one moment: an iteration, or the id of a solution."""
    return jax.random.fold_in(jax.random.fold_in(plain_key(seed), int(stream)), index)


def stream_keys(seed: int | Int[Array, ""], stream: Stream, indices: Int[Array, "n"]) -> Key[Array, "n"]:
    """One key per index, each the same as `stream_key` gives alone."""
    return jax.vmap(lambda index: stream_key(seed, stream, index))(indices)


def evaluation_keys(seed: int | Int[Array, ""], ids: Int[Array, "n"]) -> Key[Array, "n"]:
    """The key of each solution's evaluation, of JAX's own kind: some of its distributions take no other."""
    return jax.random.wrap_key_data(jax.random.key_data(stream_keys(seed, Stream.EVALUATION, ids)), impl="threefry2x32")


def plain_key(seed: int | Int[Array, ""]) -> Key[Array, ""]:
    """A key that draws the same numbers as `jax.random.key(seed)`, and compiles faster on CPUs.

    There JAX makes a loop of nine kernels of every draw, split and fold, which was a third of all kernels of a run.
    """
    return jax.random.key(seed, impl=_UNROLLED)


_ROTATIONS = (13, 15, 26, 6), (17, 29, 16, 24)


@jax.jit
def _threefry(key: UInt32[Array, "2"], high: UInt32[Array, "*n"], low: UInt32[Array, "*n"]) -> UInt32[Array, "2 *n"]:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011), written out.

    Without the barrier XLA would repeat all of it in every kernel that uses one of the numbers.
    """
    keys = key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)
    a, b = high + keys[0], low + keys[1]
    for i in range(5):
        for rotation in _ROTATIONS[i % 2]:
            a = a + b
            b = a ^ ((b << np.uint32(rotation)) | (b >> np.uint32(32 - rotation)))
        a, b = a + keys[(i + 1) % 3], b + keys[(i + 2) % 3] + np.uint32(i + 1)
    return jax.lax.optimization_barrier(jnp.stack([a, b]))


def _places(key: UInt32[Array, "2"], shape: tuple[int, ...]) -> UInt32[Array, "2 *n"]:
    """Two random numbers for every element of a shape, which depend on its place alone."""
    place = jax.lax.iota(jnp.uint32, math.prod(shape))
    return _threefry(key, jnp.zeros_like(place), place).reshape(2, *shape)


def _seed(seed: Int[Array, ""]) -> UInt32[Array, "2"]:
    high = seed >> 32 if seed.dtype.itemsize == 8 else jnp.zeros_like(seed)
    return jnp.stack([high, seed]).astype(jnp.uint32)


def _bits(key: UInt32[Array, "2"], width: int, shape: tuple[int, ...]) -> Array:
    high, low = _places(key, shape)
    if width == 64:
        return (high.astype(jnp.uint64) << 32) | low
    return (high ^ low).astype(f"uint{width}")


_UNROLLED = define_prng_impl(
    key_shape=(2,),
    seed=_seed,
    split=lambda key, shape: jnp.moveaxis(_places(key, shape), 0, -1),
    random_bits=_bits,
    fold_in=lambda key, data: _threefry(key, *_seed(jnp.asarray(data))),
    name="unrolled_threefry",
    tag="uth",
)
