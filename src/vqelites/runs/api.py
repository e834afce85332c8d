"""Runs from Python."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from vqelites.experiments.config import Settings
from vqelites.runs.events import Observe, silent
from vqelites.runs.folder import Config, Saving
from vqelites.runs.run import Run
from vqelites.runs.runner import execute, never


def run(
    task: str,
    algorithm: str = "vq-elites",
    *,
    preset: str = "paper",
    iterations: int | None = None,
    seed: int = 0,
    out: Path | str | None = None,
    settings: Settings | None = None,
    saving: Saving | None = None,
    overwrite: bool = False,
    observe: Observe = silent,
    stop: Callable[[], bool] = never,
) -> Run:
    """Run an algorithm on a task into a folder, and return what it left there.

    `settings` replaces all hyperparameters of the preset, see `vqelites.experiments.presets.settings`. Without `out`
    the folder is `runs/TASK-ALGORITHM-SEED`. `observe=Display()` of `vqelites.runs.progress` shows a progress
    bar.
    """
    config = Config.of(task, algorithm, preset)
    if settings is not None:
        if type(settings) is not type(config.settings):
            raise ValueError(f"{algorithm} takes {type(config.settings).__name__}, not {type(settings).__name__}.")
        config = replace(config, settings=settings)
    if iterations is not None:
        search = replace(config.settings.search, iterations=iterations)
        config = replace(config, settings=replace(config.settings, search=search))
    if saving is not None:
        config = replace(config, saving=saving)
    folder = default_folder(task, algorithm, seed) if out is None else Path(out)
    execute(config, {seed: folder}, overwrite=overwrite, observe=observe, stop=stop)
    return Run.load(folder)


def default_folder(task: str, algorithm: str, seed: int) -> Path:
    """Where a run goes if nothing else is said."""
    return Path("runs") / f"{task}-{algorithm}-{seed}"
