"""Iterations, archives and training steps next to QDax, pyribs and PyTorch, in one process, their turns alternating.

AURORA's archives are in a process each, one after the other, since what is asked is also how much memory they take.

    python benchmarks/peers.py [iteration] [aurora] [insert] [training]

Run where `vqelites[bench]` is installed; `make bench` does. Each line says what is computed, and how many times as long
the peer takes.
"""

import functools
import inspect
import multiprocessing
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from archive import batches
from memory import peak
from qdax.core.containers import unstructured_repertoire
from qdax.core.emitters.mutation_operators import isoline_variation
from qdax.core.emitters.standard_emitters import MixingEmitter
from qdax.core.map_elites import MAPElites
from qdax.tasks.arm import arm_scoring_function
from qdax.utils.metrics import default_qd_metrics
from ribs.archives import CVTArchive
from sides import fastest, row, told

from vqelites import Effort, map_elites
from vqelites.archives.addition import Compete
from vqelites.archives.cells import CellArchive
from vqelites.archives.unstructured import UnstructuredArchive
from vqelites.descriptors.conv_norm_pool import ConvNormPool
from vqelites.descriptors.layers import Activation
from vqelites.descriptors.networks import networks
from vqelites.drive import Compiled
from vqelites.tasks import PlanarArm
from vqelites.types import Elites, Sizes

BATCH, STEPS, JOINTS = 128, 20, 10
IN_A_ROW = 5  # training steps
SLOTS, THRESHOLD, OFFERED = (1_500, 15_000), 0.1, 5  # of AURORA's archive; batches offered to it in a turn


def iteration() -> None:
    """MAP-Elites on a planar arm of 10 joints: choose, vary, evaluate and insert 128 solutions."""
    for k in (1_500, 15_000):
        cells = jax.random.uniform(jax.random.key(1), (k, 2))
        calls = {"vqelites": ours_on_the_arm(cells), "QDax": qdax_on_the_arm(cells)}
        row(f"MAP-Elites, planar arm, batch {BATCH}, {k} cells", calls, per=STEPS)


def ours_on_the_arm(cells: jax.Array) -> Callable[[], object]:
    """`STEPS` iterations of ours, from a state that is copied, since a chunk consumes its own."""
    task = PlanarArm(JOINTS, behavior="joints")
    low, high = task.truth_low[0], task.truth_high[0]
    run = Compiled(map_elites(task, cells=low + (high - low) * cells, effort=Effort(iterations=STEPS)), task)
    state, _ = run.begin(jnp.arange(1))
    return lambda: run.advance(jax.tree.map(jnp.copy, state), 0, STEPS)


def qdax_on_the_arm(cells: jax.Array) -> Callable[[], object]:
    """`STEPS` iterations of QDax."""
    vary = functools.partial(isoline_variation, iso_sigma=0.01, line_sigma=0.2)
    emitter = MixingEmitter(lambda x, y: (x, y), vary, variation_percentage=1.0, batch_size=BATCH)
    metrics = functools.partial(default_qd_metrics, qd_offset=0.0)
    algorithm = MAPElites(arm_scoring_function, emitter, metrics)
    first = jax.random.uniform(jax.random.key(0), (1280, JOINTS))
    key = jax.random.key(2)
    repertoire, emitter_state, _ = algorithm.init(first, cells, key)

    @jax.jit
    def steps(carry):
        return jax.lax.scan(algorithm.scan_update, carry, length=STEPS)

    return lambda: steps((repertoire, emitter_state, key))


@functools.cache
def mended_repertoire() -> type:
    """QDax's unstructured repertoire with one line of it mended.

    Fitness has shape (N, 1) there, and one more axis makes the mask of empty slots (N, 1, 1): with descriptors (N, d)
    it spreads to (N, N, d), which takes 27 GB at 1,500 slots.
    """
    wrong = "jnp.expand_dims((self.fitnesses == -jnp.inf), axis=-1)"
    kind = unstructured_repertoire.UnstructuredRepertoire
    source = textwrap.dedent(inspect.getsource(kind.add))
    if wrong not in source:
        raise SystemExit("This version of QDax is not the one whose repertoire needs mending.")
    scope = dict(vars(unstructured_repertoire))
    exec("from __future__ import annotations\n" + source.replace(wrong, "self.fitnesses == -jnp.inf"), scope)
    kind.add = scope["add"]
    return kind


def aurora() -> None:
    """AURORA's archive: some batches offered to it, and all its records added anew, as size control does."""
    for slots in SLOTS:
        found = {"vqelites": alone(our_slots, slots), "QDax": alone(qdax_slots, slots)}
        for field, (what, unit) in _COSTS.items():
            told(f"{slots} slots, {what}", {name: getattr(cost, field) for name, cost in found.items()}, unit)


