"""Folders of runs and studies as what the explorer shows."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from vqelites.explore.source import Source
from vqelites.runs.explored import ExploredRun
from vqelites.runs.files import RunError
from vqelites.studies import study
from vqelites.studies.study import FILE


def sources(folders: Sequence[Path]) -> list[Source]:
    """Every run in these folders, begun or not. What is wrong with one the page says, when it is looked at."""
    if not folders:
        raise ValueError("Name at least one folder of a run or a study.")
    found = [source for folder in folders for source in _sources(folder)]
    return list({source.path.resolve(): source for source in found}.values())


def _sources(folder: Path) -> Iterator[ExploredRun]:
    if not folder.is_dir():
        raise RunError(f"There is no folder {folder}.")
    if not (folder / FILE).exists():
        yield ExploredRun(folder)
        return
    for group in study.read(folder).groups:
        for seed in group.seeds:
            yield ExploredRun(group.folder(folder, seed), f"{folder}: {group.named}, seed {seed}", root=folder)
