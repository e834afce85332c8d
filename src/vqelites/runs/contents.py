"""What a run found: archive.npz with its elites, and snapshots of elites and codes over time."""

from dataclasses import dataclass, replace
from typing import Any

import equinox as eqx
import jax
import numpy as np

from vqelites.descriptors import VQVAE
from vqelites.frames import ArchiveFrame
from vqelites.levels import as_floats, as_levels
from vqelites.loop import QD, State
from vqelites.runs.checkpoints import SavePoint
from vqelites.runs.files import DamagedError, load_arrays, save_arrays
from vqelites.runs.folder import RunFolder

FORMAT = 3
_NAMES = ("ids", "solutions", "fitness", "behavior", "descriptors", "truth", "cells")


@dataclass(frozen=True)
class Snapshot:
    """The elites at one moment of a run, and the codes of a model that has any.

    `decoded` is the behavior each code stands for (images: rounded to 8 bits), kept at some of the moments.
    """

    iteration: int
    ids: np.ndarray  # (n,)
    fitness: np.ndarray  # (n,)
    descriptors: np.ndarray  # (n, d)
    codes: np.ndarray | None = None  # (k, d)
    decoded: np.ndarray | None = None  # (k, *shape)


def save_archive(folder: RunFolder, qd: QD, state: State, moment: SavePoint) -> None:
    """Write the elites of one run's state."""
    frame = ArchiveFrame.of(qd.archive.elites(state.archive))
    arrays = {name: getattr(frame, name) for name in _NAMES}
    arrays["behavior"] = compact(frame.behavior)
    save_arrays(folder.archive, arrays, {"format": FORMAT, "config": folder.identity, **vars(moment)})


def load_archive(folder: RunFolder) -> tuple[ArchiveFrame, SavePoint]:
    """The elites as they were in the run, and the moment they were saved."""
    try:
        arrays, about = load_arrays(folder.archive)
    except DamagedError as error:
        raise DamagedError(f"{error} `vqelites resume {folder.path}` writes it again from a checkpoint.") from error
    if about.get("config") != folder.identity or sorted(arrays) != sorted(_NAMES):
        raise DamagedError(f"{folder.archive} is foreign: it was not written by this run.")
    arrays["behavior"] = as_floats(arrays["behavior"])
    moment = SavePoint(**{name: about[name] for name in SavePoint.__dataclass_fields__})
    return ArchiveFrame(**arrays), moment


def compact(behavior: np.ndarray) -> np.ndarray:
    """Images (n, ..., h, w, c) as 8-bit levels where these stand for exactly them; all other behavior as it is."""
    levels = as_levels(behavior) if behavior.ndim > 3 else None
    return behavior if levels is None else levels


def snapshot(qd: QD, state: State, *, decoded: bool) -> Snapshot:
    """The elites of a state and, where its descriptor has them, codes; and what they decode to."""
    frame = ArchiveFrame.of(qd.archive.elites(state.archive))
    taken = Snapshot(int(state.iteration), frame.ids, frame.fitness, frame.descriptors)
    if not isinstance(qd.descriptor, VQVAE):
        return taken
    codes = np.asarray(qd.descriptor.cells(state.descriptor))
    return replace(taken, codes=codes, decoded=np.asarray(_decoded(qd, state.descriptor)) if decoded else None)


def save_snapshot(folder: RunFolder, taken: Snapshot) -> None:
    """Write a snapshot. Decoded images are rounded to 8 bits between their darkest and their brightest pixel."""
    arrays = {name: value for name, value in vars(taken).items() if isinstance(value, np.ndarray)}
    if taken.decoded is not None:
        low, high = 0.0, 1.0
        if taken.decoded.ndim >= 4:  # blurred ones are faint
            low, high = float(taken.decoded.min()), float(taken.decoded.max())
            arrays["decoded"] = np.rint((taken.decoded - low) / max(high - low, 1e-12) * 255).astype(np.uint8)
        arrays["limits"] = np.array([low, high], np.float32)
    path = folder.snapshot(taken.iteration)
    path.parent.mkdir(exist_ok=True)
    save_arrays(path, arrays, {"format": FORMAT, "config": folder.identity, "iteration": taken.iteration})


def load_snapshot(folder: RunFolder, iteration: int) -> Snapshot:
    """The snapshot after this iteration."""
    path = folder.snapshot(iteration)
    arrays, about = load_arrays(path)
    if (about.get("config"), about.get("iteration")) != (folder.identity, iteration):
        raise DamagedError(f"{path} is foreign: it was not written by this run at this iteration.")
    if "decoded" in arrays:
        low, high = arrays.pop("limits")
        arrays["decoded"] = low + (high - low) * as_floats(arrays["decoded"])
    return Snapshot(iteration, **arrays)


@eqx.filter_jit
def _decoded(qd: QD, state: Any) -> jax.Array:
    """What codes decode to, a few at a time: what the layers hold for all of them at once would not fit."""
    assert isinstance(qd.descriptor, VQVAE)
    model = qd.descriptor
    return jax.lax.map(lambda code: model.decode(state, code[None])[0], model.cells(state), batch_size=64)
