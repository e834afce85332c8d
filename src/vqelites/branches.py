"""What is computed only if it is wanted."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

Tree = TypeVar("Tree")


def only_if(condition: Bool[Array, ""], change: Callable[..., Tree], tree: Tree, *inputs: Any) -> Tree:
    """`change(tree, *inputs)` if the condition holds, else the tree.

    A loop of one round or none: unlike a branch it costs nothing where no run of a batch takes it. The barrier keeps
    XLA from computing ahead of the loop what does not depend on the tree.
    """

    def body(_: Int[Array, ""], tree: Tree) -> Tree:
        return change(*jax.lax.optimization_barrier((tree, *inputs)))

    return jax.lax.fori_loop(0, condition.astype(jnp.int32), body, tree)


def select(condition: Bool[Array, ""], yes: Tree, no: Tree) -> Tree:
    """`yes` if the condition holds, else `no`: a branch is compiled as one copy instead of one kernel per array."""
    return jax.lax.cond(condition, lambda: yes, lambda: no)
