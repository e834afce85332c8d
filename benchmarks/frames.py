"""VQ-Elites on Gymnasium's environments, by pictures or raw observations, next to MAP-Elites given the truth.

    python benchmarks/frames.py [CASE ...] [--seeds SEED ...] [--evaluations N] [--peer FILE] [--peer-only]

VQ-Elites has its defaults. MAP-Elites is that of pyribs, with a grid over the truth, the same policy, first random
solutions, variation and number of evaluations. The worst seed counts, as a share of the peer's median. `--peer FILE`
keeps the peer's results, so that they are computed once. Needs the extras `gym` and `ribs`.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import worlds
from ribs.archives import GridArchive
from ribs.emitters import IsoLineEmitter
from ribs.schedulers import Scheduler
from worlds import Evaluate, Outcomes, Sensor, World

from vqelites import VQElites

BATCH, BOOTSTRAP = 128, 1280
FEWEST = 8 * BATCH  # evaluations: with fewer the model is never trained again
BINS = 40  # of the lander's x
TILES = ((0.5, 14.5), (0.5, 14.5))
PICTURE = ((-1.0, 1.0), (-0.6, 1.4))  # what the lander's picture shows, in its units

Counts = dict[str, float]


@dataclass(frozen=True)
class Case:
    """What is searched, by what it is told apart, and which counts must reach which share of the peer's."""

    world: World
    sensor: Sensor
    cells: int
    evaluations: int
    grid: tuple[int, int]  # the peer's cells over the truth
    ranges: tuple[tuple[float, float], tuple[float, float]]
    targets: dict[str, float]


CASES = {
    "minigrid": Case("minigrid", "frame", 300, 5_120, (14, 14), TILES, {"tiles": 0.8}),
    "lander-frames": Case("lander", "frame", 300, 10_240, (20, 15), PICTURE, {"landing bins": 0.8, "x bins": 0.8}),
    "lander-observations": Case(
        "lander", "observations", 500, 10_240, (25, 20), PICTURE, {"positive return": 0.8, "landing bins": 0.8}
    ),
}
USUAL = ("minigrid", "lander-frames", "lander-observations")


def vq_elites(case: Case, seed: int, evaluations: int, evaluate: Evaluate) -> Counts:
    """What VQ-Elites' archive holds in the end."""
    qd = VQElites(
        solution_dim=worlds.solution_dim(case.world),
        behavior_shape=worlds.BEHAVIOR[case.sensor],
        cells=case.cells,
        seed=seed,
        bootstrap=bootstrap(evaluations),
        iterations=(evaluations - bootstrap(evaluations)) // BATCH,
    )

    def tell(found: Outcomes) -> None:
        qd.tell(found.fitness, found.behavior, truth=found.truth)

    speed = search(lambda: qd.ask(BATCH), tell, evaluate, evaluations)
    return count(case, qd.archive.fitness, qd.archive.truth) | speed


def map_elites(case: Case, seed: int, evaluations: int, evaluate: Evaluate) -> Counts:
    """What pyribs' grid holds in the end, given the truth."""
    dim, truth = worlds.solution_dim(case.world), worlds.TRUTH[case.world]
    archive = GridArchive(
        solution_dim=dim, dims=case.grid, ranges=case.ranges, seed=seed, extra_fields={"truth": ((truth,), np.float32)}
    )
    first = np.random.default_rng(seed).uniform(-1, 1, (bootstrap(evaluations), dim))
    emitter = IsoLineEmitter(
        archive, iso_sigma=0.01, line_sigma=0.2, initial_solutions=first, batch_size=BATCH, seed=seed
    )
    scheduler = Scheduler(archive, [emitter])

    def tell(found: Outcomes) -> None:
        scheduler.tell(found.fitness, found.truth[:, :2], truth=found.truth)

    speed = search(scheduler.ask, tell, evaluate, evaluations)
    return count(case, archive.data("objective"), archive.data("truth")) | speed


