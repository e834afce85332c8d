"""What every experiment tracker can take in."""

import abc
from collections.abc import Mapping, Sequence
from pathlib import Path

from vqelites.frames import ArchiveFrame


class AbstractTracker(abc.ABC):
    """Follows one run. It may raise and take its time: whoever calls it sees to it that the run does not notice."""

    @abc.abstractmethod
    def rows(self, rows: Sequence[Mapping[str, float]]) -> None:
        """Metrics of some iterations, in order, each with its `iteration`; what was not measured is left out."""

    @abc.abstractmethod
    def figure(self, path: Path, iteration: int) -> None:
        """A picture, as a PNG file."""

    @abc.abstractmethod
    def archive(self, path: Path, elites: ArchiveFrame, iteration: int) -> None:
        """The elites at the end, and the file that has them."""

    @abc.abstractmethod
    def close(self) -> None:
        """Write what was not written yet."""
