"""Tasks of users: Python files that register them. Only files named by the user are ever executed."""

import importlib.util
import sys
import traceback
from pathlib import Path

from vqelites.runs.files import RunError

_LOADED: set[Path] = set()


def load_task_file(path: Path) -> None:
    """Execute a file that calls `vqelites.tasks.registry.register`, once per process."""
    place = path.resolve()
    if place in _LOADED:
        return
    if not place.is_file():
        raise RunError(f"There is no task file {path}.")
    spec = importlib.util.spec_from_file_location(f"vqelites_task_file_{len(_LOADED)}", place)
    if spec is None or spec.loader is None:
        raise RunError(f"The task file {path} is not a Python file: its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look up the types of their fields
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        raise RunError(f"The task file {path} fails{_line(error, place)}: {type(error).__name__}: {error}") from error
    _LOADED.add(place)


def _line(error: Exception, place: Path) -> str:
    """Where in that file."""
    if isinstance(error, SyntaxError):
        return f" in line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(place)]
    return f" in line {lines[-1]}" if lines else ""
