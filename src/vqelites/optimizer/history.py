"""What every iteration told, kept as it came: rows of metrics are made when they are read."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from vqelites.drive.bundle import Bundle
from vqelites.runs.metrics_file import COLUMNS, columns


class Iterated(NamedTuple):
    """The bootstrap, or an iteration."""

    numbers: Bundle  # a `StepInfo`
    rejected: int  # evaluations kept out
    evaluations: int  # so far
    seconds: float


@dataclass(frozen=True)
class History:
    """The rows of a file and then `count` entries. All histories of a run share one list, which only grows."""

    before: dict[str, np.ndarray] = field(default_factory=lambda: {name: np.zeros(0) for name in COLUMNS})
    entries: list[Iterated] = field(default_factory=list)
    count: int = 0

    def __len__(self) -> int:
        return len(self.before["iteration"]) + self.count

    def then(self, entry: Iterated) -> "History":
        """This history and one entry more; the numbers of the previous entry leave the device."""
        del self.entries[self.count :]  # of a call that was interrupted
        if self.entries:
            self.entries[-1] = self.entries[-1]._replace(numbers=self.entries[-1].numbers.fetched())
        self.entries.append(entry)
        return History(self.before, self.entries, self.count + 1)

    def columns(self) -> dict[str, Any]:
        """All rows, as columns of metrics.csv."""
        entries = self.entries[: self.count]
        if not entries:
            return self.before
        first = len(self.before["iteration"])
        _, rejected, evaluations, seconds = map(np.array, zip(*(("", *entry[1:]) for entry in entries), strict=True))
        info = Bundle.stacked([entry.numbers for entry in entries])
        new = columns(info, np.arange(first, len(self)), evaluations, seconds) | {"rejected": rejected}
        return {name: np.concatenate([self.before[name], new[name]]) for name in COLUMNS}
