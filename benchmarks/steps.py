"""Training steps of the paper's mobile model: 100 minibatches of 64 images, of one seed and of ten at once.

    python benchmarks/steps.py [profile]

As the package has the networks, and with one layer for each of the paper's table; then how far the gradients of both
are apart. `profile` also lists the kernels of a GPU that take longest. On a CPU: 5 steps of one seed.
"""

import collections
import functools
import glob
import gzip
import json
import sys
import tempfile
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from vqelites.descriptors import VQVAE
from vqelites.descriptors.conv_norm_pool import ConvNormPool
from vqelites.descriptors.layers import Activation, Sequential
from vqelites.descriptors.training import Training

SHAPE, BATCH, STEPS, SEEDS = (64, 64, 1), 64, 100, 10


def model(parted: bool):
    """The paper's descriptor, and its state."""
    descriptor = VQVAE(SHAPE, 2, 2000, networks="mobile", codebook="random", training=Training(batch=BATCH))
    state = descriptor.init(jax.random.key(0)).model
    if parted:
        state = eqx.tree_at(lambda s: s.coder.encoder, state, layer_by_layer(state.coder.encoder))
    return descriptor, state


def layer_by_layer(network):
    """The network with convolution, BatchNorm, activation and pooling as layers of their own."""
    layers = []
    for layer in network.layers:
        if isinstance(layer, ConvNormPool):
            layers += [layer.conv, layer.norm, Activation(layer.function), layer.pool]
        else:
            layers.append(layer)
    return Sequential(tuple(layers))


ADAM = optax.scale_by_adam()


def steps(descriptor, state, images, count):
    """Some steps of Adam."""

    def loss(state, key):
        terms, state = descriptor.losses(state, images, key)
        return terms.loss.mean(), state

    def step(i, carry):
        state, adam = carry
        gradient, state = eqx.filter_grad(loss, has_aux=True)(state, jax.random.fold_in(jax.random.key(1), i))
        updates, adam = ADAM.update(gradient, adam)
        return eqx.apply_updates(state, jax.tree.map(lambda u: -7e-4 * u, updates)), adam

    return jax.lax.fori_loop(0, count, step, (state, ADAM.init(eqx.filter(state, eqx.is_inexact_array))))[0]


def timed(name, seeds, parted=False, count=STEPS, profile=False):
    """Milliseconds for so many steps, once compiled."""
    descriptor, state = model(parted)
    images = jax.random.uniform(jax.random.key(2), (seeds, BATCH, *SHAPE))
    states = jax.tree.map(lambda x: jnp.broadcast_to(x[None], (seeds, *x.shape)), state)
    run = functools.partial(steps, descriptor, count=count)
    run, states, images = (jax.vmap(run), states, images) if seeds > 1 else (run, state, images[0])
    began = time.perf_counter()
    compiled = jax.jit(run).lower(states, images).compile()
    compiling = time.perf_counter() - began
    kernels = sum(" fusion(" in line or " custom-call(" in line for line in compiled.as_text().splitlines())
    spent = []
    for _ in range(4):
        began = time.perf_counter()
        jax.block_until_ready(compiled(states, images))
        spent.append(time.perf_counter() - began)
    print(
        f"{name:<34} {seeds:2} seeds, {count} steps: {1e3 * min(spent[1:]):8.1f} ms"
        f"   (compiled in {compiling:.1f} s, {kernels} fusions and calls)",
        flush=True,
    )
    if profile:
        show_kernels(lambda: jax.block_until_ready(compiled(states, images)), count)


def show_kernels(call, count):
    """Which kernels take longest, per step."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            call()
        (path,) = glob.glob(f"{folder}/**/*.trace.json.gz", recursive=True)
        with gzip.open(path) as file:
            events = json.load(file)["traceEvents"]
    names = {e["pid"]: e["args"].get("name", "") for e in events if e.get("name") == "process_name"}
    spent, times = collections.Counter(), collections.Counter()
    threads = {(e["pid"], e["tid"]): e["args"].get("name", "") for e in events if e.get("name") == "thread_name"}
    for e in events:
        track = threads.get((e.get("pid"), e.get("tid")), "")
        if e.get("ph") == "X" and "GPU" in names.get(e["pid"], "") and "Stream" in track:
            spent[e["name"]] += e["dur"]
            times[e["name"]] += 1
    print(f"  {sum(times.values()) / count:.0f} kernels per step, {sum(spent.values()) / count:.0f} us in kernels")
    for name, total in spent.most_common(45):
        print(f"  {total / count:8.1f} us  {times[name] / count:6.2f} x  {name[:110]}", flush=True)


def check():
    """The gradients of both networks, compared."""
    images = jax.random.uniform(jax.random.key(2), (BATCH, *SHAPE))
    for exact in (True, False):
        gradients = []
        for parted in (False, True):
            descriptor, state = model(parted)

            def loss(state, descriptor=descriptor):
                return descriptor.losses(state, images, jax.random.key(1))[0].loss.mean()

            with jax.default_matmul_precision("float32" if exact else "default"):
                gradients.append(eqx.filter_jit(eqx.filter_grad(loss))(state))
        size = jnp.sqrt(sum(jnp.square(b).sum() for b in jax.tree.leaves(gradients[1])))
        apart = [jnp.linalg.norm((a - b).ravel()) for a, b in zip(*map(jax.tree.leaves, gradients), strict=True)]
        worst = float(max(apart) / size)
        print(f"gradients differ by at most a share of {worst:.1e} ({'float32' if exact else 'default precision'})")


if __name__ == "__main__":
    print(f"JAX {jax.__version__}, {jax.devices()[0].device_kind}", flush=True)
    profile = "profile" in sys.argv
    count = STEPS if jax.default_backend() != "cpu" else 5
    many = (1, SEEDS) if jax.default_backend() != "cpu" else (1,)
    for parted in (False, True):
        for seeds in many:
            name = "layer by layer" if parted else "as it is"
            timed(name, seeds, parted, count, profile and not parted)
    check()
