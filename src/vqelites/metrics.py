"""How good an archive is, judged by what its elites truly did. Pure functions of arrays.

Every elite is projected onto fixed bins by its true outcome, so that archives with different (learned) cells compare.
For data of your own: `measure(bins, outcomes(truth, fitness))`.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from numpy.typing import ArrayLike

from vqelites.tessellation import grid, nearest, usage
from vqelites.types import Bins, Elites, Sizes

if TYPE_CHECKING:
    import pandas as pd


class Projection(eqx.Module):
    """An archive seen through the bins: how many elites are in each, and the best fitness there."""

    counts: Int[Array, "b"]  # 0 where not reachable
    fitness: Float[Array, "b"]  # 0 where not occupied
    bins: Int[Array, ""]  # reachable ones
    size: Int[Array, ""]  # elites in the archive

    @property
    def occupied(self) -> Bool[Array, "b"]:
        """Which bins hold an elite."""
        return self.counts > 0

    @property
    def best(self) -> Float[np.ndarray, "b"]:
        """The best fitness of each bin for pictures: NaN where not occupied."""
        return np.where(self.occupied, self.fitness, np.nan)


def outcomes(truth: ArrayLike, fitness: ArrayLike) -> Elites:
    """Elites known only by what they truly did (n, t) and how well (n,): all that metrics need."""
    truth, fitness = jnp.asarray(truth, jnp.float32), jnp.asarray(fitness, jnp.float32)
    if truth.ndim != 2 or fitness.shape != truth.shape[:1]:
        raise ValueError(
            "outcomes: expected truth of shape (n, t) and one fitness each, shape (n,); "
            f"got shapes {truth.shape} and {fitness.shape}."
        )
    empty = Elites.empty(len(truth), Sizes(0, (0,), 0, 0))
    known = (fitness, truth, jnp.ones(len(truth), bool))
    return eqx.tree_at(lambda e: (e.fitness, e.truth, e.valid), empty, known)


def at_least(elites: Elites, fitness: float | Float[Array, ""]) -> Elites:
    """Only elites with at least this fitness; on the arms, exp(-0.05) is a distance of 5 cm from the goal."""
    return eqx.tree_at(lambda e: e.valid, elites, elites.valid & (elites.fitness >= fitness))


def coarser(bins: Bins, shape: Sequence[int], low: Sequence[float], high: Sequence[float]) -> Bins:
    """A regular grid over the same truth; a bin of it is reachable if the centre of a reachable bin lies in it."""
    centres = grid(shape, low, high)
    inside = jnp.where(bins.reachable, nearest(bins.centres, centres), len(centres))
    return Bins(centres, jnp.zeros(len(centres), bool).at[inside].set(True, mode="drop"))


def project(bins: Bins, elites: Elites) -> Projection:
    """Put every elite into the bin of its true outcome, the fittest of each bin standing for it."""
    count = bins.centres.shape[0]
    bin_of = jnp.where(elites.valid, nearest(elites.truth, bins.centres), count)
    bin_of = jnp.where(bins.reachable.at[bin_of].get(mode="fill", fill_value=False), bin_of, count)
    counts = jnp.zeros(count, jnp.int32).at[bin_of].add(1, mode="drop")
    best = jnp.full(count, -jnp.inf).at[bin_of].max(elites.fitness, mode="drop")
    return Projection(counts, jnp.where(counts > 0, best, 0), bins.reachable.sum(), elites.size)


def coverage(projection: Projection) -> Float[Array, ""]:
    """Share of the reachable bins that hold an elite."""
    return projection.occupied.sum() / projection.bins


def pqd(projection: Projection) -> Float[Array, ""]:
    """Projected QD score: sum of the best fitness of every occupied bin."""
    return projection.fitness.sum()


def edr(projection: Projection) -> Float[Array, ""]:
    """Effective diversity ratio: occupied bins per elite; 0 for an empty archive."""
    return projection.occupied.sum() / jnp.maximum(projection.size, 1)


def cds(projection: Projection) -> Float[Array, ""]:
    """Coverage diversity score: coverage times effective diversity ratio."""
    return coverage(projection) * edr(projection)


def entropy(projection: Projection) -> Float[Array, ""]:
    """How evenly elites are spread: entropy of their shares of the reachable bins, divided by log(reachable bins).

    1 if every reachable bin holds equally many elites, 0 if all are in one bin, if there are none, or if only one bin
    is reachable. Elites in unreachable bins are left out.
    """
    _, perplexity = usage(projection.counts)
    most = jnp.log(jnp.maximum(projection.bins, 2))
    return jnp.where(projection.bins > 1, jnp.log(perplexity) / most, 0)


def qd_score(elites: Elites) -> Float[Array, ""]:
    """Sum of the fitness of all elites. Where fitness may be negative, compare it only at the same size."""
    return jnp.where(elites.valid, elites.fitness, 0).sum()


def measure(bins: Bins | None, elites: Elites) -> dict[str, Array]:
    """All of the above, with the archive's size and its best fitness (NaN if empty).

    What needs bins is NaN where there are none, since nobody knows what elites truly did.
    """
    best = jnp.where(elites.valid, elites.fitness, -jnp.inf).max(initial=-jnp.inf)
    found = {
        "size": elites.size,
        "max_fitness": jnp.where(elites.size > 0, best, jnp.nan),
        "qd_score": qd_score(elites),
    }
    if bins is None:
        return found | {name: jnp.array(jnp.nan) for name in _PROJECTED}
    projection = project(bins, elites)
    return found | {name: metric(projection) for name, metric in _PROJECTED.items()}


_PROJECTED = {"coverage": coverage, "pqd": pqd, "edr": edr, "cds": cds, "entropy": entropy}


def codebook_usage(
    codebook: Float[Array, "k d"], descriptors: Float[Array, "n d"], valid: Bool[Array, "n"]
) -> tuple[Int[Array, ""], Float[Array, ""]]:
    """How many codes the valid descriptors (of elites, or of any samples) use, and the perplexity of that use."""
    code = jnp.where(valid, nearest(descriptors, codebook), len(codebook))
    return usage(jnp.zeros(len(codebook), jnp.int32).at[code].add(1, mode="drop"))


def edr_at(projection: Projection, size: int) -> float:
    """Effective diversity ratio at a common archive size, since the plain one rewards under-filled archives.

    It is the expected number of occupied bins if only `size` elites, drawn without replacement, were there, divided by
    `size` (rarefaction): a bin with c of the n elites stays empty with probability C(n - c, size) / C(n, size).
    With `size` = n it is the plain ratio. In NumPy and double precision: float32 has too few digits for log C.
    """
    from scipy.special import gammaln

    n = int(projection.size)
    if not 1 <= size <= n:
        raise ValueError(
            f"edr_at: expected a size between 1 and the {n} elites of the archive, got {size}. "
            "Compare archives at the size of the smallest."
        )
    counts = np.asarray(projection.counts, float)
    left = np.maximum(n - counts, size)  # a bin that cannot be missed is set right below
    missed = gammaln(left + 1) - gammaln(left - size + 1) - gammaln(n + 1) + gammaln(n - size + 1)
    present = np.where(n - counts < size, 1.0, -np.expm1(missed))
    return float(present[counts > 0].sum() / size)


def area_under_curve(iterations: ArrayLike, values: ArrayLike) -> float:
    """Area under a metric's curve (straight lines between its points) per iteration: the metric's mean over the run.

    Of PQD it says how early quality was found. A curve of one point has that value.
    """
    from scipy.integrate import trapezoid

    x, y = np.asarray(iterations, float), np.asarray(values, float)
    if x.ndim != 1 or x.shape != y.shape or not x.size or not (np.diff(x) > 0).all():
        raise ValueError(
            "area_under_curve: expected at least one iteration, increasing, with one value each; "
            f"got shapes {x.shape} and {y.shape}, iterations {x[:5].tolist()}... Sort them and drop doubles."
        )
    return float(trapezoid(y, x) / (x[-1] - x[0])) if x.size > 1 else float(y[0])


def codebook_drift(iterations: ArrayLike, codebooks: ArrayLike) -> "pd.DataFrame":
    """How far codes moved per iteration between consecutive snapshots (t, k, d): columns iteration, mean, p90.

    Distances divided by the iterations between, the mean over the codes and what 90 % of them stay below; each row
    stands at its later snapshot. A model that converges has both going to 0.
    """
    import pandas as pd

    x, codes = np.asarray(iterations, float), np.asarray(codebooks, float)
    if codes.ndim != 3 or x.shape != codes.shape[:1] or len(x) < 2 or not (np.diff(x) > 0).all():
        raise ValueError(
            "codebook_drift: expected at least 2 increasing iterations and one codebook each, shape (t, k, d); "
            f"got iterations of shape {x.shape} and codebooks of shape {codes.shape}."
        )
    speed = np.linalg.norm(np.diff(codes, axis=0), axis=2) / np.diff(x)[:, None]
    return pd.DataFrame({"iteration": x[1:], "mean": speed.mean(axis=1), "p90": np.quantile(speed, 0.9, axis=1)})