class Costs(NamedTuple):
    """What one side takes."""

    offered: float  # milliseconds
    anew: float
    most: float  # megabytes beyond what was held when everything was imported


_COSTS = {
    "offered": (f"a batch of {BATCH} offered", "ms"),
    "anew": ("all records added anew", "ms"),
    "most": ("memory, at most", "MB"),
}


def alone(make: Callable[[int], "Slots"], slots: int) -> Costs:
    """One side in a process of its own, for its memory."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        return process.submit(costs, make, slots).result()


def costs(make: Callable[[int], "Slots"], slots: int) -> Costs:
    """Those of this process."""
    before, calls = peak(), make(slots)
    return Costs(fastest(calls.offered) / OFFERED, fastest(calls.anew), peak() - before)


class Slots(NamedTuple):
    """A full unstructured archive, or nearly so. Descriptors have 5 numbers, and the fitter one stays."""

    offered: Callable[[], object]  # some batches offered
    anew: Callable[[], object]  # all its records added anew


def our_slots(slots: int) -> Slots:
    """Ours."""
    data, some = random_records(slots)
    archive = UnstructuredArchive(capacity=slots, target=slots, initial=THRESHOLD)

    @jax.jit
    def offer(state, data):
        return jax.lax.scan(lambda s, batch: archive.insert(s, batch, Compete()), state, data)[0]

    state = offer(archive.init(Sizes(JOINTS, (0,), 5), None), data)
    anew = jax.jit(lambda state: archive.rebuild(state, [state.elites], None, None)[0])
    return Slots(compiled(offer, state, some), compiled(anew, state))


def qdax_slots(slots: int) -> Slots:
    """QDax's, mended, and full from the start: filling it batch by batch would take a minute, and changes no time."""
    data, some = random_records(slots)
    repertoire = mended_repertoire()

    @jax.jit
    def offer(held, data):
        add = lambda r, batch: (r.add(batch.solution, batch.descriptor, batch.fitness), None)  # noqa: E731
        return jax.lax.scan(add, held, data)[0]

    @jax.jit
    def anew(genotypes, fitnesses, descriptors):
        return repertoire.init(genotypes, fitnesses, descriptors, THRESHOLD, slots)

    columns = data.solution, data.fitness[..., None], data.descriptor
    records = [x.reshape(-1, x.shape[-1])[:slots] for x in columns]
    names = dict(zip(("genotypes", "fitnesses", "descriptors"), records, strict=True))
    threshold = jnp.full(slots, THRESHOLD)
    held = repertoire(**names, l_value=threshold, max_size=slots, extra_scores={}, keys_extra_scores=())
    return Slots(compiled(offer, held, some), compiled(anew, *records))


def compiled(function: Any, *arguments: Any) -> Callable[[], object]:
    """The function of these arguments, compiled."""
    program = function.lower(*arguments).compile()
    return lambda: program(*arguments)


