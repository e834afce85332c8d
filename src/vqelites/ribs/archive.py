"""VQArchive: learned descriptors for pyribs."""

import warnings
from collections.abc import Sequence
from dataclasses import fields as fields_of
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from vqelites import inputs
from vqelites.diagnosis import diagnoses
from vqelites.experiments import presets
from vqelites.experiments.build import Module, own_networks
from vqelites.experiments.config import Search, VQElitesSettings
from vqelites.levels import as_floats
from vqelites.ribs.cells import CodebookArchive
from vqelites.ribs.learned import LearnedMap, Trained

# Settings of VQ-Elites that are its search, its schedule and its rule: here emitters, you and pyribs see to that.
_NOT_OURS = {field.name for field in fields_of(Search)}
_NOT_OURS |= {"update_every", "cooperate", "frozen", "drift", "window", "archive", "replay", "memory"}


class VQArchive(CodebookArchive):
    """An archive of pyribs whose measures are learned from raw behavior, and whose cells are the codes of a VQ-VAE.

    Measures are `encode(behavior)`, and raw behavior is told along as the field `behavior`:
    `scheduler.tell(objective, archive.encode(behavior), behavior=behavior)`. The map is trained when `train` is
    called, never by itself. Until then it knows nothing, and most solutions share a few cells: train it first after
    some hundred solutions, which then all compete for the cells it has learned.

    `cells`, `latent_dim` and further `settings`, such as `epochs=20` or `units="mixed"`, are
    hyperparameters of VQ-Elites with the defaults of `VQElites`; `encoder` and `decoder` are networks of your own. The
    other arguments, and all that is not said here, are those of `ribs.archives.CVTArchive`. All behavior since the last
    training is kept in memory.
    """

    def __init__(
        self,
        *,
        solution_dim: int | tuple[int, ...],
        behavior_shape: int | Sequence[int],
        cells: int = 1000,
        latent_dim: int = 2,
        learning_rate: float | None = None,
        threshold_min: float = -np.inf,
        qd_score_offset: float = 0.0,
        seed: int = 0,
        solution_dtype: DTypeLike | None = None,
        objective_dtype: DTypeLike | None = None,
        measures_dtype: DTypeLike | None = None,
        dtype: DTypeLike | None = None,
        extra_fields: dict[str, tuple[Any, Any]] | None = None,
        encoder: Module | None = None,
        decoder: Module | None = None,
        **settings: Any,
    ):
        shape, number = inputs.shape(behavior_shape), inputs.seed(seed)
        inputs.channels_last(shape)
        chosen = _settings({"cells": cells, "latent_dim": latent_dim, **settings})
        super().__init__(
            LearnedMap(shape, chosen, number, own_networks(encoder, decoder)),
            solution_dim=solution_dim,
            learning_rate=learning_rate,
            threshold_min=threshold_min,
            qd_score_offset=qd_score_offset,
            seed=number,
            solution_dtype=solution_dtype,
            objective_dtype=objective_dtype,
            measures_dtype=measures_dtype,
            dtype=dtype,
            extra_fields=extra_fields,
        )
        self._seed, self._extra_fields = number, extra_fields
        self._recent: list[dict[str, np.ndarray]] = []  # what was added since the last training
        self._added = 0  # solutions, accepted or not
        self._results: list[CodebookArchive] = []
        self._warned: set[str] = set()

    def train(self, progress: float = 0.0) -> Trained:
        """Train the map on stored behavior, take its new codebook as the cells, and place all elites anew.

        The first training orients the map on all behavior added so far, and all solutions added so far, rejected ones
        included, then compete for its cells. A later one goes on from there with what was added since, and places the
        elites by their stored behavior: see `rebin`. Nothing is evaluated again. `progress`, the share of your search
        that is over, lowers the learning rate, so that towards its end fewer elites lose their cells.
        """
        if not 0 <= progress <= 1:
            raise ValueError(f"progress is the share of the search that is over, from 0 to 1, but is {progress!r}.")
        stored = self._kept()
        kept = stored["behavior"]
        if not self._recent and not len(kept):
            raise RuntimeError("There is nothing to train on yet: add solutions with their behavior first.")
        behavior = np.concatenate([*(rows["behavior"] for rows in self._recent), kept[:0]])
        first = not self._map.trained
        trained = self._map.learn(behavior, kept, stored["objective"], progress)
        if first and self._map.trained:
            told = {name: np.concatenate([rows[name] for rows in self._recent]) for name in self._recent[0]}
            for archive in (self, *self._results):
                archive.begin(told)
        else:
            trained = replace(trained, lost=self.rebin())
            for result in self._results:
                result.rebin(also=self)
        self._recent = []
        for sentence in self._complaints(trained, first):
            warnings.warn(sentence, RuntimeWarning, stacklevel=2)
        return trained

    def result_archive(self) -> CodebookArchive:
        """An empty archive for the best solutions on the same map: CMA-MAE's `result_archive`.

        It is re-binned whenever this one is trained, and never holds less in a cell than this one does.
        """
        result = CodebookArchive(
            self._map,
            solution_dim=self.solution_dim,
            qd_score_offset=self.qd_score_offset,
            seed=self._seed,
            solution_dtype=self.dtypes["solution"],
            objective_dtype=self.dtypes["objective"],
            measures_dtype=self.dtypes["measures"],
            extra_fields=self._extra_fields,
        )
        self._results.append(result)
        return result

    def add(self, solution: ArrayLike, objective: ArrayLike, measures: ArrayLike, **fields: ArrayLike) -> Any:
        """As in pyribs; `fields` must have `behavior` (n, *behavior_shape), and `measures` be what it encodes to."""
        told = super().add(solution, objective, measures, **fields)
        self._remember({"solution": solution, "objective": objective, **fields})
        return told

    def add_single(self, solution: ArrayLike, objective: ArrayLike, measures: ArrayLike, **fields: ArrayLike) -> Any:
        """As in pyribs; `fields` must have `behavior` (*behavior_shape), and `measures` be what it encodes to."""
        told = super().add_single(solution, objective, measures, **fields)
        rows = {"solution": solution, "objective": objective, **fields}
        self._remember({name: np.asarray(value)[None] for name, value in rows.items()})
        return told

    def clear(self) -> None:
        """Remove all elites, and all behavior kept for the next training; the map stays."""
        super().clear()
        self._recent = []

    def _remember(self, added: dict[str, ArrayLike]) -> None:
        """Keep behavior for the next training; before the first one, whole solutions."""
        behavior = as_floats(inputs.behaviors("behavior", added["behavior"], self._map.shape))
        if not len(behavior):
            return
        whole = {} if self._map.trained else {name: np.array(rows) for name, rows in added.items()}
        self._recent.append(whole | {"behavior": np.array(behavior)})
        self._added += len(behavior)

    def _complaints(self, trained: Trained, first: bool) -> list[str]:
        """What is wrong with the map, each kind said once."""
        found = {}
        if first and trained.behaviors < self.cells:
            found["little"] = (
                f"The map was oriented on {trained.behaviors} distinct behaviors, fewer than its {self.cells} cells, "
                "and stays oriented like that. Add more solutions before the first train(), or use fewer cells."
            )
        if trained.rolled_back:
            found["rolled back"] = "A training was undone: a number of the model was no longer finite."
        found |= diagnoses(
            evaluations=self._added,
            behaviors=trained.behaviors,
            codes_used=trained.codes_used,
            saturated=trained.saturated,
            restarted=trained.restarted,
            unexplained=trained.unexplained,
            latent=self.measure_dim,
            cells=self.cells,
        )
        new = [sentence for kind, sentence in found.items() if kind not in self._warned]
        self._warned |= set(found)
        return new


def _settings(values: dict[str, Any]) -> VQElitesSettings:
    """VQ-Elites' settings with these values."""
    foreign = sorted(_NOT_OURS & set(values))
    if foreign:
        raise ValueError(
            f"VQArchive has the settings of the map alone, but got {', '.join(foreign)}: with pyribs emitters search, "
            "and you say when to train()."
        )
    chosen = presets.wanted("", "vq-elites", values=values)
    assert isinstance(chosen, VQElitesSettings)
    return chosen
