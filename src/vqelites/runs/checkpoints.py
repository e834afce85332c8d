"""Checkpoints of a run: whole states in orbax's format, each with a manifest that tells whether it is still good."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vqelites import checkpoint
from vqelites.loop import QD, State
from vqelites.runs.files import (
    DamagedError,
    RunError,
    read_bytes,
    read_sealed,
    sha256,
    sync_folder,
    write_sealed,
)
from vqelites.runs.folder import RunFolder

FORMAT = 3
_EXTRA = "extra.npz"


@dataclass(frozen=True)
class SavePoint:
    """Where a run stood, and what the rest of its folder looked like then."""

    save: int  # number of the checkpoint: a later one has a higher number
    iteration: int
    bootstrapping: bool
    seconds: float  # of computing so far
    rejected: int  # evaluations kept out so far because of a non-finite number
    metrics: dict[str, Any]  # mark of metrics.csv
    chosen: dict[str, Any] | None  # by the map, from the first data: the fields of `Chosen`


def next_save(folder: RunFolder, iteration: int) -> int:
    """The number of the next checkpoint: that of its iteration, unless there is one already."""
    return max(iteration, max(found(folder), default=-1) + 1)


def save(folder: RunFolder, state: Any, moment: SavePoint, extra: Mapping[str, np.ndarray] | None = None) -> None:
    """Write a checkpoint, with some more arrays, beside its place and put it there whole."""
    final = _place(folder, moment.save)
    fresh = final.with_name(f".{final.name}.tmp")
    _check_space(folder, final, state)
    try:
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        checkpoint.save(fresh / "state", state)
        if extra is not None:
            np.savez_compressed(fresh / _EXTRA, allow_pickle=False, **extra)
        files = {name: sha256(_synced(path)) for name, path in _files(fresh).items()}
        record = {"format": FORMAT, "config": folder.identity, **vars(moment), "files": files}
        write_sealed(fresh / "manifest.json", record)
        os.rename(fresh, final)
        sync_folder(final.parent)
    except Exception as error:  # the array library reports a full disk with exceptions of its own
        shutil.rmtree(fresh, ignore_errors=True)
        raise RunError(f"The checkpoint {final} could not be written: {_reason(error)}.") from error


def forget_old(folder: RunFolder) -> None:
    """Remove all but the newest checkpoints; only once every run of the group has a newer one."""
    for old in found(folder)[: -folder.config.saving.keep]:
        shutil.rmtree(_place(folder, old), ignore_errors=True)


def found(folder: RunFolder) -> list[int]:
    """Numbers of all checkpoints, good or not."""
    if not folder.checkpoints.is_dir():
        return []
    return sorted(int(path.name) for path in folder.checkpoints.iterdir() if path.name.isdecimal())


def check(folder: RunFolder, number: int) -> SavePoint:
    """What the checkpoint says, if every byte of it is as it was written, by this run."""
    place = _place(folder, number)
    record = read_sealed(place / "manifest.json", FORMAT)
    if record.get("config") != folder.identity or record.get("save") != number:
        raise DamagedError(f"{place} is foreign: it was not written by this run at this moment.")
    present = _files(place)
    present.pop("manifest.json")
    for name in sorted(present.keys() | record["files"].keys()):
        if name not in record["files"]:
            raise DamagedError(f"{place} was altered: {name} does not belong to it.")
        if sha256(read_bytes(place / name)) != record["files"][name]:
            raise DamagedError(f"{place} was altered: the checksum of {name} does not fit.")
    return SavePoint(**{name: record[name] for name in SavePoint.__dataclass_fields__})


def restore(folder: RunFolder, moment: SavePoint, qd: QD) -> State:
    """The state of a checkpoint that `check` found good."""
    empty = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), state_like(qd, bootstrapping=moment.bootstrapping))
    try:
        return checkpoint.restore(_place(folder, moment.save) / "state", empty)
    except ValueError as error:
        raise RunError(f"{error} It is intact: use the version of vqelites and the task file that wrote it.") from error


def extra(folder: RunFolder, moment: SavePoint) -> dict[str, np.ndarray]:
    """The arrays that were saved beside the state, if any."""
    path = _place(folder, moment.save) / _EXTRA
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def state_like(qd: QD, *, bootstrapping: bool = False) -> State:
    """The shapes of a state in the bootstrap, or after it."""

    def begun(seed: Any) -> State:
        state = qd.init(seed)
        return state if bootstrapping or not qd.bootstrap else qd.emptied(state)

    return jax.eval_shape(begun, jax.ShapeDtypeStruct((), jnp.uint32))


def forget_after(folder: RunFolder, number: int) -> None:
    """Remove checkpoints later than this one, and what a killed process left half written."""
    for later in found(folder):
        if later > number:
            shutil.rmtree(_place(folder, later))
    for leftover in folder.checkpoints.glob(".*.tmp"):
        shutil.rmtree(leftover, ignore_errors=True)


def _place(folder: RunFolder, number: int) -> Path:
    return folder.checkpoints / f"{number:06d}"


def _files(place: Path) -> dict[str, Path]:
    """All files by their name relative to the checkpoint."""
    return {path.relative_to(place).as_posix(): path for path in sorted(place.rglob("*")) if not path.is_dir()}


def _synced(path: Path) -> bytes:
    """The content of a file, safely on disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        return file.read()


def _check_space(folder: RunFolder, final: Path, state: Any) -> None:
    """Raise if the disk is nearly full, before the array library finds out and complains in its own way."""
    needed = sum(leaf.nbytes for leaf in jax.tree.leaves(state))
    free = shutil.disk_usage(folder.path).free
    if free < needed:
        raise RunError(
            f"The checkpoint {final} needs {needed / 1e6:.1f} MB, but the disk has {free / 1e6:.1f} MB left."
        )


def _reason(error: Exception) -> str:
    """In one line, whoever reports it."""
    text = (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return text.strip().splitlines()[0].rstrip(".")
