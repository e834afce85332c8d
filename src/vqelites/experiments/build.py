"""From settings to a Quality-Diversity algorithm."""

from typing import Any

from vqelites.algorithms import Effort, Problem, aurora, cvt_map_elites, map_elites, vq_elites
from vqelites.archives import UnstructuredArchive
from vqelites.dataset import Dataset
from vqelites.descriptors import VQVAE, AbstractLayer, AutoEncoder, Training
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
from vqelites.tasks.base import AbstractTask
from vqelites.variation import IsoLine


def build(task: AbstractTask, settings: Settings) -> QD:
    """The algorithm these settings describe, for this task."""
    if isinstance(settings, MapElitesSettings):
        return map_elites(task, task.cells, drift=settings.drift, effort=_effort(settings.search))
    if isinstance(settings, CVTMapElitesSettings):
        return cvt_map_elites(task, settings.cells, drift=settings.drift, effort=_effort(settings.search))
    if isinstance(settings, VQElitesSettings):
        return build_vq_elites(task, settings)
    return _aurora(task, settings)


def build_vq_elites(
    problem: Problem, settings: VQElitesSettings, own: tuple[AbstractLayer, AbstractLayer] | None = None
) -> QD:
    """VQ-Elites for any problem; `own` networks, encoder and decoder, take the place of those that settings name."""
    coding = _coding(settings.model)
    model = VQVAE(
        problem.behavior_shape,
        settings.model.latent_dim,
        settings.cells,
        codebook=settings.codebook,
        beta=settings.beta,
        stretch=settings.stretch,
        equal=settings.equal_cells,
        even=settings.even,
        training=_training(settings.model),
        **(coding | {"networks": own} if own else coding),
    )
    data, search = settings.data, settings.search
    window = settings.update_every * search.batch_size if data.window is None else data.window
    archive = min(window, settings.cells) if data.archive is None else data.archive
    return vq_elites(
        problem,
        model,
        update_every=settings.update_every,
        # An epoch passes over as many samples as the window has.
        epochs=max(round(settings.epochs * window / max(window + archive, 1)), 1),
        cooperate=_share(settings.cooperate, search),
        dataset=Dataset(window, archive, data.replay, data.memory, data.distinct, data.overlap),
        reserve=settings.reserve,
        drift=settings.drift,
        effort=_effort(search, settings.model),
    )


def _aurora(task: Problem, settings: AuroraSettings) -> QD:
    model = AutoEncoder(
        task.behavior_shape,
        settings.model.latent_dim,
        stretch=settings.stretch,
        training=_training(settings.model, reset_optimizer=True, validation=0.25),
        **_coding(settings.model),
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
        cooperate=_share(settings.cooperate, settings.search),
        distinct=settings.distinct,
        overlap=settings.overlap,
        effort=_effort(settings.search, settings.model),
    )


def _effort(search: Search, model: Model | None = None) -> Effort:
    return Effort(
        iterations=search.iterations,
        batch_size=search.batch_size,
        bootstrap=search.bootstrap,
        bootstrap_epochs=model.bootstrap_epochs if model else 0,
        fresh_until=search.fresh_until,
        tournament=search.tournament,
        variation=IsoLine(search.iso, search.line),
    )


def _training(model: Model, **options: Any) -> Training:
    return Training(model.learning_rate, model.final_rate, batch=model.minibatch, **options)


def _coding(model: Model) -> dict[str, Any]:
    return {
        "networks": model.networks,
        "dropout": model.dropout,
        "bounded": model.bounded,
        "loss": model.loss,
        "reduction": model.reduction,
        "standardise": model.standardise,
        "principal": model.principal,
        "units": model.units,
        "blur": model.blur,
    }


def _share(share: float, search: Search) -> int:
    """Iterations in a share of the run."""
    if not 0 <= share <= 1:
        raise ValueError(f"cooperate is a share of the run, between 0 and 1, but got {share}.")
    return round(share * search.iterations)
