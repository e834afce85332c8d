"""Runs over all devices of this process: several runs side by side, or the solutions of one."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Key

from vqelites.loop import QD
from vqelites.tasks.base import AbstractTask
from vqelites.types import Evaluation

_RUNS, _SOLUTIONS = "runs", "solutions"


class Shared(eqx.Module):
    """A task whose solutions are evaluated on several devices: each has its part, and all have all results."""

    task: AbstractTask
    parts: int = eqx.field(static=True)

    def evaluate(self, keys: Key[Array, "n"], solutions: Float[Array, "n s"]) -> Evaluation:
        """What n solutions do, n a multiple of the parts."""
        size = solutions.shape[0] // self.parts
        first = size * jax.lax.axis_index(_SOLUTIONS)
        mine = self.task.evaluate(*(jax.lax.dynamic_slice_in_dim(x, first, size) for x in (keys, solutions)))
        return jax.tree.map(lambda x: jax.lax.all_gather(x, _SOLUTIONS, tiled=True), mine)


def each(run: Callable[[AbstractTask | Shared, Any], Any], qd: QD, task: AbstractTask, runs: Any) -> Any:
    """What becomes of every run, all leaves of which have a leading axis (but for a single one: see `leading`).

    Several runs are divided among the devices; one that is left over is computed in vain, at no cost of time. Of a
    single run the solutions are: archive and model are computed on every device alike.
    """
    first = jax.tree.leaves(runs)[0]
    if not first.ndim:
        return run(task, runs)
    count, devices = first.shape[0], jax.local_device_count()
    if count > 1 and devices > 1:
        parts = min(count, devices)
        rows = jnp.arange(-(-count // parts) * parts) % count
        whole = jax.tree.map(lambda x: x[rows], runs)
        done = _mapped(functools.partial(run, task), parts, _RUNS, PartitionSpec(_RUNS), whole)
        return jax.tree.map(lambda x: x[:count], done)
    parts = max(part for part in range(1, devices + 1) if qd.batch_size % part == 0 and qd.bootstrap % part == 0)
    if parts > 1:
        return _mapped(functools.partial(run, Shared(task, parts)), parts, _SOLUTIONS, PartitionSpec(), runs)
    return _here(functools.partial(run, task), runs)


def leading(runs: int) -> tuple[int, ...]:
    """The leading axis of all leaves of so many runs.

    A single run on a single device has none while it advances: XLA copies what has one, where it could change it in
    place.
    """
    return () if runs == 1 and jax.local_device_count() == 1 else (runs,)


def bare(runs: Any) -> Any:
    """A single run without leading axis, in the same memory, if that is how it advances; else the runs as they are."""
    return runs if leading(jax.tree.leaves(runs)[0].shape[0]) else _squeezed(runs)


def grouped(runs: Any) -> Any:
    """The runs with their leading axis again, in the same memory."""
    return runs if jax.tree.leaves(runs)[0].ndim else _expanded(runs)


@functools.partial(jax.jit, donate_argnums=0)
def _squeezed(run: Any) -> Any:
    return jax.tree.map(lambda x: x[0], run)


@functools.partial(jax.jit, donate_argnums=0)
def _expanded(run: Any) -> Any:
    return jax.tree.map(lambda x: x[None], run)


def _mapped(run: Callable[[Any], Any], parts: int, axis: str, spec: PartitionSpec, runs: Any) -> Any:
    """On so many devices: the same program, each for its part of the runs, or for all of them."""
    mesh = Mesh(np.array(jax.local_devices()[:parts]), (axis,))
    program = functools.partial(_here, run)
    return jax.shard_map(program, mesh=mesh, in_specs=(spec,), out_specs=spec, check_vma=False)(runs)


def _here(run: Callable[[Any], Any], runs: Any) -> Any:
    """On one device: side by side on an accelerator, one after the other on a CPU.

    Side by side all branches are computed, whichever a run takes. That pays where small runs leave a device idle; on
    two CPU cores three runs of AURORA take up to half as long again, and a single one more than twice as long.
    """
    if side_by_side(jax.tree.leaves(runs)[0].shape[0]):
        return jax.vmap(run)(runs)
    return jax.lax.map(run, runs)


def side_by_side(runs: int) -> bool:
    """Whether this many runs are computed at the same time on one device: JAX's default backend decides."""
    return runs > 1 and jax.default_backend() != "cpu"
