"""One report on one or more studies: question by question, as HTML and as Markdown."""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import get_args

import pandas as pd

from vqelites import plots
from vqelites.runs.files import write_whole
from vqelites.studies import pictures, tables
from vqelites.studies.claims import Judged, Verdict, judge
from vqelites.studies.document import Block, Bullets, Details, Gallery, Heading, Text
from vqelites.studies.evidence import ALPHA, Evidence, evidence
from vqelites.studies.finals import headline
from vqelites.studies.html import html
from vqelites.studies.load import StudyData, load_study
from vqelites.studies.markdown import markdown
from vqelites.studies.questions import QUESTIONS, Question
from vqelites.studies.study import COMPARISON, slug
from vqelites.tasks.base import Task
from vqelites.words import counted, listed


def write_report(*roots: Path | str, out: Path | str | None = None, mixed_versions: bool = False) -> Path:
    """Write a report on these folders and return its path; Markdown and pictures are put beside the HTML file.

    Without `out` it is `report.html` in the first folder.
    """
    data = load_study(*roots, mixed_versions=mixed_versions)
    path = Path(roots[0]) / "report.html" if out is None else Path(out)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"A report is an HTML file: its name must end in .html, but got {path}.")
    gallery = Gallery(path.with_name(f"{path.stem}-pictures"))
    blocks = report(data, gallery)
    write_whole(path, html(blocks).encode())
    write_whole(path.with_suffix(".md"), markdown(blocks, path.parent).encode())
    return path


def report(data: StudyData, gallery: Gallery) -> list[Block]:
    """The whole document."""
    found = evidence(data.results, data.curves)
    return [
        *_opening(data),
        *(_questions(data, found, gallery) if data.papers else ()),
        *_others(data, found, gallery),
        *_differences(found),
        *_convergence(data, gallery),
        *(_claims(data, judge(found)) if data.papers else ()),
        *_setting(data, gallery),
        *_closing(data),
    ]


def _opening(data: StudyData) -> Iterator[Block]:
    results = data.results
    tasks, presets = (listed(list(results[name].unique())) for name in ("task", "preset"))
    yield Heading(1, f"Quality-Diversity on {tasks}")
    algorithms = results["algorithm"].nunique()
    kind = "algorithms" if set(results["family"]) == {COMPARISON} else "algorithms or variants"
    compared = f"{algorithms} {kind}" if algorithms > 1 else results["algorithm"].iloc[0]
    chosen = "preset" if results["preset"].nunique() == 1 else "presets"
    yield Text(f"{counted(len(results), 'finished run')} of {compared}; {chosen} {presets}.{_given(data)}")
    yield from (Text(text) for text in dict.fromkeys(data.questions.values()))
    yield tables.meanings(results)
    if data.notes:
        complete = not any(note.startswith("Left out") for note in data.notes)
        yield Heading(2, "What to keep in mind" if complete else "What was left out, and what to keep in mind")
        yield Bullets(data.notes, warning=True)


def _given(data: StudyData) -> str:
    """Which algorithms are given the descriptor that others learn, in a sentence; nothing if all are alike."""
    given = {folder.config.algorithm: not hasattr(folder.config.settings, "model") for folder in data.runs.values()}
    if len(set(given.values())) < 2:
        return ""
    told, learning = ([name for name, here in given.items() if here is wanted] for wanted in (True, False))
    are, learn = "is" if len(told) == 1 else "are", "learns its own" if len(learning) == 1 else "learn their own"
    return f" {listed(told)} {are} given the true descriptor; {listed(learning)} {learn} from raw behavior."


def _claims(data: StudyData, judged: list[Judged]) -> Iterator[Block]:
    """What these runs say about the paper; claims they cannot judge are folded away."""
    yield Heading(2, "Claims of the paper")
    counted = Counter(one.verdict for one in judged)
    yield Text(", ".join(f"{counted[verdict]} {verdict}" for verdict in get_args(Verdict)) + ".")
    if "quick" in set(data.results["preset"]):
        yield Text("The quick preset has far fewer iterations than the paper; its verdicts are about that size.")
    decided = [one for one in judged if one.verdict != "not tested"]
    others = [one for one in judged if one.verdict == "not tested"]
    if decided:
        yield tables.claims(decided)
    if others:
        yield Details("Claims that these runs cannot judge", (tables.claims(others),))


