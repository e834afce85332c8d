"""What the commands of the command line do; each returns its exit code."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from vqelites.experiments import presets
from vqelites.experiments.config import VQElitesSettings
from vqelites.runs import runner
from vqelites.runs.config import Config, Evaluating
from vqelites.runs.explored import serve_run
from vqelites.runs.files import RunError
from vqelites.runs.films import check_format, film, save_film, show_film
from vqelites.runs.progress import Display
from vqelites.runs.run import Run
from vqelites.runs.runner import Outcome
from vqelites.runs.signals import interrupts
from vqelites.runs.start import read_solutions
from vqelites.runs.tracking import tracked
from vqelites.runs.verify import problems, replay_all
from vqelites.tasks import Interface, SimulatorTask, Task, registry
from vqelites.words import counted


def run(
    config: Config,
    seed: int,
    folder: Path,
    *,
    start: Path | None,
    overwrite: bool,
    draw: bool,
    minutes: float | None,
    track: Sequence[str],
    quiet: bool,
    explore: bool,
) -> int:
    """Run into a folder, with a progress display and, if wanted, a page to explore it."""
    given = None if start is None else read_solutions(start)
    if explore:
        print(f"Follow the run at {serve_run(folder)}", flush=True)
    with (
        Display("quiet" if quiet else "auto") as display,
        interrupts(display.say, display.close) as asked,
        tracked(display, track, folder) as followed,
    ):
        outcome = runner.execute(
            config,
            {seed: folder},
            start=given,
            overwrite=overwrite,
            draw=draw,
            minutes=minutes,
            observe=followed,
            stop=asked,
        )
        code = _ended(display, outcome, asked.exit_code)
        if explore and not asked():
            print("The page stays until Ctrl-C.", flush=True)
            asked.wait()
    return code


def resume(
    folder: Path,
    *,
    iterations: int | None,
    evaluating: Mapping[str, Any],
    restart: bool,
    draw: bool,
    minutes: float | None,
    track: Sequence[str] | None,
    quiet: bool,
) -> int:
    """Continue a run, with a progress display."""
    with (
        Display("quiet" if quiet else "auto") as display,
        interrupts(display.say, display.close) as asked,
        tracked(display, track, folder) as followed,
    ):
        outcome = runner.resume(
            folder,
            iterations=iterations,
            evaluating=evaluating,
            restart=restart,
            draw=draw,
            minutes=minutes,
            observe=followed,
            stop=asked,
        )
        return _ended(display, outcome, asked.exit_code)


def _ended(display: Display, outcome: Outcome, code: int) -> int:
    display.close()
    first = outcome.folders[0]
    if outcome.finished:
        display.say(f"Finished. The run is in {first}; `vqelites show {first}` summarises it.")
        return 0
    display.say(f"Saved after iteration {outcome.iteration}. Continue with: {_continue(Run.load(first))}")
    return code  # 0 if nobody interrupted it: its time was over


def show(folder: Path) -> int:
    """Print a summary of a run."""
    console, loaded = Console(highlight=False, soft_wrap=True), Run.load(folder)
    config, table = loaded.config, loaded.metrics
    if table.empty:
        told = int(loaded.state().told) if loaded.saved else 0
        state = f"in the bootstrap, {told} evaluations saved; continue with `{_continue(loaded)}`"
    elif loaded.finished:
        state = f"finished, {counted(loaded.folder.iterations, 'iteration')}"
    else:
        state = f"not finished: {table['iteration'].iloc[-1]} of {loaded.folder.iterations} iterations, "
        state += f"saved up to {loaded.iteration}; continue with `{_continue(loaded)}`"
    console.print(f"[bold]{escape(config.named)}[/], preset {config.preset}, seed {loaded.seed}: {escape(state)}")
    if config.interface is not None:
        console.print(escape(_simulator_line(config.interface, config.evaluating)))
    if loaded.rejected:
        where = "; log.txt says why" if (loaded.folder.path / "log.txt").exists() else ""
        console.print(f"Evaluations that failed or were not finite, kept out: {loaded.rejected}{where}.")
    for line in _map_lines(loaded):
        console.print(escape(line))
    if not table.empty:
        console.print(_metric_table(loaded))
    pictures = sorted(loaded.folder.figures.glob("*.png"))
    names = ", ".join(picture.name for picture in pictures)
    console.print(escape(f"Pictures in {loaded.folder.figures}: {names}" if pictures else "No pictures yet."))
    return 0


def _continue(run: Run) -> str:
    """The command that goes on with a run."""
    known = run.config.interface is None or registry.family(run.config.task)
    own = "" if known else " --task-file FILE.py"
    return f"vqelites resume {run.folder.path}{own}"


def verify(folder: Path) -> int:
    """Check every file of a run, and evaluate all its elites again."""
    console, loaded = Console(highlight=False, soft_wrap=True), Run.load(folder)
    damaged = problems(loaded)
    for problem in damaged:
        console.print(escape(problem))
    try:
        replayed = replay_all(loaded)
    except RunError as error:
        if not damaged:
            raise
        console.print(escape(f"Elites were not evaluated again: {error}"))
        return 1
    console.print(str(replayed))
    good = replayed.good and not damaged
    console.print(escape(f"{folder} is {'as it was written' if good else 'NOT as it was written'}."))
    return 0 if good else 1


def reevaluate(folder: Path, times: int) -> int:
    """Evaluate the elites of a run some more times."""
    loaded = Run.load(folder)
    text = f"{loaded.reevaluate(times)} All values are in {loaded.folder.evaluated}."
    Console(highlight=False, soft_wrap=True).print(escape(text))
    return 0


def replay(folder: Path, index: int | None, out: Path | None) -> int:
    """Evaluate an elite again, show it, and say whether it did what is stored of it."""
    if out is not None:
        check_format(out)
    loaded = Run.load(folder)
    row = int(np.argmax(loaded.archive.fitness)) if index is None else index
    try:
        stored = np.float32(loaded.elite(row).fitness)
    except IndexError as error:
        raise RunError(str(error)) from error
    seen = film(loaded.render(row))
    fitness = loaded.replay(row).fitness[0] if seen.fitness is None else seen.fitness
    same = np.float32(fitness) == stored
    console = Console(highlight=False, soft_wrap=True)
    told = "as stored" if same else f"but {stored:.6g} is stored: it is NOT the same"
    console.print(escape(f"Elite {row} of {folder}: fitness {fitness:.6g}, {told}."))
    if out is None:
        show_film(seen, f"elite {row} of {folder}")
    else:
        save_film(seen, out)
        console.print(escape(f"{len(seen.frames)} frames are in {out}."))
    return 0 if same else 1


def _simulator_line(known: Interface, evaluating: Evaluating) -> str:
    """What goes into a simulator and comes out, and who evaluates it."""
    shape = _by(known.behavior_shape or ())
    parts = [f"{counted(known.solution_dim, 'number')} in a solution", f"behavior of shape {shape}"]
    if known.truth_dim:
        bins = f" in {_by(known.bins)} bins" if known.bins else ""
        parts.append(f"truth of {counted(known.truth_dim, 'number')}{bins}")
    else:
        parts.append("no truth")
    by = "" if evaluating.workers is None else f"by {counted(evaluating.workers, 'worker')}"
    if evaluating.cluster is not None:
        by = f"{by} on the cluster {evaluating.cluster}".strip()
    parts.append(f"evaluated {by or 'in this process'}")
    parts += ["asynchronously"] if evaluating.mode == "async" else []
    parts += [f"time-out {evaluating.timeout:g} s"] if evaluating.timeout is not None else []
    parts += [f"retries {evaluating.retries}"] if evaluating.retries else []
    return f"A simulator: {', '.join(parts)}."


def _by(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def _map_lines(loaded: Run) -> list[str]:
    """How a learned map is, and what it chose."""
    if loaded.chosen is None:
        return []
    lines, last = [f"The map sees {loaded.chosen}."], loaded.metrics.ffill().iloc[-1]
    parts = []
    if isinstance(loaded.config.settings, VQElitesSettings):
        parts.append(f"{last['codes_used']:.0f} of {loaded.config.settings.cells} codes in use")
        parts.append(f"perplexity {last['perplexity']:.0f}")
    if not np.isnan(last["saturated"]):
        parts.append(f"{last['saturated']:.1%} of the descriptors at the limits")
    lines += [f"It has {', '.join(parts)}."] if parts else []
    restarts = loaded.metrics["restarted"].sum()
    return [*lines, f"Restarts after a collapse: {restarts}."] if restarts else lines


def _metric_table(loaded: Run) -> Table:
    """The metrics at a few moments of the run, one column each; the last known value where some were not measured."""
    known = loaded.metrics.ffill()
    moments = np.unique(np.linspace(0, len(known) - 1, min(5, len(known))).round().astype(int))
    table = Table()
    table.add_column("iteration")
    for moment in moments:
        table.add_column(str(known["iteration"].iloc[moment]), justify="right")
    for name in known.columns[1:]:
        if known[name].isna().all():
            continue
        values = [known[name].iloc[moment] for moment in moments]
        table.add_row(name, *(_short(value) for value in values))
    return table


def _short(value: float) -> str:
    """Whole numbers whole, others with four digits."""
    if np.isnan(value):
        return ""
    return str(int(value)) if value == np.floor(value) else f"{value:.4g}"


def tasks() -> int:
    """Print all tasks."""
    table = Table("task", "numbers", "behavior", "truth", "cells", "bins", box=box.SIMPLE_HEAD)
    for name in registry.names():
        task = registry.make(name)
        table.add_row(
            f"[bold]{escape(name)}",
            str(task.space.dim),
            _shape(task),
            f"{len(task.truth_low)}-D" if task.truth_low else "-",
            "-" if task.cells is None else str(len(task.cells)),
            "-" if task.bins is None else f"{int(task.bins.reachable.sum())} of {len(task.bins.reachable)}",
        )
    console = Console(highlight=False)
    for name in registry.names():
        console.print(f"[bold]{escape(name)}[/]: {escape(registry.summary(name))}")
    for name, family in registry.families().items():
        console.print(f"[bold]{escape(f'{name}:{family.such_as}')}[/], say: {escape(family.summary)}")
    console.print(table)
    console.print(
        "numbers: of a solution; behavior: shape of what is seen of it; truth: hand-coded descriptor, for MAP-Elites "
        "and metrics; cells: of MAP-Elites; bins: that metrics count, reachable of all"
    )
    return 0


def _shape(task: Task) -> str:
    """Of its behavior, unless only an evaluation could tell."""
    if isinstance(task, SimulatorTask) and task.interface.behavior_shape is None:
        return "?"
    return _by(task.behavior_shape)


def algorithms() -> int:
    """Print all algorithms."""
    table = Table()
    table.add_column("algorithm", no_wrap=True)
    table.add_column("what it is")
    for name in presets.algorithms():
        table.add_row(name, presets.summary(name))
    Console(highlight=False).print(table)
    return 0
