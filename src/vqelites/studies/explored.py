"""What the explorer shows of folders: a run, the runs of a study, or all runs in a folder."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from vqelites.explore.source import Source
from vqelites.runs.explored import ExploredRun
from vqelites.runs.files import RunError
from vqelites.studies import study
from vqelites.studies.study import FILE


def sources(folders: Sequence[Path]) -> list[Source]:
    """Every run in these folders, started or not. If one is damaged, the page says so when it is chosen."""
    if not folders:
        raise ValueError("Name at least one folder of a run or a study.")
    found = [source for folder in folders for source in _sources(folder)]
    return list({source.path.resolve(): source for source in found}.values())


def _sources(folder: Path) -> Iterator[ExploredRun]:
    if not folder.is_dir():
        raise RunError(f"There is no folder {folder}.")
    if (folder / FILE).exists():
        for group in study.read(folder).groups:
            for seed in group.seeds:
                yield ExploredRun(group.folder(folder, seed), f"{folder}: {group.named}, seed {seed}", root=folder)
        return
    inside = [] if (folder / "config.json").exists() else sorted(folder.glob("*/config.json"))
    yield from (ExploredRun(file.parent, root=folder) for file in inside or [folder / "config.json"])
