"""Finished runs of one or more studies as tables, and what had to be left out of them."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pandas as pd

from vqelites.runs.files import DamagedError, RunError, read_sealed
from vqelites.runs.folder import RunFolder, open_folder
from vqelites.runs.recovery import snapshot_problems
from vqelites.runs.run import Run
from vqelites.runs.runner import ENVIRONMENT_FORMAT
from vqelites.studies import finals, study
from vqelites.studies.catalogue import StudyName
from vqelites.studies.study import COMPARISON, FILE, KEYS, Key, asked, differing
from vqelites.tasks.base import Task
from vqelites.words import counted

_UNEQUAL = 1.1  # archives that differ in size by a larger factor are not compared by sums without a word


@dataclass(frozen=True)
class StudyData:
    """Everything a report is made from.

    `curves` has a row per iteration of each run, `results` a row per run with its final metrics; both begin with the
    columns of `Key`. `notes` says what was left out, and what to keep in mind.
    """

    curves: pd.DataFrame
    results: pd.DataFrame
    runs: Mapping[Key, RunFolder]
    tasks: Mapping[str, Task]  # by name; simulators that are not known here have an interface all the same
    environments: Mapping[Key, Mapping[str, Any]]
    questions: Mapping[str, str]  # of every family
    papers: bool  # whether one of the studies is the paper's own: its evaluation or an ablation
    notes: tuple[str, ...]

    def run(self, key: Key) -> Run:
        """One run, read anew: archives of many runs together would fill the memory."""
        return Run(self.runs[key])

    def part(self, **chosen: str) -> "StudyData":
        """Only the runs whose key has these values."""

        def rows(table: pd.DataFrame) -> pd.DataFrame:
            for name, value in chosen.items():
                table = table[table[name] == value]
            return table.reset_index(drop=True)

        kept = {key: run for key, run in self.runs.items() if all(getattr(key, n) == v for n, v in chosen.items())}
        return dataclasses.replace(self, curves=rows(self.curves), results=rows(self.results), runs=kept)


@dataclass(frozen=True)
class _Expected:
    """A run that a folder should hold."""

    key: Key
    path: Path
    config: Any  # of its group in study.json, None for a run alone


def load_study(*roots: Path | str, mixed_versions: bool = False) -> StudyData:
    """The runs of these study folders (or folders of single runs) that are finished, as tables.

    Runs that are missing, not finished, damaged or without any elite are left out, which the notes say. The same run
    twice, other settings under the same label, a run in another's place, and (unless `mixed_versions`) runs of
    different versions of this package are errors: nothing is ever pooled that does not belong together.
    """
    if not roots:
        raise ValueError("load_study: name at least one folder.")
    questions: dict[str, str] = {}
    expected = [run for root in roots for run in _expected(Path(root), questions)]
    twice = sorted({str(run.key) for run in expected if sum(run.key == other.key for other in expected) > 1})
    if twice:
        raise RunError(f"There is more than one run of {twice[0]} in these folders. Leave out all but one.")
    runs, environments, notes = _finished(expected)
    _same_settings(runs)
    notes += _versions(environments, mixed_versions)
    tasks = {name: Run(folder).task for name, folder in {key.task: folder for key, folder in runs.items()}.items()}
    curves, results = finals.tables(runs, tasks)
    notes += _uneven(results)
    papers = any(_is_the_papers(Path(root)) for root in roots)
    return StudyData(curves, results, runs, tasks, environments, questions, papers, tuple(notes))


def _is_the_papers(root: Path) -> bool:
    """Whether a folder holds a study that the paper has too, and not a run or a comparison of one's own."""
    return (root / FILE).exists() and study.read(root).name in get_args(StudyName)


def _expected(root: Path, questions: dict[str, str]) -> Iterator[_Expected]:
    """Every run a folder is said to hold."""
    if (root / FILE).exists():
        found = study.read(root)
        questions.setdefault(found.family, found.question)
        for group in found.groups:
            config = group.config
            for seed in group.seeds:
                key = Key(found.family, config.preset, config.task, group.label, seed)
                yield _Expected(key, group.folder(root, seed), config)
    elif (root / "config.json").exists():
        folder = open_folder(root)
        key = Key(COMPARISON, folder.config.preset, folder.config.task, folder.config.algorithm, folder.seed)
        yield _Expected(key, root, None)
    else:
        raise RunError(f"{root} is neither a study nor a run: it has no {FILE} and no config.json.")


