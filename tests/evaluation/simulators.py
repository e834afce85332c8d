"""Simulators for tests: solutions say themselves what happens to them."""

import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

FINE, RAISE, NAN, NONE, SHORT, HANG, LEAVE, CRASH, SUICIDE = range(9)
SHAPE, TRUTH = (3, 2), 1


def noisy(solution, seed):
    """A value that depends on solution and seed, as (fitness, behavior, truth)."""
    noise = np.random.default_rng(seed).normal(size=SHAPE)
    return float(solution.sum() + noise.sum()), noise * solution[1], solution[1:2]


def faulty(solution, seed):
    """`noisy`, unless the first number of the solution is a fault."""
    match int(solution[0]):
        case 1:
            raise ValueError(f"cannot stand {solution[1]:g}")
        case 2:
            return np.nan, np.zeros(SHAPE), np.zeros(TRUTH)
        case 3:
            return None
        case 4:
            return 0.0, np.zeros(2), np.zeros(TRUTH)
        case 5:
            time.sleep(1000)
        case 6:
            os._exit(int(solution[1] > 0.5))
        case 7:
            os.kill(os.getpid(), signal.SIGSEGV)
        case 8:
            os.kill(os.getpid(), signal.SIGKILL)
    return noisy(solution, seed)


def tame(solution, seed):
    """`faulty` for this process: what would hang or kill it raises instead."""
    if solution[0] >= HANG:
        raise RuntimeError("would not come back")
    return faulty(solution, seed)


def batch(solutions, seeds):
    """`tame` for many at once; one that raises, or has another shape, spoils the whole batch."""
    rows = [tame(solution, int(seed)) for solution, seed in zip(solutions, seeds, strict=True)]
    fitness, behavior, truth = zip(*rows, strict=True)
    return np.array(fitness), np.array(behavior), np.array(truth)


def hanging_batch(solutions, seeds):
    """`batch` of `faulty`."""
    rows = [faulty(solution, int(seed)) for solution, seed in zip(solutions, seeds, strict=True)]
    return tuple(np.array(part) for part in zip(*rows, strict=True))


_BUFFER = np.zeros(SHAPE, np.float32)


def spoils_its_input(solution, seed):
    """`noisy`, which overwrites its solution and returns the same buffer every time."""
    fitness, _BUFFER[:], truth = noisy(solution.copy(), seed)
    solution[:] = 99
    return fitness, _BUFFER, truth


def modules(solution, seed):
    """Whether JAX was imported where this runs."""
    return float("jax" in sys.modules), np.zeros(2)


def nap(solution, seed, seconds=0.05):
    """Sleep, then tell which process this is."""
    time.sleep(seconds)
    return 0.0, np.array([os.getpid() // 1000, os.getpid() % 1000])


class SecondTime:
    """Fails in this way the first time a solution is tried, in whatever process."""

    def __init__(self, folder, fault):
        self.folder, self.fault = Path(folder), fault

    def simulate(self, solution, seed):
        mark = self.folder / str(seed)
        first = not mark.exists()
        mark.touch()
        return faulty(np.array([self.fault if first else FINE, *solution[1:]]), seed)


class Announced:
    """Tells in a file that it is being evaluated, then sleeps; counts how often."""

    def __init__(self, folder, seconds):
        self.folder, self.seconds = Path(folder), seconds

    def simulate(self, solution, seed):
        (self.folder / f"{os.getpid()}-{time.monotonic_ns()}").touch()
        time.sleep(self.seconds)
        return noisy(solution, seed)


class Starts:
    """Starts a process of its own that outlives an evaluation, and hangs."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def simulate(self, solution, seed):
        child = subprocess.Popen(["sleep", "1000"])
        (self.folder / str(child.pid)).touch()
        time.sleep(1000)


def forks(solution, seed):
    """Leaves behind a process that keeps all connections open, out of reach, and dies."""
    if os.fork() == 0:
        os.setsid()
        time.sleep(20)
        os._exit(0)
    os._exit(3)


class CannotLoad:
    """Can be sent, but not received."""

    def __call__(self, solution, seed):
        return noisy(solution, seed)

    def __reduce__(self):
        return functools.partial(_refuse, "no licence"), ()


def _refuse(reason):
    raise OSError(reason)


class LoadsSlowly:
    """`noisy`, which takes a while to be received, and tells in a file that it has begun to be."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def __call__(self, solution, seed):
        return noisy(solution, seed)

    def __setstate__(self, state):
        self.__dict__ = state
        (self.folder / str(os.getpid())).touch()
        time.sleep(2)


class Shot:
    """Some evaluations have the process above theirs killed, the first time they are tried: on a cluster, a worker."""

    def __init__(self, inner, folder, every):
        self.inner, self.folder, self.every = inner, Path(folder), every

    def simulate(self, solution, seed):
        mark = self.folder / str(seed)
        if self.hits(seed) and not mark.exists():
            mark.touch()
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(1000)
        return self.inner(solution, seed)

    def hits(self, seed):
        """Whether it is one of those."""
        return seed % self.every == 0


def leaves_while_loading():
    class Leaves:
        def __reduce__(self):
            return os._exit, (7,)

        def __call__(self, solution, seed): ...

    return Leaves()


def stormy(solution, seed):
    """Some solutions raise, hang, kill their worker or return NaN: each decided by its seed, for good."""
    return faulty(np.array([fault_of(seed), *solution]), seed)


def calm(solution, seed):
    """The same for one process."""
    return tame(np.array([fault_of(seed), *solution]), seed)


def fault_of(seed):
    """One evaluation in twenty has a fault."""
    dice = np.random.default_rng(seed)
    faults = (RAISE, NAN, HANG, LEAVE, CRASH)
    return dice.choice(faults) if dice.uniform() < 0.05 else FINE