def bootstrap(evaluations: int) -> int:
    """How many solutions are random: the default of VQ-Elites, but at most a quarter."""
    return min(BOOTSTRAP, evaluations // 4)


def search(
    ask: Callable[[], np.ndarray], tell: Callable[[Outcomes], None], evaluate: Evaluate, evaluations: int
) -> Counts:
    """Search until so many evaluations are done; how many there were in a second, of evaluating alone and in all."""
    done, evaluating, start = 0, 0.0, time.monotonic()
    while done < evaluations:
        solutions = ask()
        before = time.monotonic()
        found = evaluate(solutions)
        evaluating += time.monotonic() - before
        tell(found)
        done += len(solutions)
    return {"evaluated/s": round(done / evaluating, 1), "in all/s": round(done / (time.monotonic() - start), 1)}


def count(case: Case, fitness: np.ndarray, truth: np.ndarray) -> Counts:
    """What there is to count of elites, fitness (n,) and truth (n, t)."""
    if case.world == "minigrid":
        return {"elites": len(truth), "tiles": len(np.unique(truth, axis=0))}
    x, _, grounded = truth.T
    inside = np.abs(x) < 1
    return {
        "elites": len(truth),
        "best return": round(float(fitness.max()), 1),
        "positive return": int((fitness > 0).sum()),
        "on the ground": int(grounded.sum()),
        "landing bins": bins_held(x[grounded > 0]),
        "x bins": bins_held(x[inside]),
        "outside": int((~inside).sum()),
    }


def bins_held(x: np.ndarray) -> int:
    """In how many of the bins of [-1, 1) the numbers lie."""
    return len(np.unique(np.floor((x + 1) / 2 * BINS)))


class PeerResults:
    """The peer's results by case, evaluations and seed, kept in a file if one is given."""

    def __init__(self, path: Path | None):
        self.path = path
        self.known: dict[str, Counts] = json.loads(path.read_text()) if path and path.exists() else {}

    def of(self, name: str, seeds: Iterable[int], evaluations: int) -> list[Counts]:
        """One result per seed; those not known yet are computed."""
        case = CASES[name]
        keys = {seed: f"{case.world} {'x'.join(map(str, case.grid))}, {evaluations}, seed {seed}" for seed in seeds}
        if missing := [seed for seed, key in keys.items() if key not in self.known]:
            with worlds.pool(case.world, "nothing") as evaluate:
                for seed in missing:
                    self.known[keys[seed]] = report(name, seed, map_elites(case, seed, evaluations, evaluate))
                    if self.path:
                        self.path.write_text(json.dumps(self.known, indent=1))
        return [self.known[key] for key in keys.values()]


def learned(name: str, seeds: Iterable[int], evaluations: int) -> list[Counts]:
    """VQ-Elites' result for every seed."""
    case = CASES[name]
    with worlds.pool(case.world, case.sensor) as evaluate:
        return [report(name, seed, vq_elites(case, seed, evaluations, evaluate)) for seed in seeds]


def report(name: str, seed: int, counts: Counts) -> Counts:
    """Print the counts and pass them on."""
    print(f"{name}, seed {seed}: " + ", ".join(f"{what} {value}" for what, value in counts.items()), flush=True)
    return counts


def share(ours: list[Counts], peers: list[Counts], what: str) -> float:
    """Our worst seed, as a share of the peer's median."""
    return float(min(counts[what] for counts in ours) / np.median([counts[what] for counts in peers]))


def rows(name: str, ours: list[Counts], peers: list[Counts]) -> list[str]:
    """Lines of the table: one per count."""
    lines = []
    for what in peers[0]:
        target = CASES[name].targets.get(what)
        cells = [name, what, *(" ".join(f"{counts[what]:g}" for counts in results) for results in (ours, peers))]
        if target is None:
            cells += ["", "", ""]
        else:
            reached = share(ours, peers, what)
            cells += [f"{reached:.2f}", f"{target:.2f}", "reached" if reached >= target else "missed"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}; by default {', '.join(USUAL)}"
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="SEED")
    parser.add_argument("--evaluations", type=int, metavar="N", help="instead of the full number of each case")
    parser.add_argument("--peer", type=Path, metavar="FILE", help="JSON file that keeps the peer's results")
    parser.add_argument("--peer-only", action="store_true", help="leave VQ-Elites out")
    asked = parser.parse_args()
    if unknown := set(asked.cases) - set(CASES):
        parser.error(f"unknown case {', '.join(sorted(unknown))}: choose of {', '.join(CASES)}.")
    if asked.evaluations is not None and asked.evaluations < FEWEST:
        parser.error(f"--evaluations must be at least {FEWEST}, but is {asked.evaluations}.")
    peer, lines = PeerResults(asked.peer), []
    for name in asked.cases or USUAL:
        evaluations = asked.evaluations or CASES[name].evaluations
        peers = peer.of(name, asked.seeds, evaluations)
        if not asked.peer_only:
            lines += rows(name, learned(name, asked.seeds, evaluations), peers)
    if lines:
        print("\n| case | count | VQ-Elites | given the truth | worst of median | target | |\n" + "|---" * 7 + "|")
        print("\n".join(lines))


if __name__ == "__main__":
    main()
