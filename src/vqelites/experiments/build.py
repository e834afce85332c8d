"""From settings to a Quality-Diversity algorithm."""

import functools
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from vqelites.algorithms import Effort, aurora, cvt_map_elites, map_elites, recent_and_elites, vq_elites
from vqelites.archives import UnstructuredArchive
from vqelites.descriptors import VQVAE, AbstractLayer, AutoEncoder, Training, per_sample
from vqelites.drive import Measure
from vqelites.experiments.config import (
    AuroraSettings,
    CVTMapElitesSettings,
    MapElitesSettings,
    Model,
    Search,
    Settings,
    VQElitesSettings,
)
from vqelites.loop import QD
from vqelites.metrics import measure
from vqelites.tasks import Interface, Task
from vqelites.variation import IsoLine

# An own network: maps one behavior to its latent vector, or back; its arrays are trained.
Module = Callable[[Array], Array]
Networks = tuple[AbstractLayer, AbstractLayer]


def build(task: Task, settings: Settings, *, given: np.ndarray | None = None, own: Networks | None = None) -> QD:
    """The algorithm these settings describe, for this task.

    It starts from `given` solutions, if any; `own` networks, encoder and decoder, take the place of those that settings
    name.
    """
    return _built(settings, task, given, own)


@functools.singledispatch
def _built(settings: Any, task: Task, given: np.ndarray | None, own: Networks | None) -> QD:
    """One function for each record of settings, found by the type of that record."""
    raise TypeError(f"{settings!r} are not the settings of an algorithm.")


def own_networks(encoder: Module | None, decoder: Module | None) -> Networks | None:
    """Modules for one behavior as networks for many."""
    if encoder is None and decoder is None:
        return None
    if encoder is None or decoder is None:
        raise ValueError("Own modules come as a pair: give both encoder and decoder, or neither.")
    return per_sample(encoder), per_sample(decoder)


@functools.cache
def measure_of(interface: Interface) -> Measure:
    """What is measured of a simulator's elites; one function for equal interfaces, so that it is compiled once."""
    return functools.partial(measure, interface.grid)


@_built.register
def _map_elites(settings: MapElitesSettings, task: Task, given: np.ndarray | None, own: Networks | None) -> QD:
    if task.cells is None:
        raise ValueError(
            "MAP-Elites needs hand-coded cells: a truth told for every solution, its limits truth_low and truth_high, "
            "and bins, such as bins=(20, 20). Without a truth, use vq-elites."
        )
    return map_elites(task, task.cells, drift=settings.drift, effort=_effort(settings.search, given))


@_built.register
def _cvt_map_elites(settings: CVTMapElitesSettings, task: Task, given: np.ndarray | None, own: Networks | None) -> QD:
    if not task.truth_low or not np.isfinite([*task.truth_low, *task.truth_high]).all():
        raise ValueError(
            "CVT-MAP-Elites needs a truth told for every solution, and its limits truth_low and truth_high. "
            "Without a truth, use vq-elites."
        )
    return cvt_map_elites(task, settings.cells, drift=settings.drift, effort=_effort(settings.search, given))


def vqvae(shape: tuple[int, ...], settings: VQElitesSettings, own: Networks | None = None) -> VQVAE:
    """The model these settings describe, for behavior of this shape."""
    return VQVAE(
        shape,
        settings.model.latent_dim,
        settings.cells,
        codebook=settings.codebook,
        beta=settings.beta,
        stretch=settings.stretch,
        equal=settings.equal_cells,
        even=settings.even,
        training=_training(settings.model),
        **_coding(settings.model, own),
    )


@_built.register
def _vq_elites(settings: VQElitesSettings, task: Task, given: np.ndarray | None, own: Networks | None) -> QD:
    data, search = settings.data, settings.search
    window = settings.update_every * search.batch_size if data.window is None else data.window
    return vq_elites(
        task,
        vqvae(task.behavior_shape, settings, own),
        update_every=settings.update_every,
        epochs=settings.epochs,
        cooperate=settings.cooperate,
        frozen=settings.frozen,
        dataset=recent_and_elites(
            window,
            settings.cells,
            data.archive,
            replay=data.replay,
            memory=data.memory,
            distinct=data.distinct,
            overlap=data.overlap,
        ),
        fringe=settings.fringe,
        drift=settings.drift,
        effort=_effort(search, given, settings.model),
    )


@_built.register
def _aurora(settings: AuroraSettings, task: Task, given: np.ndarray | None, own: Networks | None) -> QD:
    model = AutoEncoder(
        task.behavior_shape,
        settings.model.latent_dim,
        stretch=settings.stretch,
        training=_training(settings.model, reset_optimizer=True, validation=0.25),
        **_coding(settings.model, own),
    )
    archive = UnstructuredArchive(
        settings.capacity,
        settings.target,
        settings.initial,
        settings.minimum,
        settings.maximum,
        settings.k_csc,
        threshold_rule=settings.threshold,
        steered_at=settings.steered_at,
    )
    return aurora(
        task,
        model,
        archive,
        epochs=settings.epochs,
        cooperate=settings.cooperate,
        distinct=settings.distinct,
        overlap=settings.overlap,
        effort=_effort(settings.search, given, settings.model),
    )


def _effort(search: Search, given: np.ndarray | None, model: Model | None = None) -> Effort:
    return Effort(
        iterations=search.iterations,
        batch_size=search.batch_size,
        bootstrap=search.bootstrap,
        bootstrap_epochs=model.bootstrap_epochs if model else 0,
        fresh_until=search.fresh_until,
        tournament=search.tournament,
        given=None if given is None else jnp.asarray(given, jnp.float32),
        variation=IsoLine(search.iso, search.line),
    )


def _training(model: Model, **options: Any) -> Training:
    return Training(model.learning_rate, model.final_rate, batch=model.minibatch, **options)


def _coding(model: Model, own: Networks | None) -> dict[str, Any]:
    return {
        "networks": own or model.networks,
        "dropout": model.dropout,
        "bounded": model.bounded,
        "loss": model.loss,
        "reduction": model.reduction,
        "standardise": model.standardise,
        "principal": model.principal,
        "units": model.units,
        "blur": model.blur,
    }
