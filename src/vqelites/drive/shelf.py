"""Whole programs kept between processes: where the same was run before, nothing is traced or compiled again."""

import abc
import contextlib
import functools
import hashlib
import pickle
import uuid
from collections import defaultdict
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import serialize_executable

from vqelites.loop import State

_TRACING = Lock()  # one program after the other: threads would only get into each other's way
_STATE = "state"  # stands for a state among what a program returns: what is static in it cannot be written to a file


class Program:
    """A function of trees that is compiled; `donated`: the memory of all arguments but the first is reused."""

    def __init__(self, function: Callable[..., Any], *, donated: bool = False):
        self.function, self.donated = function, donated
        self.compiled: Any = eqx.filter_jit(function, donate="all-except-first" if donated else "none")


class AbstractWorkshop(abc.ABC):
    """Where programs are made, when they are needed or ahead."""

    @abc.abstractmethod
    def run(self, program: Program, *arguments: Any) -> Any:
        """What the program returns."""

    @abc.abstractmethod
    def prepare(self, program: Program, *arguments: Any) -> None:
        """Have the program ready for arguments that look like these."""


class Workshop(AbstractWorkshop):
    """Compiles programs."""

    def run(self, program: Program, *arguments: Any) -> Any:
        """What the program returns."""
        return program.compiled(*arguments)

    def prepare(self, program: Program, *arguments: Any) -> None:
        """Have the program ready for arguments that look like these."""
        with _TRACING:
            lowered = program.compiled.lower(*arguments)
        lowered.compile()


class Store(Protocol):
    """Where programs are kept by name: those of one algorithm, one task, one version of all code, one machine."""

    def get(self, name: str) -> bytes | None:
        """What was put there, unless it is gone or damaged."""

    def put(self, name: str, program: bytes) -> None:
        """Keep it, if that is possible."""


class Shelf(AbstractWorkshop):
    """Programs of one algorithm and one task, each loaded from a store, or else compiled and put there."""

    def __init__(self, store: Store, like: Callable[[], State]):
        self._store, self._like = store, functools.cache(like)
        self._ready: dict[str, tuple[Callable[..., Any], Any]] = {}
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    def run(self, program: Program, *arguments: Any) -> Any:
        """What the program returns."""
        call, structure = self._found(program, arguments)
        return jax.tree.unflatten(structure, call(*_arrays(arguments)))

    def prepare(self, program: Program, *arguments: Any) -> None:
        """Have the program ready for arguments that look like these."""
        self._found(program, arguments)

    def _found(self, program: Program, arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], Any]:
        """The program as a function of all arrays among its arguments, and the structure of what it returns."""
        name = _name(program.function, arguments)
        with self._locks[name]:  # whoever needs what another thread compiles waits for it
            if name not in self._ready:
                self._ready[name] = self._kept(name) or self._made(name, program, arguments)
            return self._ready[name]

    def _kept(self, name: str) -> tuple[Callable[..., Any], Any] | None:
        found = self._store.get(name)
        if found is None:
            return None
        try:
            _find_lapack()
            executable, marks = pickle.loads(found)
            return serialize_executable.deserialize_and_load(*executable), self._structure(marks)
        except Exception:  # of whichever library: what cannot be loaded is compiled
            return None

    def _made(self, name: str, program: Program, arguments: tuple[Any, ...]) -> tuple[Callable[..., Any], Any]:
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
        with _TRACING:
            lowered = jax.jit(flat, donate_argnums=reused).lower(*arrays)
        compiled = lowered.compile()
        Thread(target=self._keep, args=(name, compiled, marks)).start()  # nobody waits for that
        return compiled, self._structure(marks)

    def _keep(self, name: str, compiled: Any, marks: Any) -> None:
        with contextlib.suppress(Exception):  # of whichever library: what cannot be kept is compiled again
            self._store.put(name, pickle.dumps((serialize_executable.serialize(compiled), marks)))

    def _structure(self, marks: Any) -> Any:
        return jax.tree.structure(jax.tree.map(lambda mark: self._like() if mark == _STATE else mark, marks))


@functools.cache
def _find_lapack() -> None:
    """Have JAX look up the functions of LAPACK, as it does when it lowers one; a program that calls them crashes else."""
    jax.jit(jnp.linalg.qr).lower(jax.ShapeDtypeStruct((1, 1), jnp.float32))


def _is_state(tree: Any) -> bool:
    return isinstance(tree, State)


def _arrays(arguments: tuple[Any, ...]) -> list[Any]:
    return [leaf for leaf in jax.tree.leaves(arguments) if eqx.is_array(leaf)]


def _name(function: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """The function's, with a checksum of the shapes and numbers of its arguments."""
    leaves = jax.tree.leaves(arguments)
    looks = [
        (leaf.shape, str(leaf.dtype), leaf.weak_type) if eqx.is_array(leaf) else leaf
        for leaf in leaves
        if eqx.is_array(leaf) or isinstance(leaf, int | float | np.generic)
    ]
    return f"{function.__name__.strip('_')}-{hashlib.sha256(repr(looks).encode()).hexdigest()[:32]}"
