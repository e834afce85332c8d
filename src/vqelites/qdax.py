"""Archives to and from QDax (extra `qdax`): its MAP-Elites repertoire holds the same elites in the same cells."""

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from vqelites.frames import ArchiveFrame

if TYPE_CHECKING:
    from qdax.core.containers.mapelites_repertoire import MapElitesRepertoire

_EXTRA = {"id": "ids", "behavior": "behavior", "truth": "truth"}  # what QDax has no field for: its extra scores


def to_repertoire(archive: ArchiveFrame, cells: ArrayLike) -> "MapElitesRepertoire":
    """The elites of an archive with these cells (k, d): a run's `state().archive.cells`, an optimizer's `codebook`.

    Ids, raw behavior and truth go along as extra scores. QDax marks empty cells by a fitness of minus infinity.
    """
    repertoire_class = _repertoire_class()
    centres, width = np.asarray(cells, np.float32), archive.descriptors.shape[1]
    last = int(archive.cells.max(initial=-1))
    if centres.ndim != 2 or centres.shape[1] != width or last >= len(centres):
        raise ValueError(
            f"cells must have shape (k, {width}), with k above the largest cell of an elite, {last}; but have "
            f"{centres.shape}. An archive without cells (AURORA's) has no place in a MAP-Elites repertoire."
        )

    def spread(rows: np.ndarray, absent: float = 0) -> Any:
        whole = np.full((len(centres), *rows.shape[1:]), absent, rows.dtype)
        whole[archive.cells] = rows
        return jnp.asarray(whole)

    return repertoire_class(
        genotypes=spread(archive.solutions),
        fitnesses=spread(archive.fitness[:, None], -np.inf),
        descriptors=spread(archive.descriptors),
        centroids=jnp.asarray(centres),
        extra_scores={name: spread(getattr(archive, field)) for name, field in _EXTRA.items()},
        keys_extra_scores=tuple(_EXTRA),
    )


def from_repertoire(repertoire: "MapElitesRepertoire") -> ArchiveFrame:
    """The elites of a repertoire. Without its extra scores, ids are 0, 1, 2, ... and behavior has width 0."""
    genotypes = repertoire.genotypes
    if not hasattr(genotypes, "shape") or genotypes.ndim != 2:
        raise ValueError(
            "Expected genotypes as one array (cells, s). Make one of a tree, such as the parameters of a network, with "
            "jax.vmap(lambda tree: jax.flatten_util.ravel_pytree(tree)[0])(repertoire.genotypes)."
        )
    fitness = np.asarray(repertoire.fitnesses).reshape(len(genotypes), -1)
    if fitness.shape[1] != 1:
        raise ValueError(f"Expected one fitness for each cell, but the repertoire has {fitness.shape[1]} objectives.")
    rows = np.flatnonzero(fitness[:, 0] > -np.inf)
    scores = repertoire.extra_scores
    extra = {field: np.asarray(scores[name])[rows] for name, field in _EXTRA.items() if name in scores}
    nothing = np.zeros((len(rows), 0), np.float32)
    return ArchiveFrame(
        **{"ids": np.arange(len(rows), dtype=np.int32), "behavior": nothing, "truth": nothing} | extra,
        solutions=np.asarray(genotypes)[rows],
        fitness=fitness[rows, 0],
        descriptors=np.asarray(repertoire.descriptors)[rows],
        cells=rows.astype(np.int32),
    )


def _repertoire_class() -> Any:
    try:
        from qdax.core.containers.mapelites_repertoire import MapElitesRepertoire
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "qdax":
            raise
        raise ModuleNotFoundError('This needs QDax: pip install "vqelites[qdax]".', name="qdax") from error
    return MapElitesRepertoire
