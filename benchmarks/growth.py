"""The pieces that a run is made of, at sizes far beyond those of the paper: where does the time go?

    python benchmarks/growth.py [CELLS ...]

Ask and tell of the host, describing and inserting a batch, one training, rebuilding the archive after it, a checkpoint,
and the first codebook, with 2,000, 20,000 and 100,000 cells; and what the driver of a cluster does for each message
with 16,000 workers, which are made up here: they answer at once. docs/scale.md adds them up.
"""

import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from vqelites import Effort, checkpoint, vq_elites
from vqelites.archives.addition import Scheduled
from vqelites.descriptors import VQVAE
from vqelites.drive import Host, Position, Rows
from vqelites.drive.groups import positions, stacked
from vqelites.evaluation.base import Activity, Job, Result, Value
from vqelites.evaluation.dispatcher import Dispatcher
from vqelites.evaluation.station import Greeting, Report, versions
from vqelites.tasks import Interface, SimulatorTask
from vqelites.types import Elites

BATCH, SOLUTION, BEHAVIOR = 128, 100, (30,)
WORKERS = 16_000  # 1,000 nodes of 16 cores
FOUND = Value(0.0, np.zeros(BEHAVIOR, np.float32), np.zeros(0, np.float32))


def timed(call, repeats=5):
    """Milliseconds, the median; the first call compiles."""
    jax.block_until_ready(call())
    found = []
    for _ in range(repeats):
        began = time.monotonic()
        jax.block_until_ready(call())
        found.append(1000 * (time.monotonic() - began))
    return statistics.median(found)


def rows(count, first=0):
    """Evaluated solutions."""
    dice = np.random.default_rng(first)
    truth = np.zeros((count, 0), np.float32)
    solutions, fitness, behavior = (
        dice.normal(size=(count, *shape)).astype(np.float32) for shape in ((SOLUTION,), (), BEHAVIOR)
    )
    return Rows(np.arange(first, first + count), solutions, fitness, behavior, truth)


def pieces(cells):
    """Print what every piece takes with this many cells."""
    task = SimulatorTask(print, Interface(SOLUTION, behavior_shape=BEHAVIOR, truth_dim=0))
    effort = Effort(iterations=100, bootstrap=BATCH, bootstrap_epochs=1)
    qd = vq_elites(task, VQVAE(BEHAVIOR, 2, cells, codebook="random"), effort=effort)
    host = Host(qd, beside=True)
    at, _ = host.tell(host.begin(0), rows(BATCH))
    at, *_ = host.adopt(at, host.train(at))
    for i in range(1, 6):
        at, _ = host.tell(at, rows(BATCH, i * BATCH))
    some, lesson = rows(BATCH, 10 * BATCH), host.train(at)
    state = jax.device_get(at.state)
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(state)) / 1e6
    print(f"{cells} cells, batches of {BATCH}, {SOLUTION} parameters, a state of {size:.0f} MB:", flush=True)
    told("ask", lambda: host.ask(at, BATCH)[0].leaves)
    told("tell in ask/tell", lambda: host.tell(at, some)[0].leaves)
    told("tell in a run", telling(host, at, some))
    told("a chunk begins and ends", chunk(at))
    told("describe", lambda: described(qd, at.state.descriptor, jnp.asarray(some.behavior)))
    offers, rule = offered(qd, at.state, some), Scheduled(qd.addition, jnp.asarray(False))
    told("insert", lambda: inserted(qd, at.state.archive, offers, rule))
    told("train", lambda: host.train(at), 2)
    told("adopt", lambda: host.adopt(at, lesson)[0].leaves, 2)
    with tempfile.TemporaryDirectory() as folder:
        numbers = iter(range(10))
        told("checkpoint", lambda: checkpoint.save(Path(folder) / f"state-{next(numbers)}", state), 2)


def telling(host, at, some):
    """A batch told as runs do, where nobody needs the position before it again."""
    now = [Position.of(jax.tree.map(jnp.copy, at.state))]

    def tell():
        now[0], _ = host.tell(now[0], some, in_place=True)
        return now[0].leaves

    return tell


def chunk(at):
    """What a run copies for every chunk of iterations."""
    whole = stacked([at.state])
    return lambda: stacked([one.state for one in positions(whole)])


def told(name, call, repeats=5):
    """Print what a piece takes."""
    print(f"  {name} {timed(call, repeats):.1f} ms", flush=True)


@eqx.filter_jit
def described(qd, state, behavior):
    """Where behavior belongs."""
    return qd.descriptor.describe(state, behavior, jnp.zeros((behavior.shape[0], 0)))


def offered(qd, state, some):
    """A batch as the archive is offered it."""
    where = described(qd, state.descriptor, jnp.asarray(some.behavior))
    present = jnp.ones(len(some.ids), bool)
    return Elites(
        *map(jnp.asarray, (some.ids, some.solutions, some.fitness, some.behavior, where, some.truth)), present
    )


@eqx.filter_jit
def inserted(qd, archive, offers, rule):
    """The archive after a batch, and what became of its rows."""
    return qd.archive.insert(archive, offers, rule)


class MadeUpCrew:
    """Workers that need no machine: each answers whatever it is given at once."""

    def __init__(self, workers):
        self.room = lambda: workers
        self.messages = 0

    def check_room(self):
        """There is room."""

    def hire(self):
        """One more."""
        return MadeUpHand(self)


class MadeUpHand:
    """A worker that finds the same for every solution."""

    def __init__(self, crew):
        self.crew, self.greeting, self.chunks, self.reported = crew, None, [], (0.0, 0, 0)

    def welcome(self, answer):
        """It is up."""
        answer(Greeting("node", "host", versions()))

    def give(self, jobs, answer):
        """Answer, as if each evaluation had taken 6 s."""
        self.chunks.append(jobs)
        self.crew.messages += 1
        answer(Report([Result(job.id, FOUND) for job in jobs], 6.0, Activity()))

    def dismiss(self):
        """Nothing to end."""


def dispatching(workers, rounds=5):
    """Print what the driver does for each message of a cluster of this size, Ray left out."""
    crew = MadeUpCrew(workers)
    dispatcher = Dispatcher(crew, workers=None, timeout=None, batch=False)
    thread = threading.Thread(target=dispatcher.run)
    began = time.monotonic()
    thread.start()
    while dispatcher.activity.workers < workers:
        time.sleep(0.001)
    print(f"{workers} workers: known to the driver after {time.monotonic() - began:.2f} s,", end=" ", flush=True)
    began = time.monotonic()
    for _ in range(rounds):
        dispatcher.submit([Job(i, np.zeros(SOLUTION, np.float32), i) for i in range(workers)])
        for _ in range(workers):
            dispatcher.outbox.get()
    print(f"{1e6 * (time.monotonic() - began) / crew.messages:.0f} µs of the driver for each message", flush=True)
    dispatcher.submit(None)
    thread.join()


def codebook(cells):
    """Print how long it takes to lay out the first codebook, by k-means of uniform samples."""
    began = time.monotonic()
    jax.block_until_ready(eqx.filter_jit(VQVAE(BEHAVIOR, 2, cells).init)(jax.random.key(0)))
    print(f"{cells} cells: the first codebook takes {time.monotonic() - began:.1f} s, compiling included", flush=True)


if __name__ == "__main__":
    numbers = [int(number) for number in sys.argv[1:]] or [2_000, 20_000, 100_000]
    for number in numbers:
        pieces(number)
    for number in numbers:
        codebook(number)
    dispatching(WORKERS)
