"""Named random streams: a key depends on what it is for, never on the order of calls.

Compiled, ask/tell, asynchronous and resumed runs therefore draw the same numbers.
"""

import enum

import jax
from jaxtyping import Array, Int, Key


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
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), int(stream)), index)


def stream_keys(seed: int | Int[Array, ""], stream: Stream, indices: Int[Array, "n"]) -> Key[Array, "n"]:
    """One key per index, each the same as `stream_key` gives alone."""
    return jax.vmap(lambda index: stream_key(seed, stream, index))(indices)
