"""Presets by name: for every task and algorithm the paper's sizes, a quick version, and the paper's literal form."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any, get_args

from vqelites.experiments.config import (
    AuroraSettings,
    CVTMapElitesSettings,
    Data,
    MapElitesSettings,
    Model,
    NetworksName,
    PresetName,
    Search,
    Settings,
    VQElitesSettings,
)
from vqelites.inputs import plain
from vqelites.words import did_you_mean


@dataclass(frozen=True)
class TaskSizes:
    """What the paper's tables say about one task, and what was measured to be needed beside it."""

    iterations: int
    cells: int
    networks: NetworksName
    latent_dim: int
    update_every: int
    capacity: int  # of AURORA's archive
    k_csc: float = 5e-6  # gain of plain AURORA's size control, applied in every iteration
    epochs: int = 10  # per update of VQ-Elites
    aurora_epochs: int = 100
    bootstrap_epochs: int = 100
    overlap: float | None = None  # of images, above which the paper leaves them out of training
    iso: float = 0.01
    line: float = 0.2
    tournament: int = 1  # of algorithms that learn their descriptor


_MOBILE = TaskSizes(3000, 2000, "mobile", 2, 5, 5000, overlap=0.5)
_ARM = TaskSizes(3000, 1500, "arm", 5, 5, 2500)
_MINIGRID = TaskSizes(
    iterations=10000,
    cells=400,
    networks="minigrid",
    latent_dim=5,
    update_every=10,
    capacity=800,
    iso=0.02,
    line=0.05,
    tournament=4,
)
_ANY = TaskSizes(3000, 1000, "auto", 2, 5, 2500)


def _quick(full: TaskSizes, iterations: int = 300, **smaller: Any) -> TaskSizes:
    """Fewer iterations.

    Plain AURORA's gain of size control is multiplied by the factor by which there are fewer iterations, so that its
    threshold can grow as far. Otherwise a full archive stays full to the end and looks better than at full size,
    where it shrinks to its target. (On MiniGrid it never fills.)
    """
    return replace(full, iterations=iterations, k_csc=full.k_csc * full.iterations / iterations, **smaller)


# Images cost the most: smaller networks, and fewer passes over the data where training takes most of the time.
_QUICK_MOBILE = _quick(_MOBILE, networks="auto", aurora_epochs=20, bootstrap_epochs=25)
_QUICK_ARM = _quick(_ARM, iterations=600)  # after 300, AURORA+ is not yet behind VQ-Elites
_QUICK_MINIGRID = _quick(_MINIGRID, networks="auto", epochs=5, aurora_epochs=20, bootstrap_epochs=25)
_QUICK_ANY = _quick(_ANY)

_SIZES = {
    "mobile-free": (_MOBILE, _QUICK_MOBILE),
    "mobile-l": (_MOBILE, _QUICK_MOBILE),
    "arm": (_ARM, _QUICK_ARM),
    "arm-constrained": (_ARM, _QUICK_ARM),
    "minigrid": (_MINIGRID, _QUICK_MINIGRID),
}


_NONE: Mapping[str, Any] = MappingProxyType({})


def algorithms() -> tuple[str, ...]:
    """All algorithm names."""
    return tuple(_ALGORITHMS)


def summary(algorithm: str) -> str:
    """One sentence about an algorithm."""
    return _ALGORITHMS[algorithm].summary


def presets() -> tuple[str, ...]:
    """All preset names."""
    return get_args(PresetName)


def settings(task: str, algorithm: str, preset: str = "paper") -> Settings:
    """The settings of an algorithm on a task; a task without sizes of its own gets general ones.

    "paper" has the paper's sizes with the defaults of this package, "quick" takes minutes on two cores, and "literal"
    follows the paper's text to the letter, without any departure listed in docs/choices.md.
    """
    _check("algorithm", algorithm, algorithms())
    _check("preset", preset, presets())
    full, quick = _SIZES.get(task, (_ANY, _QUICK_ANY))
    sizes = quick if preset == "quick" else full
    if preset == "literal":
        return _literal(_ALGORITHMS[algorithm].sized(sizes), sizes.overlap)
    return _ALGORITHMS[algorithm].sized(sizes)


def wanted(
    task: str, algorithm: str, preset: str = "paper", record: Settings | None = None, values: Mapping[str, Any] = _NONE
) -> Settings:
    """The settings of a preset, or a user's own record in their place, with these values by name."""
    found = settings(task, algorithm, preset)
    if record is not None and type(record) is not type(found):
        raise ValueError(f"{algorithm} takes {type(found).__name__}, not {type(record).__name__}.")
    return with_values(found if record is None else record, values)


