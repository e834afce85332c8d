"""Simulators as bytes for other processes. Apart from the rest because workers, who only unpack, start faster so."""

import contextlib
import io
import pickle
import sys
import types
from typing import Any

import cloudpickle

from vqelites.evaluation.base import EvaluatorError
from vqelites.evaluation.simulator import Simulator


def packed(simulator: Simulator) -> bytes:
    """The simulator, by name where other processes can import it, otherwise by value.

    What a script defines is sent by value: what stands below its `if __name__ == "__main__"` workers would not find.
    """
    try:
        return _dumped(_ByName, simulator)
    except (pickle.PicklingError, AttributeError, TypeError):
        pass
    try:
        return _dumped(_ByValue, simulator)
    except Exception as error:
        if hasattr(sys.modules["__main__"], "__file__"):  # a script, which workers import again; a notebook is none
            with contextlib.suppress(pickle.PicklingError, AttributeError, TypeError):
                return pickle.dumps(simulator)
        raise EvaluatorError(
            f"The simulator cannot be sent to worker processes: {error}. "
            "Define it in a module, or make what cannot be pickled when it is first used."
        ) from error


class _ByName(pickle.Pickler):
    """Refuses what comes from modules that are known in this process only."""

    def reducer_override(self, thing: Any) -> Any:
        home = _home(thing)
        if home is not None and (home == "__main__" or _only_here(home)):
            raise pickle.PicklingError(f"No other process can import {home}.")
        return NotImplemented


class _ByValue(cloudpickle.Pickler):
    """Sends along what comes from such modules."""

    def reducer_override(self, thing: Any) -> Any:
        home = _home(thing)
        if home in sys.modules and _only_here(home):
            cloudpickle.register_pickle_by_value(sys.modules[home])
        return super().reducer_override(thing)


def _dumped(pickler: type[pickle.Pickler], simulator: Simulator) -> bytes:
    buffer = io.BytesIO()
    pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(simulator)
    return buffer.getvalue()


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
