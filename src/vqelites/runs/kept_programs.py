"""Compiled programs are kept between processes, in the user's cache folder: the second run starts in seconds.

JAX keeps what it compiled, and finds it again by the program, which has to be traced for that: half of what a second
start takes. Programs of tasks that come with this package are therefore also kept whole, by all that they follow from.
"""

import contextlib
import functools
import hashlib
import importlib.metadata
import os
import platform
import zlib
from pathlib import Path
from typing import Any

import filelock
import jax
import platformdirs

import vqelites
from vqelites.experiments.config import Settings
from vqelites.tasks import registry

_BYTES = 500_000_000  # the programs used least recently give way
_WHOLE_BYTES = 100_000_000  # of programs kept whole
_WAIT = 10.0  # seconds for the lock, as JAX waits


def keep_programs() -> None:
    """Use JAX's persistent compilation cache, which several processes may share.

    Whoever has given JAX a cache folder, or switched its cache off, has decided already. Without a folder that can be
    written to, programs are compiled every time.
    """
    settings: Any = jax.config  # whose names are not declared
    if settings.jax_compilation_cache_dir is not None or not settings.jax_enable_compilation_cache:
        return
    folder = _folder()
    with contextlib.suppress(OSError, NotImplementedError, filelock.Timeout):  # the second: no locks there
        folder.mkdir(parents=True, exist_ok=True)
        _drop_torn(folder)
        settings.update("jax_compilation_cache_dir", str(folder))
        settings.update("jax_compilation_cache_max_size", _BYTES)
        settings.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def _folder() -> Path:
    return platformdirs.user_cache_path("vqelites") / "programs"


def _drop_torn(folder: Path) -> None:
    """Remove what a process that was killed left half written: JAX writes the time of last use after the program."""
    with filelock.FileLock(folder / ".lockfile", timeout=_WAIT):
        for program in folder.glob("*-cache"):
            if not program.with_name(program.name.removesuffix("-cache") + "-atime").exists():
                program.unlink()


class KeptWhole:
    """Programs kept whole in a folder, each in a file that begins with its checksum."""

    def __init__(self, folder: Path, identity: str):
        self.folder, self.identity = folder, identity

    def get(self, name: str) -> bytes | None:
        """What was put there, unless it is gone or damaged."""
        path = self._path(name)
        with contextlib.suppress(OSError, zlib.error):
            sealed = path.read_bytes()
            if hashlib.sha256(sealed[32:]).digest() == sealed[:32]:
                with contextlib.suppress(OSError):  # a folder that others fill
                    os.utime(path)
                return zlib.decompress(sealed[32:])
        return None

    def put(self, name: str, program: bytes) -> None:
        """Keep it, if that is possible; those used least recently give way."""
        packed = zlib.compress(program, 1)
        path = self._path(name)
        fresh = path.with_suffix(f".{os.getpid()}.tmp")
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            fresh.write_bytes(hashlib.sha256(packed).digest() + packed)
            fresh.replace(path)
            self._give_way()

    def _path(self, name: str) -> Path:
        return self.folder / f"{self.identity}-{name}"

    def _give_way(self) -> None:
        files = sorted(((file.stat(), file) for file in self.folder.iterdir()), key=lambda pair: pair[0].st_mtime)
        excess = sum(about.st_size for about, _ in files) - _WHOLE_BYTES
        for about, file in files:
            if excess <= 0:
                break
            file.unlink(missing_ok=True)
            excess -= about.st_size


def kept_whole(name: str, settings: Settings) -> KeptWhole | None:
    """Where programs of this task and these settings are kept whole; None where that is not known to be safe.

    It is for one CPU, and for tasks that come with this package: nobody knows when those of others change.
    """
    config: Any = jax.config
    ours = config.jax_compilation_cache_dir == str(_folder()) and registry.built_in(name)
    if not ours or jax.default_backend() != "cpu" or jax.local_device_count() > 1:
        return None
    around = _surroundings()
    if around is None:
        return None
    follows_from = repr((name, settings, os.environ.get("XLA_FLAGS"), around))
    return KeptWhole(_folder().with_name("whole"), hashlib.sha256(follows_from.encode()).hexdigest()[:32])


@functools.cache
def _surroundings() -> tuple[str, ...] | None:
    """What else a compiled program depends on: this package's files, versions, the processor.

    None if files may not be those that were imported, or cannot be read.
    """
    files = hashlib.sha256()
    root = Path(vqelites.__file__).parent
    try:
        for file in sorted(root.rglob("*")):
            if "__pycache__" in file.parts or not file.is_file():
                continue
            if file.stat().st_mtime > vqelites.IMPORTED:
                return None
            files.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes())
        versions = [importlib.metadata.version(package) for package in ("jax", "jaxlib", "equinox", "optax", "numpy")]
    except (OSError, importlib.metadata.PackageNotFoundError):
        return None
    processor = []
    with contextlib.suppress(OSError):
        described = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
        processor = [line for line in described.splitlines() if line.startswith(("model name", "flags", "Features"))]
    machine = platform.python_version(), platform.machine(), platform.node()
    return files.hexdigest(), *versions, *processor, *machine