def _setting(data: StudyData, gallery: Gallery) -> Iterator[Block]:
    learned = any(folder.config.algorithm == "vq-elites" for folder in data.runs.values())
    tasks = "The task" if len(data.tasks) == 1 else "The tasks"
    yield Heading(2, f"VQ-Elites, and {tasks.lower()}" if learned else tasks)
    if learned:
        yield gallery.add("overview", plots.overview(), "VQ-Elites: bootstrap, the loop, and the update of the model.")
    yield Bullets(tuple(f"{name}: {_size(task)}." for name, task in data.tasks.items()))
    worlds = {name: task for name, task in data.tasks.items() if pictures.can_draw(task)}
    if worlds:
        whose = "The world of the task" if len(worlds) == 1 else "The worlds of the tasks"
        yield gallery.add("tasks", plots.task_maps(worlds), f"{whose}, before any solution.")


def _size(task: Task) -> str:
    """What goes into a task and comes out, in words."""
    bins = "" if task.bins is None else f", {counted(int(task.bins.reachable.sum()), 'reachable bin')}"
    shape = task.behavior_shape
    behavior = counted(shape[0], "number") if len(shape) == 1 else f"shape {'x'.join(map(str, shape))}"
    return f"{counted(task.space.dim, 'number')} in a solution, behavior of {behavior}{bins}"


def _questions(data: StudyData, found: Mapping[str, Mapping[str, Evidence]], gallery: Gallery) -> Iterator[Block]:
    """Those of the paper, one by one."""
    for number, question in enumerate(QUESTIONS, 1):
        yield from _answer(number, question, data, found, gallery)
    yield from _policies(len(QUESTIONS) + 1, data, found)


def _answer(
    number: int, question: Question, data: StudyData, found: Mapping[str, Mapping[str, Evidence]], gallery: Gallery
) -> Iterator[Block]:
    """One question, if anything here can answer it."""
    parts = [
        (family, preset, task)
        for preset, families in found.items()
        for family in (COMPARISON, *question.ablations)
        if family in families
        for task in families[family].tasks
        if family != COMPARISON or task in question.tasks
    ]
    if not parts:
        return
    yield Heading(2, f"Question {number}: {question.text}")
    yield Text(question.lead)
    for family, preset, task in parts:
        if family != COMPARISON and task == found[preset][family].tasks[0]:
            yield Text(data.questions.get(family, ""))
        yield from _compared(data, found[preset][family], family, preset, task, gallery)


def _compared(
    data: StudyData, found: Evidence, family: str, preset: str, task: str, gallery: Gallery
) -> Iterator[Block]:
    """All that was compared on one task."""
    part = data.part(family=family, preset=preset, task=task)
    what = task if family == COMPARISON else f"{family} on {task}"
    title = f"{what} ({preset})"
    name = slug(f"{family}-{preset}-{task}")
    yield Heading(3, title)
    if family == COMPARISON:
        yield Text(_answered(part.results))
        yield Bullets(tables.answer(found, task))
        yield from pictures.archives(part, name, title, gallery)
    yield tables.summary(found, task)
    yield pictures.curves(part, name, title, gallery)
    if _can_differ(found.compared[found.compared["task"] == task]):
        yield tables.tests(found, task)


def _answered(results: pd.DataFrame) -> str:
    """What the numbers that begin the answer are."""
    seeds = results.groupby("algorithm").size()
    runs = "At the end of the run" + "s" * (len(results) > 1)
    medians = f"{', medians of the seeds' * bool(seeds.max() > 1)}{', the largest first' * (len(seeds) > 1)}"
    lowest = float(results["lowest"].iloc[0])
    counted = f" (sums count fitness from {lowest:.4g}, that of the least fit elite)" * (lowest < 0)
    return f"{runs}{medians}{counted}:"


