"""The algorithms, as compositions of parts. Every one of them runs in the same loop."""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Float

from vqelites import schedule
from vqelites.archives import AbstractAddition, AbstractArchive, CellArchive, Compete, Dominate, UnstructuredArchive
from vqelites.dataset import Dataset
from vqelites.descriptors import VQVAE, AbstractDescriptor, AutoEncoder, HandCoded
from vqelites.keys import Stream, stream_key
from vqelites.loop import QD
from vqelites.schedule import Schedule
from vqelites.tessellation import cvt
from vqelites.types import Problem, Sizes
from vqelites.variation import AbstractVariation, IsoLine


@dataclass(frozen=True)
class Effort:
    """What all algorithms share: numbers of evaluations, and how children are made."""

    iterations: int = 3000
    batch_size: int = 128
    bootstrap: int = 1280  # random solutions evaluated first
    bootstrap_epochs: int = 100
    fresh_until: float = 0.1  # random solutions are mixed in until this share of the cells is filled
    tournament: int = 1  # elites drawn for each parent, which is the fittest of them
    given: Float[Array, "g s"] | None = None  # solutions to start from
    variation: AbstractVariation | None = None  # None: IsoLine(), made when used, since its numbers live on a device


DEFAULT_EFFORT = Effort()


def map_elites(
    problem: Problem, cells: Float[Array, "k t"], *, drift: bool = True, effort: Effort = DEFAULT_EFFORT
) -> QD:
    """MAP-Elites: hand-coded descriptors, and hand-coded cells over them.

    A newcomer replaces an equally fit elite: see `Compete.drift` (the paper: only a less fit one).
    """
    descriptor, plan = HandCoded(len(problem.truth_low)), schedule.never(effort.iterations)
    return _compose(problem, descriptor, CellArchive(cells), Compete(drift), plan, Dataset(), effort)


def cvt_map_elites(
    problem: Problem, cells: int, *, seed: int = 0, drift: bool = True, effort: Effort = DEFAULT_EFFORT
) -> QD:
    """CVT-MAP-Elites: hand-coded descriptors, cells spread evenly over the limits of the truth."""
    centres = cvt(stream_key(seed, Stream.CELLS), cells, problem.truth_low, problem.truth_high)
    return map_elites(problem, centres, drift=drift, effort=effort)


def vq_elites(
    problem: Problem,
    model: VQVAE,
    *,
    update_every: int = 5,
    epochs: int = 10,
    cooperate: float = 0.0,
    frozen: float = 0.1,
    dataset: Dataset | None = None,
    fringe: bool = True,
    drift: bool = True,
    effort: Effort = DEFAULT_EFFORT,
) -> QD:
    """VQ-Elites: a VQ-VAE learns the descriptors, and its codebook is the cells.

    It trains on `recent_and_elites`, unless told otherwise; an epoch passes over as many samples as the window has. The
    archive keeps a `fringe` (the paper: none). A newcomer replaces an equally fit elite: see `Compete.drift` (the
    paper: only a less fit one). `cooperate` is the share of the run, from its start, in which newcomers always win. In
    its last share, `frozen`, the model is not trained, and search fills the cells that the last update has emptied (the
    paper: 0).
    """
    dataset = recent_and_elites(update_every * effort.batch_size, model.codes) if dataset is None else dataset
    epochs = max(round(epochs * dataset.window / max(dataset.window + dataset.archive, 1)), 1)
    shares = _share("cooperate", cooperate, effort), _share("frozen", frozen, effort)
    plan = schedule.every(effort.iterations, update_every, epochs, *shares)
    return _compose(problem, model, CellArchive(fringe=fringe), Compete(drift), plan, dataset, effort)


def recent_and_elites(window: int, cells: int, archive: int | None = None, **others: Any) -> Dataset:
    """The newest behaviors, and as many elites as these or as there are cells (the paper: none)."""
    return Dataset(window, min(window, cells) if archive is None else archive, **others)


def aurora(
    problem: Problem,
    model: AutoEncoder,
    archive: UnstructuredArchive,
    *,
    epochs: int = 100,
    cooperate: float = 0.0,
    distinct: bool = True,
    overlap: float | None = None,
    effort: Effort = DEFAULT_EFFORT,
) -> QD:
    """AURORA: an autoencoder learns the descriptors, and a distance threshold decides who stays.

    `cooperate` is the share of the run, from its start, in which newcomers always replace their nearest entry.
    """
    plan = schedule.growing_gaps(effort.iterations, epochs, cooperate=_share("cooperate", cooperate, effort))
    dataset = Dataset(archive=archive.capacity, distinct=distinct, overlap=overlap)
    return _compose(problem, model, archive, Dominate(), plan, dataset, effort)


def aurora_plus(
    problem: Problem,
    model: AutoEncoder,
    archive: UnstructuredArchive,
    *,
    epochs: int = 100,
    cooperate: float = 0.1,
    distinct: bool = True,
    overlap: float | None = None,
    effort: Effort = DEFAULT_EFFORT,
) -> QD:
    """AURORA+ (the paper's AURORA-dagger): bounded descriptors, and cooperation first (a tenth of the run)."""
    if not model.coding.bounded:
        raise ValueError("AURORA+ needs a bounded descriptor; use AutoEncoder(..., bounded=True), or plain aurora().")
    return aurora(
        problem, model, archive, epochs=epochs, cooperate=cooperate, distinct=distinct, overlap=overlap, effort=effort
    )


def _share(name: str, share: float, effort: Effort) -> int:
    """Iterations in a share of the run."""
    if not 0 <= share <= 1:
        raise ValueError(f"{name} is a share of the run, between 0 and 1, but got {share}.")
    return round(share * effort.iterations)


def _compose(
    problem: Problem,
    descriptor: AbstractDescriptor,
    archive: AbstractArchive,
    addition: AbstractAddition,
    plan: Schedule,
    dataset: Dataset,
    effort: Effort,
) -> QD:
    return QD(
        descriptor=descriptor,
        archive=archive,
        addition=addition,
        variation=effort.variation or IsoLine(),
        space=problem.space,
        schedule=plan,
        dataset=dataset,
        sizes=Sizes(
            problem.space.dim,
            problem.behavior_shape,
            descriptor.dim,
            len(problem.truth_low),
            problem.eight_bit,
        ),
        batch_size=effort.batch_size,
        bootstrap=effort.bootstrap,
        bootstrap_epochs=effort.bootstrap_epochs,
        fresh_until=effort.fresh_until,
        tournament=effort.tournament,
        given=effort.given,
    )