def random_records(slots: int) -> tuple[Elites, Elites]:
    """Batches that fill so many slots, and the first few of them."""
    data = batches(5, steps=2 * slots // BATCH)
    return data, jax.tree.map(lambda x: x[:OFFERED], data)


def insert() -> None:
    """1,280 solutions into cells, next to pyribs; and how the cost grows with the cells."""
    times = {k: inserted(k) for k in (2_000, 20_000, 100_000)}
    print(f"from 2,000 to 20,000 cells an insert takes {times[20_000] / times[2_000]:.1f} times as long")


def inserted(k: int) -> float:
    """Milliseconds of ours. Both archives are changed in place, as in a run."""
    cells = jax.random.uniform(jax.random.key(1), (k, 2))
    data = jax.tree.map(lambda x: x[0], batches(2, steps=1, rows=1280))
    archive = CellArchive(cells)
    insert = jax.jit(lambda state, batch: archive.insert(state, batch, Compete()), donate_argnums=0)
    states = [jax.tree.map(jnp.copy, archive.init(Sizes(JOINTS, (0,), 2), None))]

    def offer() -> object:
        state, info = insert(states.pop(), data)
        states.append(state)
        return state, info

    peer = CVTArchive(solution_dim=JOINTS, centroids=np.asarray(cells), ranges=[(0, 1)] * 2, seed=0)
    rows = [np.asarray(x) for x in (data.solution, data.fitness, data.descriptor)]
    calls = {"vqelites": offer, "pyribs": lambda: peer.add(*rows)}
    return row(f"insert 1,280 into {k} cells", calls)["vqelites"]


def training() -> None:
    """A step of Adam on 64 images: the automatic networks (64x64x3 as they see it, and without a blur), the paper's."""
    for name, shape in (("auto", (16, 16, 3)), ("auto", (64, 64, 3)), ("mobile", (64, 64, 1))):
        pair = networks(name, shape, 2, jax.random.key(0))
        images = jax.random.uniform(jax.random.key(1), (64, *shape))
        calls = {"vqelites": our_step(pair, images)}
        for threads in (1, 2):  # beside other work one is faster
            for layout in ("contiguous_format", "channels_last"):
                step = torch_step(pair, np.asarray(images), getattr(torch, layout), threads)
                calls[f"PyTorch {layout} x{threads}"] = step
        row(f"training step, {name} networks, 64 x {shape}", calls, per=IN_A_ROW, turns=7)


def our_step(pair, images) -> Callable[[], object]:
    """Encode, decode, squared error, gradient, Adam; steps in a row are one program, as in our trainings."""
    adam = optax.adam(7e-4)
    begun, fixed = eqx.partition((pair, adam.init(eqx.filter(pair, eqx.is_inexact_array))), eqx.is_array)

    def loss(pair, images):
        latent, _ = pair[0].train(images, jax.random.key(0))
        restored, _ = pair[1].train(jnp.tanh(latent), jax.random.key(0))
        return jnp.square(restored - images).mean()

    @jax.jit
    def steps(begun, images):
        def step(_, now):
            pair, state = eqx.combine(now, fixed)
            updates, state = adam.update(eqx.filter_grad(loss)(pair, images), state)
            return eqx.filter((eqx.apply_updates(pair, updates), state), eqx.is_array)

        return jax.lax.fori_loop(0, IN_A_ROW, step, begun)

    return lambda: steps(begun, images)


def torch_step(pair, images: np.ndarray, layout, threads: int) -> Callable[[], object]:
    """The same networks in PyTorch."""
    encoder, decoder = ([torch_layer(part) for layer in network.layers for part in parts(layer)] for network in pair)
    network = torch.nn.Sequential(*encoder, torch.nn.Tanh(), *decoder)
    network = network.to(memory_format=layout)
    batch = torch.tensor(images).permute(0, 3, 1, 2).contiguous(memory_format=layout)
    adam = torch.optim.Adam(network.parameters(), 7e-4)

    def steps() -> None:
        torch.set_num_threads(threads)
        for _ in range(IN_A_ROW):
            adam.zero_grad()
            torch.nn.functional.mse_loss(network(batch), batch).backward()
            adam.step()

    return steps


def parts(layer) -> list:
    """A layer as layers that PyTorch has."""
    if isinstance(layer, ConvNormPool):
        return [layer.conv, layer.norm, Activation(layer.function), layer.pool]
    return [layer]


def torch_layer(layer):
    """The layer of PyTorch that does what a layer of ours does."""
    kind = type(layer).__name__
    if kind == "Linear":
        return torch.nn.Linear(*layer.weight.shape)
    if kind == "Conv":
        *kernel, inputs, outputs = layer.weight.shape
        return torch.nn.Conv2d(inputs, outputs, kernel, layer.stride, layer.padding)
    if kind == "ConvTranspose":
        *kernel, outputs, inputs = layer.weight.shape
        return torch.nn.ConvTranspose2d(inputs, outputs, kernel, layer.stride, layer.padding, layer.output_padding)
    if kind == "BatchNorm":
        return torch.nn.BatchNorm2d(layer.bias.shape[0])
    if kind == "MaxPool":
        return torch.nn.MaxPool2d(layer.kernel, layer.stride)
    if kind == "Reshape":
        return torch.nn.Flatten() if layer.shape == (-1,) else Unflatten(layer.shape)
    if kind == "Dropout":
        return torch.nn.Dropout(layer.rate)
    return torch.nn.GELU() if layer.function.__name__ == "gelu" else torch.nn.SiLU()


class Unflatten(torch.nn.Module):
    """From rows to images, channels first."""

    def __init__(self, shape: tuple[int, ...]):
        super().__init__()
        self.shape = (shape[-1], *shape[:-1])

    def forward(self, rows):
        return rows.reshape(-1, *self.shape)


if __name__ == "__main__":
    print(
        f"JAX {jax.__version__}, PyTorch {torch.__version__}, {jax.devices()[0].device_kind}; the fastest of many turns"
    )
    for name in sys.argv[1:] or ("iteration", "aurora", "insert", "training"):
        globals()[name]()
