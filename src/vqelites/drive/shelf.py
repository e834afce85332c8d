"""Whole programs kept between processes: where the same was run before, nothing is traced or compiled again."""

import abc
import contextlib
import functools
import hashlib
import pickle
import uuid
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.experimental import serialize_executable

from vqelites.drive.compiling import OPTIONS
from vqelites.loop import State

_STATE = "state"  # stands for a state among what a program returns: what is static in it cannot be written to a file


class Program:
    """A function of trees that is compiled; `donated`: the memory of all arguments but the first is reused."""

    def __init__(self, function: Callable[..., Any], *, donated: bool = False):
        self.function, self.donated = function, donated
        options = OPTIONS | {"donate": "all-except-first" if donated else "none"}
        self.compiled: Any = eqx.filter_jit(function, **options)


class AbstractWorkshop(abc.ABC):
    """Where programs are made, when they are needed or ahead."""

    @abc.abstractmethod
    def run(self, program: Program, *arguments: Any) -> Any:
        """What the program returns."""

    @abc.abstractmethod
    def prepare(self, program: Program, *arguments: Any) -> Callable[[], Any]:
        """Begin to make the program for arguments that look like these. The rest may be called in any thread."""


class Workshop(AbstractWorkshop):
    """Compiles programs."""

    def run(self, program: Program, *arguments: Any) -> Any:
        """What the program returns."""
        return program.compiled(*arguments)

    def prepare(self, program: Program, *arguments: Any) -> Callable[[], Any]:
        """Begin to make the program for arguments that look like these. The rest may be called in any thread."""
        return program.compiled.lower(*arguments).compile


class Store(Protocol):
    """Where programs are kept by name: those of one algorithm, one task, one version of all code, one machine."""

    def get(self, name: str) -> bytes | None:
        """What was put there, unless it is gone or damaged."""

    def put(self, name: str, program: bytes) -> None:
        """Keep it, if that is possible."""


Ready = tuple[Callable[..., Any], Any]  # a program as a function of arrays, and the structure of what it returns


class _Place:
    """Where a program stands, or will. After an error, or Ctrl-C, it is still to be made."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.make: Callable[[], Ready] | None = None  # once somebody has begun
        self.ready: Ready | None = None

    def made(self) -> Ready:
        """The program."""
        with self.lock:
            if self.ready is None:
                assert self.make
                self.ready, self.make = self.make(), None
            return self.ready


class Shelf(AbstractWorkshop):
    """Programs of one algorithm and one task, each loaded from a store, or else compiled and put there."""

    def __init__(self, store: Store, like: Callable[[], State]):
        self._store, self._like = store, functools.cache(like)
        self._places: dict[str, _Place] = {}
        self._lock = Lock()

    def run(self, program: Program, *arguments: Any) -> Any:
        """What the program returns."""
        call, structure = self.prepare(program, *arguments)()
        return jax.tree.unflatten(structure, call(*_arrays(arguments)))

    def prepare(self, program: Program, *arguments: Any) -> Callable[[], Ready]:
        """Begin to make the program for arguments that look like these. The rest may be called in any thread."""
        name = _name(program.function, arguments)
        with self._lock:
            place = self._places.setdefault(name, _Place())
        with place.lock:  # whoever needs what another thread makes waits for it
            if place.ready is None and place.make is None:
                place.make = self._begun(name, program, arguments)
        return place.made

    def _begun(self, name: str, program: Program, arguments: tuple[Any, ...]) -> Callable[[], Ready]:
        kept = self._store.get(name)
        if kept is None:
            return self._traced(name, program, arguments)
        return lambda: self._loaded(kept) or self._traced(name, program, arguments)()

    def _loaded(self, kept: bytes) -> Ready | None:
        try:
            _find_lapack()
            executable, marks = pickle.loads(kept)
            return serialize_executable.deserialize_and_load(*executable), self._structure(marks)
        except Exception:  # of whichever library: what cannot be loaded is compiled
            return None

    def _traced(self, name: str, program: Program, arguments: tuple[Any, ...]) -> Callable[[], Ready]:
        """What compiles the program, and keeps it."""
        dynamic, fixed = eqx.partition(arguments, eqx.is_array)
        structure, first = jax.tree.structure(dynamic), len(jax.tree.leaves(dynamic[0]))
        marks = None

        def flat(*arrays: Any) -> list[Any]:
            nonlocal marks
            returned = program.function(*eqx.combine(jax.tree.unflatten(structure, arrays), fixed))
            marks = jax.tree.map(lambda x: _STATE if _is_state(x) else 0, returned, is_leaf=_is_state)
            return jax.tree.leaves(returned)

        # A name of its own: what JAX itself had kept could be run, but not be written to a file once more.
        flat.__name__ = f"{program.function.__name__}_{uuid.uuid4().hex}"
        arrays = _arrays(arguments)
        reused = tuple(range(first, len(arrays))) if program.donated else ()
        lowered = jax.jit(flat, donate_argnums=reused, **OPTIONS).lower(*arrays)

        def compiled() -> Ready:
            made = lowered.compile()
            Thread(target=self._keep, args=(name, made, marks)).start()  # nobody waits for that
            return made, self._structure(marks)

        return compiled

    def _keep(self, name: str, compiled: Any, marks: Any) -> None:
        with contextlib.suppress(Exception):  # of whichever library: what cannot be kept is compiled again
            self._store.put(name, pickle.dumps((serialize_executable.serialize(compiled), marks)))

    def _structure(self, marks: Any) -> Any:
        return jax.tree.structure(jax.tree.map(lambda mark: self._like() if mark == _STATE else mark, marks))


@functools.cache
def _find_lapack() -> None:
    """Have JAX look up the functions of LAPACK, as it does where one is lowered: without, programs crash there."""
    jax.jit(jnp.linalg.qr).lower(jax.ShapeDtypeStruct((1, 1), jnp.float32))


def _is_state(tree: Any) -> bool:
    return isinstance(tree, State)


def _arrays(arguments: tuple[Any, ...]) -> list[Any]:
    return [leaf for leaf in jax.tree.leaves(arguments) if eqx.is_array(leaf)]


def _name(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """The function's, with a checksum of the shapes and numbers of its arguments and of JAX's settings just now."""
    looks = [
        (leaf.shape, str(leaf.dtype), getattr(leaf, "weak_type", False)) if eqx.is_array(leaf) else leaf
        for leaf in jax.tree.leaves(arguments)
        if eqx.is_array(leaf) or isinstance(leaf, int | float)
    ]
    settings: Any = jax.config  # whose names are not declared
    flags = sorted((key, repr(value)) for key, value in settings.values.items())
    return f"{function.__name__.strip('_')}-{hashlib.sha256(repr((looks, flags)).encode()).hexdigest()[:32]}"
