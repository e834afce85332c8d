"""Saving and restoring the arrays of a state. Nothing that is loaded can execute."""

import contextlib
from pathlib import Path
from typing import Any

import jax
import numpy as np


def prepare() -> None:
    """Import what saving needs, which takes a while. Whether that is there is told when something is saved."""
    with contextlib.suppress(ImportError):
        import orbax.checkpoint  # noqa: F401


def save(folder: Path, tree: Any) -> None:
    """Write every array of the tree to a new folder; it appears whole or not at all."""
    import orbax.checkpoint as ocp

    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder.absolute(), _named(tree))


def restore(folder: Path, like: Any) -> Any:
    """A tree of the structure and shapes of `like`, with the saved values."""
    import orbax.checkpoint as ocp

    if not folder.is_dir():
        raise FileNotFoundError(f"There is no saved state in {folder}.")
    wanted = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), _named(like))
    with ocp.StandardCheckpointer() as checkpointer:
        found = {name: tuple(x.shape) for name, x in checkpointer.metadata(folder.absolute()).item_metadata.items()}
        _compare(folder, {name: x.shape for name, x in wanted.items()}, found)
        values = checkpointer.restore(folder.absolute(), wanted)
    leaves, structure = jax.tree.flatten_with_path(like)
    return jax.tree.unflatten(structure, [values.get(_name(path), leaf) for path, leaf in leaves])


def _compare(folder: Path, wanted: dict[str, tuple[int, ...]], found: dict[str, tuple[int, ...]]) -> None:
    differing = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if differing:
        name = differing[0]
        raise ValueError(
            f"{folder} was saved by another configuration: {len(differing)} arrays differ, the first is {name}: "
            f"expected shape {wanted.get(name, 'none')}, found {found.get(name, 'none')}. "
            "Load it with the settings (and modules) it was saved with, in the version that wrote it."
        )


def _named(tree: Any) -> dict[str, Any]:
    """Arrays by their place in the tree. Those without elements carry nothing, and orbax refuses them."""
    leaves, _ = jax.tree.flatten_with_path(tree)
    return {_name(path): leaf for path, leaf in leaves if np.size(leaf)}


def _name(path: tuple[Any, ...]) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")
