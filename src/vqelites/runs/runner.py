"""From a configuration to run folders: all seeds of a group advance together, each writes a folder of its own."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from vqelites import inputs
from vqelites.runs.config import Config
from vqelites.runs.environment import environment, memory_bytes
from vqelites.runs.events import Note, Observe, silent
from vqelites.runs.files import RunError, write_sealed
from vqelites.runs.folder import NAME, RunFolder, check_free, create, locked, open_folder, siblings
from vqelites.runs.group import Outcome as Outcome
from vqelites.runs.group import RunGroup
from vqelites.runs.kept_programs import keep_programs
from vqelites.runs.programs import Programs, check_works, programs, with_shapes
from vqelites.runs.recovery import compare_environment, recover
from vqelites.runs.taskfiles import make_task
from vqelites.tasks import SimulatorTask

ENVIRONMENT_FORMAT = 1


def never() -> bool:
    """Go on to the end."""
    return False


def execute(
    config: Config,
    folders: Mapping[int, Path],
    *,
    simulator: SimulatorTask | None = None,
    start: np.ndarray | None = None,
    overwrite: bool = False,
    draw: bool = True,
    minutes: float | None = None,
    observe: Observe = silent,
    stop: Callable[[], bool] = never,
) -> Outcome:
    """Run one configuration for all these seeds together, each in its folder.

    Folders of several seeds must lie beside each other. `start` are solutions (n, s) to start from. `stop` is asked
    after every chunk; when it says yes, or after so many `minutes`, all is saved, to be resumed. Everything that can go
    wrong with names, settings and folders does so before any work.
    """
    keep_programs()
    paths, until = _beside(folders), _until(stop, minutes)
    simulator = _found(config) if simulator is None else simulator
    if simulator is not None:
        simulator = with_shapes(simulator, config.evaluating, next(iter(paths)))
        config = replace(config, interface=simulator.interface)
    with programs(config, simulator, start) as made:
        _check_width(start, made.qd.space.dim)
        _check_memory(made)
        for path in paths.values():
            check_free(path, overwrite=overwrite, needed=(config.saving.keep + 1) * made.bytes)
        group = {seed: path.name for seed, path in paths.items()} if len(paths) > 1 else {}
        with locked(paths.values()):
            fresh = [create(path, config, seed, group, start) for seed, path in paths.items()]
            _write_environment(fresh)
            for folder in fresh:
                folder.log(f"started: {config.named}, seed {folder.seed}, {config.iterations} iterations")
            return RunGroup(made, fresh, observe).go(until, draw)


def resume(
    folder: Path,
    *,
    simulator: SimulatorTask | None = None,
    iterations: int | None = None,
    evaluating: Mapping[str, Any] = MappingProxyType({}),
    restart: bool = False,
    draw: bool = True,
    minutes: float | None = None,
    observe: Observe = silent,
    stop: Callable[[], bool] = never,
) -> Outcome:
    """Continue a run, with all runs computed together with it, from the newest checkpoint that is good in each.

    The result is the same as if it had never been interrupted. `iterations` extends a run beyond its planned end;
    `evaluating` is what of `Evaluating` shall be other than before. `restart` allows to begin anew where nothing good
    is left to continue from.
    """
    keep_programs()
    members, until = siblings(open_folder(folder)), _until(stop, minutes)
    config = members[0].config
    if simulator is None:
        simulator = _found(config)
    elif config.interface is not None:
        simulator = simulator.with_interface(config.interface)
    config = replace(config, evaluating=replace(config.evaluating, **evaluating))
    if simulator is not None:  # another one than before would spoil the run
        check_works(simulator, config.evaluating, members[0].seed)
    with (
        programs(config, simulator, members[0].start()) as made,
        locked(member.path for member in members),
    ):
        members = _extended(members, iterations)
        found = recover(members, restart=restart)
        notes = found.notes
        if found.moments is None:
            _write_environment(members)
        else:
            notes += compare_environment(members[0], environment())
        for note in notes:
            members[0].log(note)
            observe(Note(note))
        return RunGroup(made, members, observe).go(until, draw, found.moments)


def _check_width(start: np.ndarray | None, width: int) -> None:
    """Raise unless the solutions to start from are solutions."""
    if start is not None and (start.ndim != 2 or start.shape[1] != width or not np.isfinite(start).all()):
        raise RunError(
            f"Solutions to start from must be finite numbers of shape (n, {width}), one solution per row, but have "
            f"shape {start.shape}{'' if np.isfinite(start).all() else ' and hold NaN or infinity'}."
        )


def _check_memory(made: Programs) -> None:
    """Raise where a state, of which two are held while it changes, takes all memory: the system would kill the run."""
    sizes, whole = made.qd.sizes, memory_bytes()
    if 2 * made.bytes > whole:
        raise RunError(
            f"The run needs more than {2 * made.bytes / 1e9:.2g} GB of memory, but there are {whole / 1e9:.2g}: a "
            f"solution has {sizes.solution:,} numbers and a behavior {math.prod(sizes.behavior):,}, kept for every "
            "elite. Use a smaller policy, less behavior (fewer or smaller frames) or fewer cells."
        )


def _found(config: Config) -> SimulatorTask | None:
    """The simulator of that name; None for a task in JAX."""
    task = make_task(config.task, config.interface)
    return task if isinstance(task, SimulatorTask) else None


def _extended(members: Sequence[RunFolder], iterations: int | None) -> list[RunFolder]:
    """The same runs, to go on to this iteration: all of them, also where a process was killed while it said so."""
    longest = max((member.ends for member in members), key=len)
    members = [member if member.ends == longest else member.extended(longest[-1]) for member in members]
    if iterations is None or iterations == longest[-1]:
        return members
    if iterations < longest[-1]:
        raise RunError(f"{members[0].path} is planned for {longest[-1]} iterations already; give a larger number.")
    return [member.extended(iterations) for member in members]


def _until(stop: Callable[[], bool], minutes: float | None) -> Callable[[], bool]:
    """When to stop: as told, or when the time is over."""
    if minutes is None:
        return stop
    if not isinstance(minutes, int | float) or not minutes > 0:
        raise ValueError(f"A time budget is a positive number of minutes, but got {minutes!r}.")
    end = time.monotonic() + 60 * minutes
    return lambda: stop() or time.monotonic() >= end


def _beside(folders: Mapping[int, Path]) -> dict[int, Path]:
    """The folders, once it is sure that they can be a group."""
    paths = {inputs.seed(seed): Path(path) for seed, path in folders.items()}
    if not paths:
        raise RunError("A run needs at least one seed.")
    places = [path.absolute() for path in paths.values()]
    if len(set(places)) < len(places) or len({place.parent for place in places}) > 1:
        raise RunError("Runs computed together need folders of their own, all in the same parent folder.")
    if len(places) > 1 and not all(NAME.fullmatch(place.name) for place in places):
        raise RunError("Folders of runs computed together have names of letters, digits, spaces and _ . - only.")
    return paths


def _write_environment(folders: Sequence[RunFolder]) -> None:
    for folder in folders:
        write_sealed(folder.environment, {"format": ENVIRONMENT_FORMAT, **environment()})
