"""A study as data: which runs are compared, and what they are to answer; `study.json` keeps it."""

import importlib.metadata
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from vqelites.experiments.presets import algorithms, presets, settings
from vqelites.runs.config import Config, Evaluating, Saving
from vqelites.runs.files import RunError, read_sealed, write_sealed
from vqelites.runs.records import from_json, to_json
from vqelites.tasks import Interface

FORMAT = 2
FILE = "study.json"
COMPARISON = "comparison"


class Key(NamedTuple):
    """What a run is compared as: its kind of study, its preset, its task, its label (`algorithm`) and its seed."""

    family: str
    preset: str
    task: str
    algorithm: str
    seed: int

    def __str__(self) -> str:
        return f"{self.algorithm} on {self.task} ({self.preset}), seed {self.seed}"


KEYS = list(Key._fields)


@dataclass(frozen=True)
class Group:
    """Runs that differ in nothing but their seed; the label names them in tables and pictures."""

    label: str
    config: Config
    seeds: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or not slug(self.label):
            raise ValueError(
                f"A group needs a label with letters or digits and different seeds; got {self.label!r}, {self.seeds}."
            )

    @property
    def named(self) -> str:
        """In a few words."""
        return f"{self.label} on {self.config.task}"

    def folder(self, root: Path, seed: int) -> Path:
        """Where the run with this seed lies in the folder of its study."""
        return root / slug(self.config.task) / slug(self.label) / f"seed-{seed}"


@dataclass(frozen=True)
class Study:
    """A question and the groups of runs that answer it."""

    name: str
    question: str
    groups: tuple[Group, ...]

    def __post_init__(self) -> None:
        places = [(slug(group.config.task), slug(group.label)) for group in self.groups]
        if not places or len(set(places)) < len(places):
            raise ValueError(
                f"A study needs at least one group, and labels that differ on each task; got {list(self.labels())}."
            )

    @property
    def family(self) -> str:
        """Studies of one family may be put together: all comparisons of algorithms, or one kind of ablation."""
        return self.name if self.name.startswith("ablation-") else COMPARISON

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return sum(len(group.seeds) for group in self.groups)

    def labels(self) -> Iterator[str]:
        """All groups in a few words each."""
        return (group.named for group in self.groups)


def slug(name: str) -> str:
    """A name as part of a path: letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def write(study: Study, root: Path) -> None:
    """Put study.json into the study's folder."""
    groups = [
        {
            "label": group.label,
            "task": group.config.task,
            "algorithm": group.config.algorithm,
            "preset": group.config.preset,
            "settings": to_json(group.config.settings),
            "chunk": group.config.chunk,
            "saving": to_json(group.config.saving),
            "interface": None if group.config.interface is None else to_json(group.config.interface),
            "evaluating": to_json(group.config.evaluating),
            "seeds": list(group.seeds),
        }
        for group in study.groups
    ]
    record = {"format": FORMAT, "vqelites": importlib.metadata.version("vqelites")}
    write_sealed(root / FILE, {**record, "name": study.name, "question": study.question, "groups": groups})


def read(root: Path) -> Study:
    """The study of a folder, every value checked."""
    file = root / FILE
    record = read_sealed(file, FORMAT, oldest=FORMAT)
    if not isinstance(record.get("groups"), list) or not all(isinstance(group, dict) for group in record["groups"]):
        raise RunError(f"{file}: groups must be a list of JSON objects.")
    try:
        groups = tuple(_group(group, f"{file}: groups[{i}]") for i, group in enumerate(record["groups"]))
        return Study(_typed(record, "name", str, str(file)), _typed(record, "question", str, str(file)), groups)
    except ValueError as error:
        raise RunError(f"{file}: {error}") from error


def _group(record: dict[str, Any], where: str) -> Group:
    label, task, algorithm, preset = (
        _typed(record, name, str, where) for name in ("label", "task", "algorithm", "preset")
    )
    if algorithm not in algorithms() or preset not in presets():
        raise RunError(f"{where}: this version knows no {algorithm!r} with preset {preset!r}.")
    seeds = _typed(record, "seeds", list, where)
    if not all(isinstance(seed, int) and not isinstance(seed, bool) for seed in seeds):
        raise RunError(f"{where}: seeds must be whole numbers, not {seeds!r}.")
    chosen = from_json(type(settings(task, algorithm, preset)), record.get("settings"), f"{where}.settings")
    saving = from_json(Saving, record.get("saving"), f"{where}.saving")
    interface = record.get("interface")
    interface = None if interface is None else from_json(Interface, interface, f"{where}.interface")
    evaluating = from_json(Evaluating, record.get("evaluating"), f"{where}.evaluating")
    chunk = _typed(record, "chunk", int, where)
    config = Config(task, algorithm, preset, chosen, chunk, saving, interface, evaluating)
    return Group(label, config, tuple(seeds))


def _typed(record: dict[str, Any], name: str, kind: type, where: str) -> Any:
    if not isinstance(record.get(name), kind):
        raise RunError(f"{where}: {name} is missing or not of type {kind.__name__}.")
    return record[name]


def joined(old: Study, new: Study, root: Path) -> Study:
    """Both studies as one; more seeds and groups may come, but what is there must be configured the same."""
    if old.name != new.name:
        raise RunError(f"{root} holds the study {old.name!r}, not {new.name!r}. Choose another folder.")
    groups = {(group.config.task, group.label): group for group in old.groups}
    for group in new.groups:
        key = group.config.task, group.label
        before = groups.get(key)
        changed = [] if before is None else differing(asked(before.config), asked(group.config))
        if changed:
            raise RunError(
                f"{root} holds {group.named} with other settings: {'; '.join(changed)} (there -> asked for). Give the "
                "options it was begun with to continue it, or choose another folder."
            )
        seeds = group.seeds if before is None else tuple(dict.fromkeys((*before.seeds, *group.seeds)))
        groups[key] = replace(group, seeds=seeds)
    return replace(old, groups=tuple(groups.values()))


def asked(config: Config) -> Config:
    """What a run is to compute, without where and by how many solutions are evaluated, on which no result depends."""
    anywhere = replace(config.evaluating, workers=1, cluster=None, num_cpus=1.0, num_gpus=0.0)
    return replace(config, evaluating=anywhere)


def differing(one: Any, other: Any, where: str = "") -> list[str]:
    """The fields in which two records differ, with both values."""
    if not is_dataclass(one) or type(one) is not type(other):
        return [] if one == other else [f"{where.strip('.')} {one!r} -> {other!r}"]
    pairs = ((field.name, getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    return [text for name, a, b in pairs for text in differing(a, b, f"{where}.{name}")]
