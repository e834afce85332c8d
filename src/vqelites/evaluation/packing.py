"""Simulators as bytes for other processes. Apart from the rest because workers, who only unpack, start faster so."""

import contextlib
import functools
import importlib.metadata
import io
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any

import cloudpickle

from vqelites.evaluation.base import EvaluatorError
from vqelites.evaluation.simulator import Packed, Simulator

Unknown = Callable[[str], bool]


def packed(simulator: Simulator, *, anywhere: bool = False) -> Packed:
    """The simulator, by name where the processes that get it can import it, otherwise by value.

    Those are processes on this machine, or `anywhere`: there only what is installed can be imported. What a script
    defines is sent by value: what stands below its `if __name__ == "__main__"` workers would not find.
    """
    unknown = not_installed if anywhere else _only_here
    try:
        return _dumped(_ByName, simulator, unknown)
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    try:
        return _dumped(_ByValue, simulator, unknown)
    except Exception as error:
        # A script is imported again by processes on this machine; a notebook is none.
        if not anywhere and hasattr(sys.modules["__main__"], "__file__"):
            with contextlib.suppress(pickle.PicklingError, AttributeError, TypeError):
                return Packed(pickle.dumps(simulator), simulator.batch)
        raise EvaluatorError(
            f"The simulator cannot be sent to worker processes: {error}. "
            "Define it in a module, or make what cannot be pickled when it is first used."
        ) from error


class _ByName(pickle.Pickler):
    """Refuses what comes from modules that the receiver cannot import."""

    unknown: Unknown

    def reducer_override(self, thing: Any) -> Any:
        home = _home(thing)
        if home is not None and (home == "__main__" or self.unknown(home)):
            raise pickle.PicklingError(f"No other process can import {home}.")
        return NotImplemented


class _ByValue(cloudpickle.Pickler):
    """Sends along what comes from such modules."""

    unknown: Unknown

    def reducer_override(self, thing: Any) -> Any:
        home = _home(thing)
        if home in sys.modules and self.unknown(home):
            cloudpickle.register_pickle_by_value(sys.modules[home])
        return super().reducer_override(thing)


def _dumped(kind: type[_ByName] | type[_ByValue], simulator: Simulator, unknown: Unknown) -> Packed:
    buffer = io.BytesIO()
    pickler = kind(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.unknown = unknown
    pickler.dump(simulator)
    return Packed(buffer.getvalue(), simulator.batch)


def _home(thing: Any) -> str | None:
    """The module that a function or class would be looked up in, or that this is."""
    if isinstance(thing, types.ModuleType):
        return thing.__name__
    return thing.__module__ if isinstance(thing, type | types.FunctionType) else None


def _only_here(module: str) -> bool:
    """Whether it was loaded from a file of its own, say, so that importing it by name finds nothing elsewhere.

    Only its package is looked for: compiled packages make submodules that no finder knows.
    """
    package = module.partition(".")[0]
    return package != "__main__" and not any(finder.find_spec(package, None) for finder in sys.meta_path)


def not_installed(module: str) -> bool:
    """Whether it is somebody's own file: neither Python's nor of an installed package."""
    package = module.partition(".")[0]
    return package not in {"__main__", *sys.stdlib_module_names} and package not in _installed()


@functools.cache
def _installed() -> frozenset[str]:
    return frozenset(importlib.metadata.packages_distributions())
