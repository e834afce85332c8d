"""The run folder: what lies where in it, its configuration, and who may write to it. See docs/runs.md."""

import contextlib
import datetime
import importlib.metadata
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from vqelites.experiments.presets import algorithms, presets, settings
from vqelites.runs.config import Config, Evaluating, Saving
from vqelites.runs.files import DamagedError, RunError, explained, load_arrays, read_sealed, save_arrays, write_sealed
from vqelites.runs.records import from_json, to_json
from vqelites.tasks import Interface

try:
    import fcntl
except ImportError:  # Windows: nothing keeps two processes apart there
    fcntl = None  # type: ignore[assignment]

FORMAT = 3
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]*")
_FILES = (
    "config.json", "start.npz", "extensions.json", "environment.json", "metrics.csv", "archive.npz", "evaluated.npz",
    "log.txt",
)  # fmt: skip
_FOLDERS = ("checkpoints", "snapshots", "figures", "track")


@dataclass(frozen=True)
class RunFolder:
    """Where one run keeps its files, with what its config.json says. `group` names the folders of runs beside it."""

    path: Path
    config: Config
    seed: int
    group: Mapping[int, str]  # seed -> folder name beside this one; empty for a run alone
    identity: str  # checksum of config.json; every other file carries it
    ends: tuple[int, ...]  # the planned number of iterations, and those it was extended to
    given: int = 0  # solutions to start from

    @property
    def iterations(self) -> int:
        """After how many it is finished."""
        return self.ends[-1]

    @property
    def metrics(self) -> Path:
        """One row per iteration."""
        return self.path / "metrics.csv"

    @property
    def archive(self) -> Path:
        """The elites."""
        return self.path / "archive.npz"

    @property
    def checkpoints(self) -> Path:
        """Whole states to resume from."""
        return self.path / "checkpoints"

    @property
    def figures(self) -> Path:
        """Pictures."""
        return self.path / "figures"

    @property
    def environment(self) -> Path:
        """What the run was computed with."""
        return self.path / "environment.json"

    @property
    def evaluated(self) -> Path:
        """What the elites did when they were evaluated again."""
        return self.path / "evaluated.npz"

    @property
    def snapshots(self) -> Path:
        """Elites and codes at moments of the run."""
        return self.path / "snapshots"

    def snapshot(self, iteration: int) -> Path:
        """The snapshot after this iteration."""
        return self.snapshots / f"{iteration:06d}.npz"

    def start(self) -> np.ndarray | None:
        """The solutions (n, s) that the run was given to start from."""
        if not self.given:
            return None
        path = self.path / "start.npz"
        arrays, about = load_arrays(path)
        if about.get("config") != self.identity:
            raise DamagedError(f"{path} is foreign: it was not written by this run.")
        return arrays["solutions"]

    def extended(self, iterations: int) -> "RunFolder":
        """The same run, to go on to this iteration."""
        ends = (*self.ends, iterations)
        record = {"format": FORMAT, "config": self.identity, "ends": ends[1:]}
        write_sealed(self.path / "extensions.json", record)
        return replace(self, ends=ends)

    def log(self, text: str) -> None:
        """Add a line to log.txt; a full disk must not end a run here."""
        moment = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
        with contextlib.suppress(OSError), (self.path / "log.txt").open("a") as file:
            file.write(f"{moment} {text}\n")


def create(
    path: Path, config: Config, seed: int, group: Mapping[int, str], start: np.ndarray | None = None
) -> RunFolder:
    """Write config.json into a folder that `check_free` found fit; only now are old files removed."""
    with explained(str(path)):
        path.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            (path / name).unlink(missing_ok=True)
        for name in _FOLDERS:
            if (path / name).is_dir() and not (path / name).is_symlink():
                shutil.rmtree(path / name)
    record = {
        "format": FORMAT,
        "vqelites": importlib.metadata.version("vqelites"),
        "task": config.task,
        "algorithm": config.algorithm,
        "preset": config.preset,
        "seed": seed,
        "group": [{"seed": other, "folder": name} for other, name in group.items()],
        "settings": to_json(config.settings),
        "chunk": config.chunk,
        "saving": to_json(config.saving),
        "interface": None if config.interface is None else to_json(config.interface),
        "evaluating": to_json(config.evaluating),
        "own_networks": config.own_networks,
        "start": 0 if start is None else len(start),
    }
    write_sealed(path / "config.json", record)
    made = open_folder(path)
    if start is not None:
        save_arrays(path / "start.npz", {"solutions": start}, {"format": FORMAT, "config": made.identity})
    return made


