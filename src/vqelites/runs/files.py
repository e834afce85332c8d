"""Files that are written whole or not at all, and that say themselves whether they were altered."""

import contextlib
import hashlib
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np


class RunError(Exception):
    """Something about a run that a person can put right; the message says what and how."""


class DamagedError(RunError):
    """A file is not what was written."""


@contextlib.contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn a failure of the file system into a message that names the file and the reason."""
    try:
        yield
    except OSError as error:
        raise RunError(f"{what} could not be written: {error.strerror or error}.") from error


@contextlib.contextmanager
def needs(extra: str) -> Iterator[None]:
    """Turn a missing optional package into a message that says how to get it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise RunError(f'{error.name} is missing: pip install "vqelites[{extra}]".') from error


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file: whoever reads it, even after a crash, sees the old content or the new one."""
    fresh = path.with_name(f".{path.name}.tmp")
    with explained(str(path)):
        try:
            with fresh.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, path)
        except OSError:
            fresh.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut, where the system knows how."""
    flags = getattr(os, "O_DIRECTORY", None)
    if flags is not None:
        handle = os.open(folder, os.O_RDONLY | flags)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read_bytes(path: Path) -> bytes:
    """The content of a file inside a run folder; a link could point anywhere, so none is followed."""
    if path.is_symlink():
        raise DamagedError(f"{path} is a link; a run folder holds none.")
    if not path.is_file():
        raise DamagedError(f"{path} is missing.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise DamagedError(f"{path} cannot be read: {error.strerror or error}.") from error


def sha256(data: bytes) -> str:
    """The checksum of some bytes."""
    return hashlib.sha256(data).hexdigest()


def seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with a checksum over all of it."""
    return {**record, "checksum": _checksum(record)}


def write_sealed(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record as JSON with its checksum."""
    write_whole(path, (json.dumps(seal(record), indent=2) + "\n").encode())


def read_sealed(path: Path, newest: int, oldest: int = 1) -> dict[str, Any]:
    """A record as it was written, its checksum included, if its format is one from `oldest` to `newest`."""
    try:
        record = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path} is damaged: it is not JSON ({error}).") from error
    if not isinstance(record, dict) or not isinstance(record.get("format"), int):
        raise DamagedError(f"{path} was not written by vqelites: it names no format.")
    if record["format"] > newest:
        raise RunError(
            f"{path} has format {record['format']}, but this version reads formats up to {newest}. "
            "Use the newer version that wrote it."
        )
    content = {name: value for name, value in record.items() if name != "checksum"}
    if record.get("checksum") != _checksum(content):
        raise DamagedError(f"{path} was altered: its checksum does not fit its content.")
    if record["format"] < oldest:
        raise RunError(
            f"{path} has format {record['format']}, written by an earlier vqelites ({record.get('vqelites', 'unknown')}"
            f"), but this version reads formats from {oldest} on: models, settings and metrics have changed since. "
            "Use the version that wrote it, or compute the run anew."
        )
    return record


def _checksum(record: Mapping[str, Any]) -> str:
    return sha256(json.dumps(record, sort_keys=True, separators=(",", ":")).encode())


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
    """Write named arrays, compressed, with a record about them and a checksum over both."""
    sealed = seal({**about, "arrays": {name: _digest(values) for name, values in arrays.items()}})
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, about=np.array(json.dumps(sealed)), **arrays)
    write_whole(path, buffer.getvalue())


def load_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the record about them, exactly as they were written."""
    data = read_bytes(path)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = dict(file)
        about = json.loads(str(arrays.pop("about")))
        content = {name: value for name, value in about.items() if name != "checksum"}
        intact = about["checksum"] == _checksum(content)
        intact &= about["arrays"] == {name: _digest(values) for name, values in arrays.items()}
    except Exception as error:  # what a damaged archive makes zlib, zipfile, json and NumPy raise has no common base
        raise DamagedError(f"{path} is damaged: it cannot be read as arrays.") from error
    if not intact:
        raise DamagedError(f"{path} was altered: its checksum does not fit its content.")
    return arrays, about


def _digest(values: np.ndarray) -> str:
    return sha256(f"{values.dtype.str}{values.shape}".encode() + np.ascontiguousarray(values).tobytes())
