"""The studies that have a name: the paper's evaluation and its ablations, in full and in quick size."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, get_args

from vqelites.experiments.config import AuroraSettings, VQElitesSettings
from vqelites.runs.config import Config, Evaluating
from vqelites.studies.study import COMPARISON, Group, Study
from vqelites.tasks import SimulatorTask, registry
from vqelites.words import counted, listed

StudyName = Literal["paper", "ablation-update", "ablation-cooperation", "ablation-bounding", "ablation-start"]

COMPARED: tuple[str, ...] = ("vq-elites", "map-elites", "aurora", "aurora-plus")
TASKS = ("mobile-free", "mobile-l", "arm", "arm-constrained", "minigrid")
COOPERATE = 0.1  # share of the run, where an ablation switches cooperation on
UPDATES = ((1, 1), (5, 10), (100, 100))  # iterations between updates, and epochs at each
_SEEDS = {"minigrid": 5}  # the paper's; 10 elsewhere
_QUESTIONS = {
    "paper": "How do the algorithms compare on the five tasks of the paper?",
    "ablation-update": "Does it matter how often the model is updated, and for how many epochs?",
    "ablation-cooperation": "What does it change that newcomers always take the cell at first?",
    "ablation-bounding": "Do descriptors have to be bounded, or is it enough that the codebook starts in [-1, 1]?",
    "ablation-start": "Does the search need a bootstrap, and where should the codebook start?",
}

# A label and the configuration behind it.
_Variants = dict[str, Config]


def seeds_of(task: str, preset: str) -> int:
    """How many seeds a study takes if nothing else is said: as many as the paper, 3 in quick size."""
    return 3 if preset == "quick" else _SEEDS.get(task, 10)


def comparison(
    tasks: Sequence[str], algorithms: Sequence[str] = COMPARED, *, preset: str = "paper", seeds: int | None = None
) -> Study:
    """Some algorithms on some tasks."""
    variants = [{name: Config.of(task, name, preset) for name in algorithms} for task in _known(tasks)]
    return _study(COMPARISON, f"How do {listed(algorithms)} compare on {listed(tasks)}?", variants, seeds)


def named(name: str, *, preset: str = "paper", tasks: Sequence[str] = (), seeds: int | None = None) -> Study:
    """A study of the paper by its name, on its own tasks if no others are given."""
    if name == "paper":
        whole = comparison(tasks or TASKS, preset=preset, seeds=seeds)
        return replace(whole, name=name, question=_QUESTIONS[name])
    if name not in _ABLATIONS:
        raise ValueError(f"There is no study named {name!r}. Known: {', '.join(get_args(StudyName))}.")
    chosen = _known(tasks or (ablation_task(preset),))
    return _study(name, _QUESTIONS[name], [_ABLATIONS[name](task, preset) for task in chosen], seeds)


def ablation_task(preset: str) -> str:
    """Where ablations run if nothing else is said: as in the paper, or where two cores need only minutes."""
    return "planar-arm" if preset == "quick" else "mobile-l"


def with_iterations(study: Study, iterations: int) -> Study:
    """The same with runs of another length."""
    groups = []
    for group in study.groups:
        chosen = group.config.settings
        chosen = replace(chosen, search=replace(chosen.search, iterations=iterations))
        groups.append(replace(group, config=replace(group.config, settings=chosen)))
    return replace(study, groups=tuple(groups))


def with_evaluating(study: Study, evaluating: Evaluating) -> Study:
    """The same with its simulators evaluated in this way; tasks in JAX are compiled, and stay as they are."""
    if evaluating == Evaluating():
        return study
    tasks = dict.fromkeys(group.config.task for group in study.groups)
    simulators = [task for task in tasks if isinstance(registry.make(task), SimulatorTask)]
    if not simulators:
        raise ValueError("Workers, timeout and retries are for simulators in Python, but all tasks here are in JAX.")
    groups = [
        replace(group, config=replace(group.config, evaluating=evaluating))
        if group.config.task in simulators
        else group
        for group in study.groups
    ]
    return replace(study, groups=tuple(groups))


def _study(name: str, question: str, variants: Sequence[_Variants], seeds: int | None) -> Study:
    groups = []
    for label, config in (pair for some in variants for pair in some.items()):
        count = seeds_of(config.task, config.preset) if seeds is None else seeds
        if count < 1:
            raise ValueError(f"A study needs at least 1 seed, but got {count}.")
        groups.append(Group(label, config, tuple(range(count))))
    return Study(name, question, tuple(groups))


def _known(tasks: Sequence[str]) -> Sequence[str]:
    """The tasks, once it is sure that all of them exist, each once."""
    for task in tasks:
        registry.summary(task)
    if not tasks or len(set(tasks)) < len(tasks):
        raise ValueError(f"A study needs at least one task and each only once; got {list(tasks)}.")
    return tasks


def _vq(task: str, preset: str) -> tuple[Config, VQElitesSettings]:
    config = Config.of(task, "vq-elites", preset)
    assert isinstance(config.settings, VQElitesSettings)
    return config, config.settings


def update_label(every: int, epochs: int, cooperating: bool) -> str:
    """How the ablation of updates names a variant."""
    return f"every {every}, {counted(epochs, 'epoch')}{', cooperating' * cooperating}"


def _update(task: str, preset: str) -> _Variants:
    config, chosen = _vq(task, preset)
    made = {}
    for share in (0.0, COOPERATE):
        for every, epochs in UPDATES:
            changed = replace(chosen, update_every=every, epochs=epochs, cooperate=share)
            made[update_label(every, epochs, share > 0)] = replace(config, settings=changed)
    return made


def _cooperation(task: str, preset: str) -> _Variants:
    """Each with and without cooperation: added to AURORA, and removed from AURORA+, which is also bounded."""
    made = {}
    for algorithm in ("vq-elites", "aurora", "aurora-plus"):
        config = Config.of(task, algorithm, preset)
        assert isinstance(config.settings, VQElitesSettings | AuroraSettings)
        for share, name in ((0.0, "alone"), (COOPERATE, "cooperating")):
            made[f"{algorithm}, {name}"] = replace(config, settings=replace(config.settings, cooperate=share))
    return made


def _bounding(task: str, preset: str) -> _Variants:
    config, chosen = _vq(task, preset)
    free = replace(chosen, model=replace(chosen.model, bounded=False))
    return {
        "bounded": config,
        "unbounded": replace(config, settings=replace(free, codebook="random")),
        "unbounded, codes in [-1, 1]": replace(config, settings=replace(free, codebook="kmeans")),
    }


def _start(task: str, preset: str) -> _Variants:
    config, chosen = _vq(task, preset)
    cold = replace(chosen, search=replace(chosen.search, bootstrap=0), model=replace(chosen.model, bootstrap_epochs=0))
    return {
        "bootstrap, k-means": replace(config, settings=replace(chosen, codebook="kmeans")),
        "bootstrap, random codes": replace(config, settings=replace(chosen, codebook="random")),
        "no bootstrap, k-means": replace(config, settings=replace(cold, codebook="kmeans")),
        "no bootstrap, random codes": replace(config, settings=replace(cold, codebook="random")),
    }


_ABLATIONS: dict[str, Callable[[str, str], _Variants]] = {
    "ablation-update": _update,
    "ablation-cooperation": _cooperation,
    "ablation-bounding": _bounding,
    "ablation-start": _start,
}
