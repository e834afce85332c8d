"""Where an interrupted run can go on: the newest checkpoint that nothing in its folder contradicts."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vqelites.runs import checkpoints, contents, metrics_file, plan
from vqelites.runs.checkpoints import SavePoint
from vqelites.runs.environment import differences
from vqelites.runs.files import DamagedError, RunError, read_sealed
from vqelites.runs.folder import RunFolder


@dataclass(frozen=True)
class Recovery:
    """The moment every run of a group goes on from (None: from the beginning), and what a person should know."""

    moments: tuple[SavePoint, ...] | None
    notes: tuple[str, ...]


def recover(members: Sequence[RunFolder], *, restart: bool) -> Recovery:
    """The newest moment that is good in every folder; damaged checkpoints are named."""
    good, notes = _good(members)
    if good:
        moments = good[max(good)]
        for folder, moment in zip(members, moments, strict=True):
            notes += snapshot_problems(folder, moment.iteration)
        return Recovery(moments, tuple(notes))
    left = [folder for folder in members if checkpoints.found(folder) or folder.archive.exists()]
    if left and not restart:
        found = " ".join(notes) or f"{left[0].checkpoints} holds no checkpoint."
        raise RunError(
            f"There is nothing good to resume from: {found} `vqelites resume {members[0].path} --restart` begins "
            "again from the first iteration and replaces what is there."
        )
    for folder in members:
        _clear(folder)
    return Recovery(None, (*notes, "No checkpoint was written yet: beginning from the first iteration."))


def _good(members: Sequence[RunFolder]) -> tuple[dict[int, tuple[SavePoint, ...]], list[str]]:
    """Moments, by the number of their checkpoint, where all folders have a good one; and what is wrong with others."""
    notes: list[str] = []
    good: list[dict[int, SavePoint]] = []
    for folder in members:
        good.append({})
        for number in checkpoints.found(folder):
            try:
                good[-1][number] = _checked(folder, number)
            except DamagedError as error:
                notes.append(f"Left out a checkpoint: {error}")
    shared = set.intersection(*(set(moments) for moments in good))
    return {number: tuple(moments[number] for moments in good) for number in shared}, notes


def newest(folder: RunFolder) -> SavePoint:
    """The newest good moment of a run alone."""
    good, notes = _good([folder])
    if not good:
        raise RunError(" ".join(notes) or f"{folder.checkpoints} holds no checkpoint.")
    return good[max(good)][0]


def _checked(folder: RunFolder, number: int) -> SavePoint:
    moment = checkpoints.check(folder, number)
    if not metrics_file.matches(folder.metrics, moment.metrics):
        raise DamagedError(f"{folder.metrics} was altered in its rows up to iteration {moment.iteration}.")
    return moment


def snapshot_iterations(folder: RunFolder, iteration: int) -> list[int]:
    """Iterations whose snapshot must be in the folder of a run that is this far."""
    return [moment for moment in plan.snapshots(folder.ends, folder.config.stride) if moment <= iteration]


def snapshot_problems(folder: RunFolder, iteration: int) -> list[str]:
    """What is wrong with the snapshots of a run that is this far, a sentence each."""
    problems = []
    for moment in snapshot_iterations(folder, iteration):
        try:
            contents.load_snapshot(folder, moment)
        except DamagedError as error:
            problems.append(f"{error} This snapshot lies before the checkpoint and is not made again.")
    return problems


def compare_environment(folder: RunFolder, now: dict[str, Any]) -> tuple[str, ...]:
    """A warning if the run was begun with something else: it goes on, but not bit for bit as it would have."""
    try:
        before = read_sealed(folder.environment, 1)
    except RunError as error:
        return (f"{error} Whether versions or device changed since the start is therefore not known.",)
    changed = differences(before, now)
    if not changed:
        return ()
    return (f"Since the run began, this changed, so results may differ in their last bits: {'; '.join(changed)}.",)


def _clear(folder: RunFolder) -> None:
    """Remove what an earlier attempt left, so that nothing old mixes with the new."""
    folder.archive.unlink(missing_ok=True)
    for place in (folder.checkpoints, folder.snapshots, folder.figures):
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
