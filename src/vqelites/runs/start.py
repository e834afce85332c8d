"""Solutions to start from, out of a file."""

from pathlib import Path

import numpy as np

from vqelites.runs.files import RunError


def read_solutions(path: Path) -> np.ndarray:
    """Solutions (n, s) of a .npy or .csv file, or of the archive of a run folder."""
    if path.is_dir():
        path = path / "archive.npz"
    try:
        if path.suffix == ".csv":
            return np.loadtxt(path, delimiter=",", ndmin=2, dtype=np.float32)
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            return np.asarray(loaded["solutions"] if isinstance(loaded, np.lib.npyio.NpzFile) else loaded, np.float32)
    except (OSError, ValueError, KeyError) as error:
        raise RunError(
            f"No solutions could be read from {path} ({error}). Expected a .npy or .csv file with one solution per "
            "row, an .npz file with `solutions`, or a run folder."
        ) from error
