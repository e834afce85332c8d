"""Cells of a learned map as an archive of pyribs: its CVTArchive, with centroids that move."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from ribs.archives import CVTArchive
from scipy.spatial import KDTree

from vqelites import inputs
from vqelites.levels import as_floats
from vqelites.ribs.learned import LearnedMap

_SAME = 1e-3  # descriptors of one behavior, encoded in batches of different sizes, differ by far less


class CodebookArchive(CVTArchive):
    """A CVTArchive whose centroids are the codes of a map, and whose elites keep their raw behavior.

    pyribs' own code inserts, samples, counts and lists. Only moving the cells touches its internals.
    Further arguments are those of `CVTArchive`.
    """

    _stats: Any  # of pyribs

    def __init__(self, map_: LearnedMap, *, extra_fields: dict[str, tuple[Any, Any]] | None = None, **of_pyribs: Any):
        if "behavior" in (extra_fields or {}):
            raise ValueError("extra_fields has a field `behavior`, which is what this archive calls raw behavior.")
        super().__init__(
            centroids=map_.codebook,
            ranges=[(-1.0, 1.0)] * map_.codebook.shape[1],
            extra_fields={"behavior": (map_.shape, np.float32), **(extra_fields or {})},
            **of_pyribs,
        )
        self._map = map_
        self._limit()
        self._reserve = {name: rows[:0] for name, rows in self._elites().items()}  # those that lost their cells
        self._pixels: frozenset[str] = frozenset()

    def encode(self, behavior: ArrayLike) -> np.ndarray:
        """The measures (n, latent_dim) of raw behavior (n, *behavior_shape), on the map as it is now."""
        return self._map.encode(self._seen(behavior, None)[0])

    def add(self, solution: ArrayLike, objective: ArrayLike, measures: ArrayLike, **fields: ArrayLike) -> Any:
        """As in pyribs; `fields` must have `behavior` (n, *behavior_shape), and `measures` be what it encodes to."""
        self._complete(fields)
        rows, kinds = self._seen(fields["behavior"], len(np.atleast_1d(solution)))
        self._check(np.asarray(measures), rows)
        told = super().add(solution, objective, measures, **{**fields, "behavior": rows})
        self._pixels = kinds
        return told

    def add_single(self, solution: ArrayLike, objective: ArrayLike, measures: ArrayLike, **fields: ArrayLike) -> Any:
        """As in pyribs; `fields` must have `behavior` (*behavior_shape), and `measures` be what it encodes to."""
        self._complete(fields)
        rows, kinds = self._seen(np.asarray(fields["behavior"])[None], 1)
        self._check(np.asarray(measures)[None], rows)
        told = super().add_single(solution, objective, measures, **{**fields, "behavior": rows[0]})
        self._pixels = kinds
        return told

    def clear(self) -> None:
        """Remove all elites, those that wait for a cell included; the map stays."""
        super().clear()
        self._reserve = {name: rows[:0] for name, rows in self._reserve.items()}

    def data(
        self,
        fields: Collection[str] | str | None = None,
        return_type: Literal["dict", "tuple", "pandas"] | None = None,
    ) -> Any:
        """As in pyribs; a data frame has raw behavior only if asked for: pyribs has no columns for images."""
        if fields is None and return_type == "pandas":
            fields = [name for name in self.field_list if name != "behavior"]
        return super().data(fields, return_type)

    def rebin(self, also: "CodebookArchive | None" = None) -> int:
        """Take the map's codes as cells and place all elites by their stored behavior; how many lost their cell.

        Where several meet the fittest stays, of equals the one that was there first. The others wait in reserve and
        are offered again next time. An acceptance threshold goes where its elite goes, and the highest counts where
        several meet. The elites of an archive that was re-binned before may be offered `also`.
        """
        size, best, rows = len(self), self.best_elite, self._kept()
        self._follow()
        rows["measures"] = self._map.encode(rows["behavior"]).astype(self.dtypes["measures"])
        cell = self.index_of(rows["measures"])
        stays, goes = _settled(cell, rows["objective"])
        highest = np.full(self.cells, -np.inf, self.dtypes["threshold"])
        np.maximum.at(highest, cell, rows["threshold"])
        waits = goes[: self.cells]
        self._reserve = {name: values[waits] for name, values in rows.items()}
        elites = {name: values[stays] for name, values in rows.items()}
        self._store.clear()
        self._stats_reset()
        self._store.add(cell[stays], elites | {"threshold": highest[cell[stays]]})
        if len(stays):
            self._stats_update(elites["objective"].sum(), cell[stays[elites["objective"].argmax()]])
            self._recall(best)
        if also is not None and len(also):
            rows = {name: values for name, values in also._elites().items() if name != "threshold"}
            CVTArchive.add(self, **rows)
        return int((goes < size).sum())

    def begin(self, rows: dict[str, np.ndarray]) -> None:
        """Take the map's codes as cells, and let all these solutions compete for them as if nothing had been there."""
        self.clear()
        self._follow()
        CVTArchive.add(self, **rows, measures=self._map.encode(rows["behavior"]))

    def _follow(self) -> None:
        """Move the cells to where the map's codes are."""
        self._centroids = self._map.codebook.astype(self.dtypes["measures"])
        self._centroid_kd_tree = KDTree(self._centroids)
        self._limit()

    def _recall(self, best: dict[str, Any]) -> None:
        """As in pyribs the best elite ever is remembered, also where a low threshold let a lesser one take its cell."""
        if best["objective"] > self._stats.obj_max:
            measures = self._map.encode(best["behavior"][None]).astype(self.dtypes["measures"])
            self._best_elite = {**best, "measures": measures[0], "index": self.index_of(measures)[0]}
            self._stats = replace(self._stats, obj_max=best["objective"])

    def _limit(self) -> None:
        """An unbounded map has the limits of its codes."""
        if not self._map.bounded:
            self._lower_bounds, self._upper_bounds = self._centroids.min(axis=0), self._centroids.max(axis=0)
            self._interval_size = self._upper_bounds - self._lower_bounds

    def _elites(self) -> dict[str, np.ndarray]:
        """Every field of the elites."""
        return self._store.data(self._store.field_list)

    def _kept(self) -> dict[str, np.ndarray]:
        """Every field of the elites, then of the reserve."""
        return {name: np.concatenate([rows, self._reserve[name]]) for name, rows in self._elites().items()}

    def _complete(self, fields: Collection[str]) -> None:
        """Whether all fields were told, and no others; pyribs asks only when a solution is accepted."""
        if "behavior" not in fields:
            raise ValueError(
                "The raw behavior of every solution is needed: "
                "scheduler.tell(objective, archive.encode(behavior), behavior=behavior)."
            )
        wanted = set(self._store.field_list) - {"solution", "objective", "measures", "threshold"}
        if set(fields) != wanted:
            raise ValueError(f"Expected the fields {sorted(wanted)}, as in extra_fields; got {sorted(fields)}.")

    def _seen(self, behavior: ArrayLike, count: int | None) -> tuple[np.ndarray, frozenset[str]]:
        """Behavior as float32, and what is known of the scale of images; an error if anything is wrong with it."""
        rows = as_floats(inputs.behaviors("behavior", behavior, self._map.shape, count))
        odd = np.flatnonzero(~np.isfinite(rows).all(axis=tuple(range(1, rows.ndim))))
        if odd.size:
            raise ValueError(f"behavior must be finite, but rows {odd[:5].tolist()} hold NaN or infinity.")
        images = len(self._map.shape) > 2
        return rows, inputs.pixel_kinds("behavior", behavior, self._pixels) if images else self._pixels

    def _check(self, measures: np.ndarray, behavior: np.ndarray) -> None:
        """Measures of another map would put solutions into wrong cells, and nobody would notice."""
        right = self._map.encode(behavior)
        if measures.shape != right.shape or measures.dtype.kind not in "fiu" or not np.isfinite(measures).all():
            return  # pyribs says what is wrong with them
        apart = np.abs(measures - right).max(axis=1, initial=0)
        if (apart > _SAME * max(1.0, float(np.abs(right).max(initial=0)))).any():
            raise ValueError(
                f"measures are not archive.encode(behavior): row {apart.argmax()} is off by {apart.max():.3g}. If they "
                "were encoded before train() was called, encode again: training changes the map."
            )


def _settled(cell: np.ndarray, objective: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows that stay, one for each cell, and those that go: the fittest stays, of equals the first."""
    arrival = np.arange(len(cell))
    order = np.lexsort((arrival, -objective, cell))
    stays = order[np.diff(cell[order], prepend=-1) > 0]
    return stays, np.setdiff1d(arrival, stays)