def _policies(number: int, data: StudyData, found: Mapping[str, Mapping[str, Evidence]]) -> Iterator[Block]:
    made = [tables.policies(families.get(COMPARISON), data.tasks) for families in found.values()]
    sizes = [table for table in made if table is not None]
    if sizes:
        yield Heading(2, f"Question {number}: Does it work with large policies?")
        yield from sizes


def _others(data: StudyData, found: Mapping[str, Mapping[str, Evidence]], gallery: Gallery) -> Iterator[Block]:
    """Comparisons that answer no question of the paper."""
    asked = {task for question in QUESTIONS for task in question.tasks if data.papers}
    parts = [
        (families[COMPARISON], preset, task)
        for preset, families in found.items()
        if COMPARISON in families
        for task in families[COMPARISON].tasks
        if task not in asked
    ]
    if parts:
        yield Heading(2, "Other tasks" if data.papers else "Results")
        for some, preset, task in parts:
            yield from _compared(data, some, COMPARISON, preset, task, gallery)


def _differences(found: Mapping[str, Mapping[str, Evidence]]) -> Iterator[Block]:
    """Tests of every headline metric, a column per task; what was run on one task has them there."""
    compared = [
        (family, preset, some)
        for preset, families in found.items()
        for family, some in families.items()
        if len(some.tasks) > 1 and _can_differ(some.compared)
    ]
    if not compared:
        return
    yield Heading(2, "Differences across tasks")
    yield Text(
        "Differences are tested with exact two-sided Mann-Whitney U tests on midranks, corrected by Holm for all pairs "
        "on a task and metric; the effect size A is the share of pairs of runs in which the first is larger (0.5: no "
        "difference). Results of different presets, tasks or studies are never pooled."
    )
    for family, preset, some in compared:
        yield Heading(3, f"{family} ({preset})")
        wanted = (headline(rows) for _, rows in some.results.groupby("task", sort=False))
        there = set(some.compared["metric"])
        tested = [tables.across_tasks(some, name) for name in dict.fromkeys(itertools.chain(*wanted)) if name in there]
        if _can_decide(some.compared):
            yield from tested
        else:
            yield Text(f"These seeds are too few: whatever they found, no corrected p could be {ALPHA} or less.")
            yield Details("The tests all the same", tuple(tested))


def _can_differ(compared: pd.DataFrame) -> bool:
    """Whether a test among these can find anything: with one seed each, every p is 1."""
    return bool((compared["smallest_p"] < 1).any())


def _can_decide(compared: pd.DataFrame) -> bool:
    """Whether a test among these can reach the level at which differences count, corrected for all pairs."""
    pairs = compared.groupby(["task", "metric"])["smallest_p"]
    return bool((pairs.min() * pairs.size() <= ALPHA).any())


def _convergence(data: StudyData, gallery: Gallery) -> Iterator[Block]:
    drawn: list[Block] = []
    for preset, task in data.results[["preset", "task"]].drop_duplicates().itertuples(index=False, name=None):
        part = data.part(family=COMPARISON, preset=preset, task=task)
        if part.runs:
            drawn += pictures.codebook(part, slug(f"codebook-{preset}-{task}"), f"{task} ({preset})", gallery)
    if drawn:
        yield Heading(2, "Does the model converge?")
        yield Text(
            "Snapshots of the codebook show what its codes stand for as a run goes on, and how far they still move. A "
            "model that converges moves less and less."
        )
        yield from drawn


def _closing(data: StudyData) -> Iterator[Block]:
    yield Heading(2, "Configuration, versions and time")
    what = "Every number and every verdict" if data.papers else "Every number"
    yield Text(f"{what} is computed from the run folders.")
    yield tables.times(data)
    yield tables.environments(data)
    yield Text("All settings of every algorithm or variant:")
    yield from tables.configuration(data)
