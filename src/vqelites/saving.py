"""The folder of a saved ask/tell optimizer: settings as JSON, arrays beside them, nothing executable."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vqelites import checkpoint

FORMAT = 2


def save(folder: Path, settings: Mapping[str, Any], state: Any, host: Mapping[str, np.ndarray]) -> None:
    """Write all to a new folder beside it, then put that in its place: a crash leaves the old one or the new one."""
    if folder.exists() and not (folder / "settings.json").is_file():
        raise FileExistsError(f"{folder} exists and is not a saved run; choose another folder, or remove it.")
    fresh, old = folder.with_name(folder.name + ".new"), folder.with_name(folder.name + ".old")
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    fresh.mkdir(parents=True)
    (fresh / "settings.json").write_text(json.dumps({"format": FORMAT, **settings}, indent=2) + "\n")
    np.savez_compressed(fresh / "host.npz", allow_pickle=False, **host)
    checkpoint.save(fresh / "state", state)
    if folder.exists():
        folder.rename(old)
    fresh.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def load_settings(folder: Path) -> dict[str, Any]:
    """The settings of a saved run."""
    path = folder / "settings.json"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is not a saved run: it has no settings.json.")
    try:
        settings = json.loads(path.read_text())
    except ValueError as error:
        raise ValueError(f"{path} is damaged: it is not JSON ({error}).") from error
    found = settings.pop("format", None) if isinstance(settings, dict) else None
    if not isinstance(found, int):
        raise ValueError(f"{path} was not written by vqelites: it names no format.")
    if found != FORMAT:
        other = "an earlier" if found < FORMAT else "a later"
        raise ValueError(
            f"{folder} was saved by {other} version of vqelites: it has format {found}, and this version reads "
            f"{FORMAT}. Load it with the version that saved it, or begin a new run."
        )
    return dict(settings)


def load_host(folder: Path) -> dict[str, np.ndarray]:
    """The arrays that live outside the state."""
    path = folder / "host.npz"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is not complete: it has no host.npz.")
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(f"{path} is damaged and cannot be read ({error}).") from error
