"""An ask/tell optimizer as a run folder, which `vqelites show`, `resume` and `report` read."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from vqelites.descriptors import chosen
from vqelites.drive import Position
from vqelites.experiments.build import Networks
from vqelites.optimizer.blueprint import Blueprint
from vqelites.optimizer.history import History
from vqelites.optimizer.now import Now
from vqelites.optimizer.pending import Pending
from vqelites.runs import checkpoints, contents, metrics_file
from vqelites.runs.checkpoints import SavePoint
from vqelites.runs.config import Config
from vqelites.runs.contents import Snapshot
from vqelites.runs.environment import environment
from vqelites.runs.files import DamagedError, RunError, write_sealed, write_whole
from vqelites.runs.folder import RunFolder, check_free, create, locked, open_folder
from vqelites.runs.recovery import newest, snapshot_iterations
from vqelites.runs.runner import ENVIRONMENT_FORMAT
from vqelites.runs.taskfiles import ASK_TELL


def save(now: Now, path: Path) -> None:
    """Write a checkpoint and all that goes with it; until it is complete, the one before stays good."""
    config = Config(
        ASK_TELL,
        now.blueprint.algorithm,
        "paper",
        now.blueprint.settings,
        interface=now.blueprint.interface,
        own_networks=now.blueprint.own is not None,
    )
    if not path.is_dir():
        check_free(path, overwrite=False)  # makes it, or says why that cannot be
    with locked([path]):
        folder = _opened(path, config, now.blueprint)
        for taken in now.snapshots:
            if not _holds(folder, taken):
                contents.save_snapshot(folder, taken)
        text = metrics_file.HEADER + metrics_file.lines(now.history.columns())
        write_whole(folder.metrics, text.encode())
        seen = chosen(now.host.qd.descriptor, now.state.descriptor)
        moment = SavePoint(
            save=checkpoints.next_save(folder, now.at.iteration),
            iteration=now.at.iteration,
            bootstrapping=now.at.bootstrapping,
            seconds=round(now.seconds, 3),
            rejected=now.rejected,
            metrics=metrics_file.mark_of(text.encode()),
            chosen=seen._asdict() if seen else None,
        )
        checkpoints.save(folder, now.state, moment, _extra(now))
        contents.save_archive(folder, now.host.qd, now.state, moment)
        checkpoints.forget_old(folder)


def _holds(folder: RunFolder, taken: Snapshot) -> bool:
    """Whether this snapshot is there, whole, and not that of an optimizer that was saved here before."""
    try:
        there = contents.load_snapshot(folder, taken.iteration)
    except DamagedError:
        return False
    return all(np.array_equal(getattr(there, name), getattr(taken, name)) for name in ("ids", "fitness", "descriptors"))


def _opened(path: Path, config: Config, blueprint: Blueprint) -> RunFolder:
    """The folder of the same optimizer, or a new one in an empty place."""
    if (path / "config.json").exists():
        folder = open_folder(path)
        if (folder.config, folder.seed) == (config, blueprint.seed):
            return folder
        untold = replace(blueprint.interface, truth_dim=None, eight_bit=None)
        if folder.config.interface != untold:  # saved before anything was told
            raise RunError(f"{path} holds another run; choose another folder, or remove it.")
    else:
        check_free(path, overwrite=False)
    folder = create(path, config, blueprint.seed, {}, blueprint.start)
    write_sealed(folder.environment, {"format": ENVIRONMENT_FORMAT, **environment()})
    return folder


def _extra(now: Now) -> dict[str, np.ndarray]:
    return {
        "pending_ids": now.pending.ids,
        "pending_solutions": now.pending.solutions,
        "open_ids": now.pending.open_ids,
        "pixels": np.array(sorted(now.pixels), np.str_),
        "recorded": np.array(now.recorded),
    }


def load(path: Path, own: Networks | None) -> Now:
    """Where a saved optimizer, or any run of a simulator, stood at its newest good checkpoint."""
    folder = open_folder(path)
    config = folder.config
    if config.interface is None:
        raise RunError(f"{path} is a run of a task in JAX, which has no ask/tell: continue it with `vqelites resume`.")
    if config.own_networks and own is None:
        raise ValueError(f"{path} was saved with own modules: load(folder, encoder=..., decoder=...).")
    blueprint = Blueprint(config.algorithm, config.settings, config.interface, folder.seed, folder.start(), own)
    moment = newest(folder)
    host = blueprint.host()
    state = checkpoints.restore(folder, moment, host.qd)
    extra = checkpoints.extra(folder, moment)
    table = metrics_file.read(folder.metrics, moment.metrics)
    rows = table.iloc[: moment.iteration + 1 - moment.bootstrapping]  # later ones were written, but not saved
    now = Now(
        blueprint,
        host,
        Position.of(state),
        Pending.nothing(host.qd.space.dim),
        rejected=moment.rejected,
        recorded=moment.rejected,
        history=History({name: rows[name].to_numpy() for name in metrics_file.COLUMNS}),
        seconds=moment.seconds,
        snapshots=tuple(contents.load_snapshot(folder, i) for i in snapshot_iterations(folder, moment.iteration)),
    )
    if not extra:  # saved by a run that evaluates by itself, between iterations
        return now
    if "open_ids" not in extra:  # by one that does not wait: what was under way is to be told by its ids
        return replace(now, pending=Pending(extra["pending_ids"], extra["pending_solutions"], np.zeros(0, np.int64)))
    return replace(
        now,
        pending=Pending(extra["pending_ids"], extra["pending_solutions"], extra["open_ids"]),
        recorded=int(extra["recorded"]),
        pixels=frozenset(extra["pixels"].tolist()),
    )