def open_folder(path: Path) -> RunFolder:
    """A run folder with its configuration, checked."""
    if not path.is_dir():
        raise RunError(f"There is no folder {path}.")
    file = path / "config.json"
    if not file.exists() and not file.is_symlink():
        raise RunError(f"{path} is not a run folder: it has no config.json.")
    record = read_sealed(file, FORMAT, oldest=FORMAT)
    known: dict[str, tuple[type, ...]] = {
        "task": (str,), "algorithm": (str,), "preset": (str,), "seed": (int,), "group": (list,), "chunk": (int,),
        "own_networks": (bool,), "start": (int,),
    }  # fmt: skip
    for name, kinds in known.items():
        if not isinstance(record.get(name), kinds):
            raise RunError(f"{file}: {name} is missing or not of type {kinds[0].__name__}.")
    if record["algorithm"] not in algorithms() or record["preset"] not in presets():
        raise RunError(f"{file}: this version knows no {record['algorithm']!r} with preset {record['preset']!r}.")
    kind = type(settings(record["task"], record["algorithm"], record["preset"]))
    chosen = from_json(kind, record.get("settings"), f"{file}: settings")
    saving = from_json(Saving, record.get("saving"), f"{file}: saving")
    try:
        interface = record.get("interface")
        interface = None if interface is None else from_json(Interface, interface, f"{file}: interface")
        evaluating = from_json(Evaluating, record.get("evaluating"), f"{file}: evaluating")
        names = record["task"], record["algorithm"], record["preset"]
        config = Config(*names, chosen, record["chunk"], saving, interface, evaluating, record["own_networks"])
    except ValueError as error:
        raise RunError(f"{file}: {error}") from error
    ends = (config.iterations, *_extensions(path / "extensions.json", record["checksum"]))
    group = _group(record["group"], file)
    return RunFolder(path, config, record["seed"], group, record["checksum"], ends, record["start"])


def _extensions(file: Path, identity: str) -> list[int]:
    """The numbers of iterations a run was extended to."""
    if not file.exists():
        return []
    record = read_sealed(file, FORMAT, oldest=FORMAT)
    if record.get("config") != identity:
        raise DamagedError(f"{file} is foreign: it was not written by this run.")
    return [int(end) for end in record["ends"]]


def _group(entries: list[Any], file: Path) -> dict[int, str]:
    """Seeds and folder names of runs computed together; a name may not lead out of the parent folder."""
    group = {}
    for entry in entries:
        seed, name = (entry.get("seed"), entry.get("folder")) if isinstance(entry, dict) else (None, None)
        if not isinstance(seed, int) or not isinstance(name, str) or not NAME.fullmatch(name):
            raise RunError(f"{file}: {entry!r} names no folder beside this one; a plain folder name is expected.")
        group[seed] = name
    return group


def siblings(folder: RunFolder) -> list[RunFolder]:
    """All folders of the group this one belongs to, in the group's order; itself alone if it ran alone."""
    if not folder.group:
        return [folder]
    parent = folder.path.absolute().parent
    missing = [name for name in folder.group.values() if not (parent / name / "config.json").is_file()]
    if missing or folder.group.get(folder.seed) != folder.path.absolute().name:
        raise RunError(
            f"{folder.path} was computed together with other seeds, in folders {', '.join(folder.group.values())} "
            f"beside it, and can only be resumed with them. Missing in {parent}: {', '.join(missing) or 'none'}. "
            "Put all of them there under these names, or start a new run."
        )
    found = [open_folder(parent / name) for name in folder.group.values()]
    for seed, other in zip(folder.group, found, strict=True):
        if (other.config, other.seed, other.group) != (folder.config, seed, folder.group):
            raise RunError(f"{other.path} does not belong to the group of {folder.path}: its config.json differs.")
    return found


def check_free(path: Path, *, overwrite: bool, needed: int = 0) -> None:
    """Raise unless a run of about this many bytes can be written there; at most an empty folder is made."""
    if path.exists() and not path.is_dir():
        raise RunError(f"{path} is a file; choose another folder.")
    if path.is_dir() and not overwrite and not all(_is_leftover(entry.name) for entry in path.iterdir()):
        raise RunError(
            f"{path} exists and is not empty. Continue that run with `vqelites resume {path}`, choose another "
            "folder, or replace its run with `--overwrite` (overwrite=True)."
        )
    probe = path / ".probe.tmp"
    with explained(str(path)):
        path.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
        free = shutil.disk_usage(path).free
    if free < needed:
        raise RunError(
            f"{path}: the disk has {free / 1e6:.0f} MB left, but the run needs about {needed / 1e6:.0f} MB for "
            "its checkpoints. Free some space, or choose another folder."
        )


def _is_leftover(name: str) -> bool:
    """Whether a process that was killed while it wrote config.json may have left this."""
    return name == ".lock" or (name.startswith(".") and name.endswith(".tmp"))


@contextlib.contextmanager
def locked(paths: Iterable[Path]) -> Iterator[None]:
    """Keep other processes from writing to the same runs; the lock ends with the process, however that ends."""
    with contextlib.ExitStack() as stack:
        for path in paths:
            with explained(str(path)):
                file = stack.enter_context((path / ".lock").open("a"))
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    raise RunError(f"Another process is writing to {path}; wait for it, or stop it.") from error
        yield
