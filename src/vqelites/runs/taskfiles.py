"""Tasks of users: Python files that register them. Only files named by the user are ever executed."""

import hashlib
import importlib.util
import sys
import traceback
from pathlib import Path
from typing import Any

from vqelites.runs.files import RunError
from vqelites.tasks import Interface, SimulatorTask, Task, own_interface, registry, simulator_task
from vqelites.tasks.extras import MissingExtraError

ASK_TELL = "ask-tell"  # what evaluates the solutions of a saved ask/tell loop, of which nothing is known
_LOADED: set[Path] = set()
_NAMES: list[str] = []  # that task files have registered


def load_task_file(path: Path) -> None:
    """Execute a file that calls `vqelites.tasks.registry.register`, once per process.

    It may import the modules next to it, as a script may; those that are installed come first.
    """
    place = path.resolve()
    if place in _LOADED:
        return
    if not place.is_file():
        raise RunError(f"There is no task file {path}.")
    # A module of its own for every file, named after its place: names that are counted could be taken.
    name = f"vqelites_task_file_{hashlib.sha256(str(place).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, place)
    if spec is None or spec.loader is None:
        raise RunError(f"The task file {path} is not a Python file: its name must end in .py.")
    before = registry.names()
    if str(place.parent) not in sys.path:
        sys.path.append(str(place.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look up the types of their fields
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        raise RunError(f"The task file {path} fails{_line(error, place)}: {type(error).__name__}: {error}") from error
    _LOADED.add(place)
    _NAMES.extend(name for name in registry.names() if name not in before)


def _line(error: Exception, place: Path) -> str:
    """Where in that file."""
    if isinstance(error, SyntaxError):
        return f" in line {error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(place)]
    return f" in line {lines[-1]}" if lines else ""


def make_task(name: str, interface: Interface | None = None) -> Task:
    """The task of that name; a run folder never says where its code is.

    What a run knows of the interface of its simulator takes the place of what that says itself. A simulator that is not
    known here still has an interface: such a run can be looked at, but nothing can be evaluated.
    """
    try:
        task = registry.make(name)
    except ValueError as error:
        own = "" if isinstance(error, MissingExtraError) else " If it is your own, pass its file with --task-file."
        if interface is None:
            raise RunError(f"{error}{own}") from error
        if name == ASK_TELL and len(_NAMES) == 1:  # it has no name of its own
            return make_task(_NAMES[0], interface)
        return SimulatorTask(MissingSimulator(name, f"{error}{own}" if registry.family(name) else None), interface)
    if interface is None or not isinstance(task, SimulatorTask):
        return task
    return task.with_interface(interface)


def given_again(simulate: Any, batch: bool) -> SimulatorTask | None:
    """A simulator that is given for a run that knows its interface, or none."""
    if simulate is None:
        return None
    return simulator_task(simulate, batch, **({} if own_interface(simulate) else {"solution_dim": 1}))


class MissingSimulator:
    """Stands for a simulator that is not known here."""

    def __init__(self, name: str, reason: str | None):
        self.name, self.reason = name, reason  # why it cannot be made, if it is not a task of a user

    @property
    def why(self) -> str:
        """What is missing, in a sentence."""
        if self.name == ASK_TELL:
            found = f"; {', '.join(_NAMES)} are" if _NAMES else ""
            return f"Pass a --task-file with one simulator, or the simulator itself in Python{found}."
        if self.reason is not None:
            return f"{self.name} cannot be simulated here: {self.reason}"
        return (
            f"The simulator {self.name!r} is not known here: pass its file with --task-file or, in Python, the "
            "simulator itself: `Run.load(folder, simulate)`."
        )

    def simulate(self, solution: Any, seed: Any) -> Any:
        """Say so."""
        raise RunError(self.why)

    def render(self, solution: Any, seed: Any) -> Any:
        """Say so too."""
        return self.simulate(solution, seed)
