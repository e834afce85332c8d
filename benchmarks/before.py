"""This version next to another one, in processes of their own whose turns alternate.

    git worktree add ../before 544d092
    python benchmarks/before.py ../before [start] [iterations] [gradients] [frames]

start: from the command to iteration 10 of `arm`, nothing compiled before, and once more. iterations: of `arm`, preset
`paper`, and of `mobile-free`, preset `quick`. gradients: of the paper's mobile networks, for a minibatch of 64 images.
frames: what a user of ask/tell waits for, the first and the later trainings on images of 64x64x3.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent.parent
ITERATIONS = """
import sys, time, jax, jax.numpy as jnp
from vqelites.drive import Compiled
from vqelites.experiments.build import build
from vqelites.experiments.presets import settings
from vqelites.tasks import registry
name, algorithm, preset = sys.argv[1:]
task = registry.make(name)
run = Compiled(build(task, settings(name, algorithm, preset)), task)
state, _ = run.begin(jnp.arange(1))
state, _ = jax.block_until_ready(run.advance(state, 0, 10))
first = 10
print("ready", flush=True)
for _ in sys.stdin:
    clock, cores = time.perf_counter(), time.process_time()
    state, _ = jax.block_until_ready(run.advance(state, first, 10))
    print((time.perf_counter() - clock) / 10, (time.process_time() - cores) / 10, flush=True)
    first += 10
"""
GRADIENTS = """
import sys, time, equinox as eqx, jax, jax.numpy as jnp
from vqelites.descriptors.networks import networks
pair = networks("mobile", (64, 64, 1), 2, jax.random.key(0))
images = jax.random.uniform(jax.random.key(1), (64, 64, 64, 1))
def loss(pair, images):
    latent, _ = pair[0].train(images, jax.random.key(0))
    restored, _ = pair[1].train(jnp.tanh(latent), jax.random.key(0))
    return jnp.square(restored - images).mean()
gradient = eqx.filter_jit(eqx.filter_grad(loss))
jax.block_until_ready(gradient(pair, images))
print("ready", flush=True)
for _ in sys.stdin:
    start = time.perf_counter()
    jax.block_until_ready(gradient(pair, images))
    print(time.perf_counter() - start, flush=True)
"""
FRAMES = """
import sys, time, numpy as np, warnings
warnings.simplefilter("ignore")
from vqelites import VQElites
print("ready", flush=True)
dice = np.random.default_rng(0)
def frames(solutions):
    images = np.zeros((len(solutions), 64, 64, 3), np.uint8)
    for image, (x, y) in zip(images, (28 * (np.clip(solutions[:, :2], -1, 1) + 1)).astype(int)):
        image[x : x + 8, y : y + 8] = 255
    return -np.square(solutions).sum(axis=1), images
qd = VQElites(solution_dim=4, behavior_shape=(64, 64, 3), cells=300, bounded=True, iterations=100)
rounds = 10  # of the bootstrap; then five between trainings
for _ in sys.stdin:
    longest = 0.0  # the tell that trains takes longest
    for _ in range(rounds):
        fitness, images = frames(qd.ask(128))
        start = time.perf_counter()
        qd.tell(fitness, images)
        longest = max(longest, time.perf_counter() - start)
    rounds = 5
    print(longest, flush=True)
"""


def turns(program: str, sources: dict[str, Path], count: int, *arguments: str) -> dict[str, list[tuple[float, ...]]]:
    """The numbers that each version says in its turns."""
    workers = {
        name: subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            env=os.environ | {"PYTHONPATH": str(source / "src")},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for name, source in sources.items()
    }  # fmt: skip
    for worker in workers.values():
        assert worker.stdout.readline() == "ready\n"
    said = {name: [] for name in workers}
    for _ in range(count):
        for name, worker in workers.items():
            worker.stdin.write("\n")
            worker.stdin.flush()
            said[name].append(tuple(map(float, worker.stdout.readline().split())))
    for worker in workers.values():
        worker.stdin.close()
        worker.wait()
    return said


def compared(what: str, before: float, now: float) -> None:
    """Print one row."""
    print(f"{what:<62} before {before:8.3f} s  now {now:8.3f} s  now/before {now / before:.2f}", flush=True)


def start(sources: dict[str, Path]) -> None:
    """The whole command, in turns: by the clock, and seconds of a core, which other work changes less."""
    command = "import sys; from vqelites.cli import main; main(sys.argv[1:])"
    asked = ["run", "arm", "--iterations", "10", "--overwrite", "--quiet", "--no-draw", "--out"]
    with tempfile.TemporaryDirectory() as folder:
        for what in ("start, nothing compiled before", "start, a second time"):
            clock, cores = {}, {}
            for name, source in sources.items():
                environment = os.environ | {"PYTHONPATH": str(source / "src"), "XDG_CACHE_HOME": folder}
                began = time.monotonic()
                process = subprocess.Popen(
                    [sys.executable, "-W", "ignore", "-c", command, *asked, str(Path(folder) / name)], env=environment
                )
                _, status, used = os.wait4(process.pid, 0)
                assert status == 0
                clock[name], cores[name] = time.monotonic() - began, used.ru_utime + used.ru_stime
            compared(f"{what}, clock", **clock)
            compared(f"{what}, seconds of a core", **cores)


def iterations(sources: dict[str, Path]) -> None:
    """Ten iterations at a time, by the clock and in seconds of a core, which other work changes less."""
    arm, mobile = ("arm", "vq-elites", "paper"), ("mobile-free", "vq-elites", "quick")
    for what in (("arm", "map-elites", "paper"), arm, mobile):
        said = turns(ITERATIONS, sources, 15, *what)
        for i, unit in enumerate(("clock", "seconds of a core")):
            medians = {name: statistics.median(turn[i] for turn in said[name]) for name in said}
            compared(f"iteration of {', '.join(what)}, {unit}", **medians)


def gradients(sources: dict[str, Path]) -> None:
    """The fastest of some turns."""
    said = turns(GRADIENTS, sources, 12)
    compared("gradient of the mobile networks", **{name: min(values)[0] for name, values in said.items()})


def frames(sources: dict[str, Path]) -> None:
    """The first training, the second one, which may be compiled anew, and later ones."""
    said = turns(FRAMES, sources, 5)
    compared("first training on 1,280 frames", **{name: values[0][0] for name, values in said.items()})
    compared("the second training", **{name: values[1][0] for name, values in said.items()})
    later = {name: statistics.median(value for (value,) in values[2:]) for name, values in said.items()}
    compared("later trainings", **later)


if __name__ == "__main__":
    both = {"before": Path(sys.argv[1]).resolve(), "now": HERE}
    for name in sys.argv[2:] or ("start", "iterations", "gradients", "frames"):
        globals()[name](both)
