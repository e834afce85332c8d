"""From a configuration to run folders: all seeds of a group advance together, each writes a folder of its own."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from vqelites.runs.environment import environment
from vqelites.runs.events import Note, Observe, silent
from vqelites.runs.files import RunError, write_sealed
from vqelites.runs.folder import NAME, Config, RunFolder, check_free, create, locked, open_folder, siblings
from vqelites.runs.group import Outcome as Outcome
from vqelites.runs.group import RunGroup
from vqelites.runs.programs import programs
from vqelites.runs.recovery import compare_environment, recover

ENVIRONMENT_FORMAT = 1


def never() -> bool:
    """Go on to the end."""
    return False


def execute(
    config: Config,
    folders: Mapping[int, Path],
    *,
    overwrite: bool = False,
    draw: bool = True,
    observe: Observe = silent,
    stop: Callable[[], bool] = never,
) -> Outcome:
    """Run one configuration for all these seeds together, each in its folder.

    Folders of several seeds must lie beside each other. `stop` is asked after every chunk; when it says yes, all is
    saved, to be resumed. Everything that can go wrong with names, settings and folders does so before any work.
    """
    paths = _beside(folders)
    made = programs(config.task, config.settings)
    for path in paths.values():
        check_free(path, overwrite=overwrite, needed=(config.saving.keep + 1) * made.bytes)
    group = {seed: path.name for seed, path in paths.items()} if len(paths) > 1 else {}
    with locked(paths.values()):
        fresh = [create(path, config, seed, group) for seed, path in paths.items()]
        _write_environment(fresh)
        for folder in fresh:
            folder.log(f"started: {config.named}, seed {folder.seed}, {config.iterations} iterations")
        return RunGroup(made, fresh, observe).go(stop, draw)


def resume(
    folder: Path,
    *,
    restart: bool = False,
    draw: bool = True,
    observe: Observe = silent,
    stop: Callable[[], bool] = never,
) -> Outcome:
    """Continue a run, with all runs computed together with it, from the newest checkpoint that is good in each.

    The result is the same as if it had never been interrupted. `restart` allows to begin anew where nothing good is
    left to continue from.
    """
    members = siblings(open_folder(folder))
    made = programs(members[0].config.task, members[0].config.settings)
    with locked(member.path for member in members):
        found = recover(members, restart=restart)
        notes = found.notes
        if found.moments is None:
            _write_environment(members)
        else:
            notes += compare_environment(members[0], environment())
        for note in notes:
            members[0].log(note)
            observe(Note(note))
        return RunGroup(made, members, observe).go(stop, draw, found.moments)


def _beside(folders: Mapping[int, Path]) -> dict[int, Path]:
    """The folders, once it is sure that they can be a group."""
    paths = {int(seed): Path(path) for seed, path in folders.items()}
    if not paths:
        raise RunError("A run needs at least one seed.")
    wrong = [seed for seed in paths if not 0 <= seed < 2**32]
    if wrong:
        raise RunError(f"A seed lies between 0 and {2**32 - 1}, but got {wrong[0]}.")
    places = [path.absolute() for path in paths.values()]
    if len(set(places)) < len(places) or len({place.parent for place in places}) > 1:
        raise RunError("Runs computed together need folders of their own, all in the same parent folder.")
    if len(places) > 1 and not all(NAME.fullmatch(place.name) for place in places):
        raise RunError("Folders of runs computed together have names of letters, digits, spaces and _ . - only.")
    return paths


def _write_environment(folders: Sequence[RunFolder]) -> None:
    for folder in folders:
        write_sealed(folder.environment, {"format": ENVIRONMENT_FORMAT, **environment()})