def _finished(expected: list[_Expected]) -> tuple[dict[Key, RunFolder], dict[Key, dict[str, Any]], list[str]]:
    """Runs that can be used, what they were computed with, and notes on the others."""
    runs: dict[Key, RunFolder] = {}
    environments: dict[Key, dict[str, Any]] = {}
    left: dict[str, list[Key]] = {}
    for run in expected:
        if not (run.path / "config.json").exists():
            left.setdefault("missing, not begun yet", []).append(run.key)
            continue
        folder = open_folder(run.path)
        changed = [] if run.config is None else differing(asked(run.config), asked(folder.config))
        if folder.seed != run.key.seed or changed:
            changed += [f"seed {run.key.seed} -> {folder.seed}"] if folder.seed != run.key.seed else []
            raise RunError(f"{run.path} holds another run than study.json says: {'; '.join(changed)}. Put it right.")
        try:
            one = Run(folder)
            damaged = snapshot_problems(folder, one.iteration)
            if damaged:
                left.setdefault(f"damaged ({damaged[0]})", []).append(run.key)
            elif one.finished and not one.metrics["size"].iloc[-1]:
                left.setdefault("its archive is empty", []).append(run.key)
            elif one.finished:
                environments[run.key] = read_sealed(folder.environment, ENVIRONMENT_FORMAT)
                runs[run.key] = folder
            else:
                end = folder.iterations
                left.setdefault(f"not finished, saved up to iteration {one.iteration} of {end}", []).append(run.key)
        except DamagedError as error:
            left.setdefault(f"damaged ({str(error).removesuffix('.')})", []).append(run.key)
    notes = [note for reason, keys in left.items() for note in _left_out(keys, reason)]
    if not runs:
        raise RunError(f"There is no finished run to report on. {' '.join(notes)}")
    return runs, environments, notes


def _left_out(keys: list[Key], reason: str) -> Iterator[str]:
    """A note for every group of runs that are left out for the same reason."""
    groups: dict[tuple[Any, ...], list[Key]] = {}
    for key in keys:
        groups.setdefault(key[:4], []).append(key)
    for some in groups.values():
        seeds = f"{'seed' if len(some) == 1 else 'seeds'} {', '.join(str(key.seed) for key in some)}"
        yield f"Left out: {some[0].algorithm} on {some[0].task} ({some[0].preset}), {seeds}: {reason}."


def _same_settings(runs: Mapping[Key, RunFolder]) -> None:
    """Raise if runs under one label have different settings, or simulators of one name differ.

    When they are saved, and how many workers they had, does not matter.
    """
    first: dict[tuple[str, ...], tuple[Key, RunFolder]] = {}
    simulators: dict[str, RunFolder] = {}
    for key, folder in runs.items():
        before, other = first.setdefault(key[:4], (key, folder))
        changed = differing(other.config.settings, folder.config.settings)
        if changed:
            raise RunError(
                f"{other.path} and {folder.path} are both {before.algorithm} on {before.task} ({before.preset}), but "
                f"their settings differ: {'; '.join(changed)}. Report on them apart."
            )
        other = simulators.setdefault(key.task, folder)
        changed = differing(other.config.interface, folder.config.interface)
        if changed:
            raise RunError(
                f"{other.path} and {folder.path} have different simulators named {key.task}: {'; '.join(changed)}. "
                "Report on them apart."
            )


def _versions(environments: Mapping[Key, Mapping[str, Any]], mixed: bool) -> list[str]:
    """A note, or an error, if not all runs come from the same version of this package."""
    versions: dict[str, list[str]] = {}
    for key, environment in environments.items():
        versions.setdefault(str(environment.get("packages", {}).get("vqelites")), []).append(str(key))
    if len(versions) < 2:
        return []
    text = "; ".join(f"{version}: {counted(len(keys), 'run')}, such as {keys[0]}" for version, keys in versions.items())
    if not mixed:
        raise RunError(
            f"These runs come from different versions of vqelites, which may compute different things: {text}. Report "
            "on them apart, or accept it with `--mixed-versions` (mixed_versions=True); the report then says so."
        )
    return [f"Keep in mind: runs of different versions of vqelites are compared here. {text}."]


def _uneven(results: pd.DataFrame) -> list[str]:
    """Notes on comparisons that are not quite fair."""
    notes = []
    for (family, preset, task), rows in results.groupby(KEYS[:3], sort=False):
        where = f"{task} ({family}, {preset})"
        seeds = {str(name): len(group) for name, group in rows.groupby("algorithm", sort=False)}
        if len(set(seeds.values())) > 1:
            counted = ", ".join(f"{name} {count}" for name, count in seeds.items())
            notes.append(f"Keep in mind: numbers of seeds differ on {where}: {counted}.")
        sizes = rows.groupby("algorithm", sort=False)["size"].median()
        if rows["coverage"].isna().all() and sizes.max() > _UNEQUAL * sizes.min():
            counted = ", ".join(f"{name} {int(size)}" for name, size in sizes.items())
            notes.append(
                f"Keep in mind: the QD score grows with the number of elites, which differs on {where}: {counted}."
            )
        for what in ("iterations", "evaluations"):
            values = rows.groupby("algorithm", sort=False)[what].first()
            if values.nunique() > 1:
                counted = ", ".join(f"{name} {int(value)}" for name, value in values.items())
                notes.append(f"Keep in mind: {what} differ on {where}: {counted}.")
                break
    return notes
