"""metrics.csv: one row per iteration, appended as the run goes, cut back when it is resumed."""

import hashlib
import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vqelites.drive import StepInfo
from vqelites.runs.files import DamagedError, explained, read_bytes, sha256

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "iteration", "evaluations", "rejected", "size", "max_fitness", "qd_score", "coverage", "pqd", "edr", "cds",
    "entropy", "codes_used", "perplexity", "saturated", "restarted", "elites_lost", "loss", "seconds",
)  # fmt: skip
_MEASURED = ("size", "max_fitness", "qd_score", "coverage", "pqd", "edr", "cds", "entropy")
_WHOLE = ("iteration", "evaluations", "rejected", "size", "elites_lost", "restarted")
HEADER = ",".join(COLUMNS) + "\n"


def columns(info: StepInfo, iteration: np.ndarray, evaluations: np.ndarray, seconds: np.ndarray) -> dict[str, Any]:
    """The rows of one run as columns (n,), from what its iterations reported; NaN where nothing was measured.

    `codes_used`, `perplexity` and `saturated` describe all stored behaviors after a training, so they and the loss are
    known only for iterations that ended with one.
    """
    learn, map_ = info.update.learn, info.update.map
    known: dict[str, Any] = {name: info.measures[name] for name in _MEASURED}
    known |= {"iteration": iteration, "evaluations": evaluations, "seconds": seconds}
    known["rejected"] = info.tell.rejected
    known |= {"codes_used": map_.codes_used, "perplexity": map_.perplexity, "saturated": map_.saturated}
    known |= {"restarted": map_.restarted, "loss": learn.loss, "elites_lost": info.update.lost}
    return {name: np.atleast_1d(known[name]) for name in COLUMNS}


def lines(rows: Mapping[str, np.ndarray]) -> str:
    """The rows as CSV; every number is written with as many digits as bring back exactly its value."""
    text = [[_text(name, value) for value in rows[name]] for name in COLUMNS]
    return "".join(",".join(row) + "\n" for row in zip(*text, strict=True))


def _text(name: str, value: Any) -> str:
    if np.isnan(value):
        return ""
    if name in _WHOLE or name == "codes_used":
        return str(int(value))
    return f"{value:.3f}" if name == "seconds" else str(np.float32(value))


class MetricsFile:
    """The file while its run goes on. A `mark` is its length and checksum so far, kept by every checkpoint."""

    def __init__(self, path: Path, mark: Mapping[str, Any] | None = None):
        """Start anew, or cut back to a mark that `matches`."""
        self.path = path
        with explained(str(path)):
            if mark is None:
                path.write_bytes(HEADER.encode())
            else:
                os.truncate(path, mark["bytes"])
        self._hash = hashlib.sha256(path.read_bytes())

    def append(self, text: str) -> None:
        """Add rows; the system writes them when it likes."""
        data = text.encode()
        with explained(str(self.path)), self.path.open("ab") as file:
            file.write(data)
        self._hash.update(data)

    def mark(self) -> dict[str, Any]:
        """How long the file is and what is in it, safely on disk."""
        with explained(str(self.path)), self.path.open("ab") as file:
            os.fsync(file.fileno())
            return {"bytes": file.tell(), "sha256": self._hash.hexdigest()}


def mark_of(data: bytes) -> dict[str, Any]:
    """The mark of a file with this content."""
    return {"bytes": len(data), "sha256": sha256(data)}


def matches(path: Path, mark: Mapping[str, Any]) -> bool:
    """Whether the file still begins as it did at that mark."""
    data = read_bytes(path)[: mark["bytes"]]
    return len(data) == mark["bytes"] and sha256(data) == mark["sha256"]


def parsed(data: bytes) -> "pd.DataFrame":
    """The content of such a file as a table."""
    import pandas as pd

    return pd.read_csv(io.BytesIO(data), dtype=dict.fromkeys(_WHOLE, "int64"))


def read(path: Path, mark: Mapping[str, Any] | None = None) -> "pd.DataFrame":
    """All complete rows; what lies before the mark must be as it was written."""
    import pandas as pd

    data = read_bytes(path)
    if mark is not None and not matches(path, mark):
        raise DamagedError(f"{path} was altered: it does not begin as it did when the archive was saved.")
    try:
        table = parsed(data[: data.rfind(b"\n") + 1])  # a run that was killed may have left half a row
    except (ValueError, pd.errors.ParserError) as error:
        raise DamagedError(f"{path} is damaged: {error}.") from error
    if tuple(table.columns) != COLUMNS:
        raise DamagedError(f"{path} is damaged: its columns are {', '.join(table.columns)}.")
    if not np.array_equal(table["iteration"], np.arange(len(table))):
        raise DamagedError(f"{path} is damaged: its iterations do not count from 0 on without a gap.")
    return table


def so_far(path: Path) -> tuple[int, dict[str, float]]:
    """How often the map was begun anew, and the latest number known in each column."""
    table = read(path)
    return int(table["restarted"].sum()), {str(name): value for name, value in table.ffill().iloc[-1].items()}
