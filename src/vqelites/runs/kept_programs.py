"""Compiled programs are kept between processes, in the user's cache folder: the second run starts in seconds."""

import contextlib
from pathlib import Path
from typing import Any

import filelock
import jax
import platformdirs

_BYTES = 500_000_000  # the programs used least recently give way
_WAIT = 10.0  # seconds for the lock, as JAX waits


def keep_programs() -> None:
    """Use JAX's persistent compilation cache, which several processes may share.

    Whoever has given JAX a cache folder, or switched its cache off, has decided already. Without a folder that can be
    written to, programs are compiled every time.
    """
    settings: Any = jax.config  # whose names are not declared
    if settings.jax_compilation_cache_dir is not None or not settings.jax_enable_compilation_cache:
        return
    folder = platformdirs.user_cache_path("vqelites") / "programs"
    with contextlib.suppress(OSError, filelock.Timeout):
        folder.mkdir(parents=True, exist_ok=True)
        _drop_torn(folder)
        settings.update("jax_compilation_cache_dir", str(folder))
        settings.update("jax_compilation_cache_max_size", _BYTES)
        settings.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def _drop_torn(folder: Path) -> None:
    """Remove what a process that was killed left half written: JAX writes the time of last use after the program."""
    with filelock.FileLock(folder / ".lockfile", timeout=_WAIT):
        for program in folder.glob("*-cache"):
            if not program.with_name(program.name.removesuffix("-cache") + "-atime").exists():
                program.unlink()