def with_values(settings: Settings, values: Mapping[str, Any]) -> Settings:
    """The settings with these values in place of theirs, by the names of fields, nested ones too."""
    nested = [field.name for field in fields(settings) if is_dataclass(getattr(settings, field.name))]
    part_of = {name: part for part in nested for name in _names(getattr(settings, part))}
    for name, value in ((name, plain(value)) for name, value in values.items()):
        if name == "cells" and isinstance(settings, AuroraSettings):
            raise ValueError(
                "AURORA has no cells: `target` is the size its archive is steered to, `capacity` its largest."
            )
        _check("setting", name, (*_names(settings), *part_of))
        if name in part_of:
            part = getattr(settings, part_of[name])
            settings = replace(settings, **{part_of[name]: replace(part, **{name: value})})
        else:
            settings = replace(settings, **{name: value})
    return settings


def _names(record: Any) -> list[str]:
    """Of the fields that are values."""
    return [field.name for field in fields(record) if not is_dataclass(getattr(record, field.name))]


def _search(sizes: TaskSizes, tournament: int = 1) -> Search:
    return Search(sizes.iterations, iso=sizes.iso, line=sizes.line, tournament=tournament)


def _model(sizes: TaskSizes, default: Model) -> Model:
    return replace(
        default, networks=sizes.networks, latent_dim=sizes.latent_dim, bootstrap_epochs=sizes.bootstrap_epochs
    )


def _map_elites(sizes: TaskSizes) -> MapElitesSettings:
    return MapElitesSettings(_search(sizes))


def _cvt_map_elites(sizes: TaskSizes) -> CVTMapElitesSettings:
    return CVTMapElitesSettings(_search(sizes), cells=sizes.cells)


def _vq_elites(sizes: TaskSizes) -> VQElitesSettings:
    return VQElitesSettings(
        search=_search(sizes, sizes.tournament),
        model=_model(sizes, VQElitesSettings().model),
        cells=sizes.cells,
        update_every=sizes.update_every,
        epochs=sizes.epochs,
    )


def _aurora(sizes: TaskSizes) -> AuroraSettings:
    return AuroraSettings(
        search=_search(sizes, sizes.tournament),
        model=_model(sizes, AuroraSettings().model),
        target=sizes.cells,
        capacity=sizes.capacity,
        k_csc=sizes.k_csc,
        epochs=sizes.aurora_epochs,
    )


def _aurora_plus(sizes: TaskSizes) -> AuroraSettings:
    plain = _aurora(sizes)
    bounded = replace(plain.model, bounded=True)
    return replace(plain, model=bounded, maximum=1.0, k_csc=5e-4, steered_at="rebuild", cooperate=0.1)


@dataclass(frozen=True)
class Algorithm:
    """What can be asked for by name: what it is, and its settings at the sizes of a task."""

    summary: str
    sized: Callable[[TaskSizes], Settings]


# The one place where an algorithm gets its name; `build` makes it of its settings.
_ALGORITHMS = {
    "vq-elites": Algorithm("a VQ-VAE learns the descriptors, its codebook is the grid", _vq_elites),
    "map-elites": Algorithm("hand-coded descriptors on the task's own cells", _map_elites),
    "cvt-map-elites": Algorithm("hand-coded descriptors on evenly spread cells", _cvt_map_elites),
    "aurora": Algorithm("an autoencoder learns the descriptors, a distance threshold decides who stays", _aurora),
    "aurora-plus": Algorithm(
        "AURORA with bounded descriptors, cooperating at first (the paper's AURORA-dagger)", _aurora_plus
    ),
}


def _literal(made: Settings, overlap: float | None) -> Settings:
    """Without the departures that docs/choices.md lists."""
    plain = Search()
    made = replace(made, search=replace(made.search, iso=plain.iso, line=plain.line, tournament=1))
    if isinstance(made, MapElitesSettings | CVTMapElitesSettings):
        return replace(made, drift=False)
    raw = replace(made.model, blur=0.0, standardise=False, principal=False, final_rate=1.0, reduction="sum")
    if isinstance(made, VQElitesSettings):
        data = Data(archive=0, distinct=False, overlap=overlap)
        made = replace(made, frozen=0.0, fringe=False, stretch=0.0, equal_cells=0.0, even=False, drift=False)
        return replace(made, model=raw, data=data)
    return replace(made, model=raw, distinct=False, overlap=overlap, steered_at="iteration")


def _check(what: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise ValueError(f"There is no {what} named {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}.")
