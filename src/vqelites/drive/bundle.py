"""Many small arrays as one: each one that leaves a compiled program costs a transfer of its own."""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


@functools.partial(jax.tree_util.register_dataclass, data_fields=("words",), meta_fields=("structure", "leaves"))
@dataclass(frozen=True)
class Bundle:
    """The arrays of a tree, bit for bit, as words of 32 bits. It may still be computed: `tree` waits for it."""

    words: Array | np.ndarray  # (w,)
    structure: Any
    leaves: tuple[tuple[tuple[int, ...], np.dtype], ...]  # shape and type of each

    @classmethod
    def of(cls, tree: Any) -> Self:
        """A tree of numbers of 32 bits or fewer."""
        leaves, structure = jax.tree.flatten(tree)
        arrays = [jnp.asarray(leaf) for leaf in leaves]
        words = jnp.concatenate([jnp.zeros(0, jnp.uint32), *map(_words, arrays)])
        return cls(words, structure, tuple((x.shape, np.dtype(x.dtype)) for x in arrays))

    def fetched(self) -> Self:
        """The same in the host's memory."""
        return type(self)(np.array(self.words), self.structure, self.leaves)

    def tree(self) -> Any:
        """The tree, in NumPy."""
        return self._unpacked(np.asarray(self.words))

    def traced(self) -> Any:
        """The tree, within a compiled program."""
        return self._unpacked(self.words)

    @classmethod
    def stacked(cls, several: Sequence["Bundle"]) -> Any:
        """The trees of several of one kind, with a leading axis."""
        return several[0]._unpacked(np.stack([np.asarray(one.words) for one in several]))

    def _unpacked(self, words: Array | np.ndarray) -> Any:
        found, start = [], 0
        for shape, dtype in self.leaves:
            stop = start + math.prod(shape)
            part = words[..., start:stop]
            whole = part.view(np.int32).astype(dtype) if dtype.itemsize < 4 else part.view(dtype)
            found.append(whole.reshape((*words.shape[:-1], *shape)))
            start = stop
        return jax.tree.unflatten(self.structure, found)


def _words(x: Array) -> Array:
    whole = x.astype(jnp.int32) if x.dtype.itemsize < 4 else x
    return jax.lax.bitcast_convert_type(whole, jnp.uint32).reshape(-1)
