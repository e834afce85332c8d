"""Chosen elites as files: NumPy arrays with the names of archive.npz, or a table."""

import io

import numpy as np

from vqelites.frames import ArchiveFrame


def as_npz(elites: ArchiveFrame) -> io.BytesIO:
    """Arrays ids, solutions, fitness, behavior, descriptors, truth and cells, one row per elite."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **vars(elites))
    buffer.seek(0)
    return buffer


def as_csv(elites: ArchiveFrame) -> io.BytesIO:
    """A row per elite with all but its raw behavior."""
    return io.BytesIO(elites.to_pandas().to_csv(index=False).encode())
