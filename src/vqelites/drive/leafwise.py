"""Methods of the loop as compiled functions of leaves, and how their results are waited for.

Taking apart and putting together the tree of a state would cost as much as an insert.
"""

import functools
import time
from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
from jaxtyping import Array

from vqelites.drive.compiling import OPTIONS
from vqelites.loop import State

Tree = TypeVar("Tree")
Waiting = Callable[[float], None]  # told, again and again, for how many seconds something is waited for


def nothing_said(seconds: float) -> None:
    """Wait in silence."""


def awaited(tree: Tree, waiting: Waiting = nothing_said) -> Tree:
    """The same, computed. Ctrl-C ends the waiting at once, which JAX's own does not hear until all is done."""
    began = time.monotonic()
    for leaf in jax.tree.leaves(tree):
        while not leaf.is_ready():
            seconds = time.monotonic() - began
            waiting(seconds)
            time.sleep(min(0.1, 1e-4 + 0.02 * seconds))
    return jax.block_until_ready(tree)


def changed(before: State, after: State) -> dict[int, Array]:
    """The leaves that a program changes, by their place; returning the others would copy them."""
    pairs = zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
    return {place: new for place, (old, new) in enumerate(pairs) if new is not old}


@functools.lru_cache(maxsize=256)
def program(
    method: Callable[..., Any], algorithm: tuple[Any, ...], structure: Any, static: tuple[Any, ...], in_place: bool
) -> Callable[..., Any]:
    """A method of the loop as a function of leaves."""
    variable, fixed_leaves, fixed = algorithm

    def call(numbers: tuple[Array, ...], leaves: tuple[Array, ...], *arguments: Any) -> Any:
        qd = eqx.combine(jax.tree.unflatten(variable, numbers), jax.tree.unflatten(fixed, fixed_leaves))
        return method(qd, jax.tree.unflatten(structure, leaves), *arguments, *static)

    return _in_place(call, structure) if in_place else jax.jit(call, **OPTIONS)


def _in_place(call: Callable[..., Any], structure: Any) -> Callable[..., Any]:
    """The same, but what becomes of the archive is written over it; what stays as it is of it comes back as well."""
    count = structure.num_leaves
    archive = set(jax.tree.leaves(jax.tree.unflatten(structure, range(count)).archive))

    def over(numbers: tuple[Array, ...], given: dict[int, Array], others: dict[int, Array], *arguments: Any) -> Any:
        leaves = given | others
        changed, *rest = call(numbers, tuple(leaves[place] for place in range(count)), *arguments)
        return given | changed, *rest

    compiled = jax.jit(over, donate_argnums=1, **OPTIONS)

    def apply(numbers: tuple[Array, ...], leaves: tuple[Array, ...], *arguments: Any) -> Any:
        given = {place: leaves[place] for place in archive}
        others = {place: leaf for place, leaf in enumerate(leaves) if place not in archive}
        return compiled(numbers, given, others, *arguments)

    return apply
