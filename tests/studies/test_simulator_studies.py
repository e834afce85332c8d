"""Studies of simulators in plain Python: made, interrupted, continued, and reported on without them."""

import io
import multiprocessing
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import small_simulators
from small_studies import small

from vqelites import cli
from vqelites.runs.config import Config, Evaluating
from vqelites.runs.files import RunError
from vqelites.runs.folder import open_folder
from vqelites.runs.run import Run
from vqelites.studies import catalogue, study
from vqelites.studies.commands import StudyCommand
from vqelites.studies.execute import run_study
from vqelites.studies.load import load_study
from vqelites.studies.pictures import can_draw
from vqelites.studies.progress import StudyDisplay
from vqelites.studies.report import write_report
from vqelites.studies.study import asked
from vqelites.tasks import registry

FILE = Path(small_simulators.__file__)
_SEARCH = {"iterations": 10, "batch_size": 8, "bootstrap": 48}


@pytest.fixture
def known():
    """The simulators by name, for one test."""
    small_simulators.register()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two simulators, two algorithms each, two seeds; nobody knows the simulators any more. Not to be changed."""
    root = tmp_path_factory.mktemp("simulators")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_ENTRIES", dict(registry._ENTRIES))
        small_simulators.register()
        assert run_study(plan(), root)
    return root


def plan(workers=None):
    """Without any truth, and with truth and bins."""
    without = catalogue.comparison(["blind"], ["vq-elites", "aurora-plus"], preset="quick", seeds=2)
    with_truth = catalogue.comparison(["seen"], ["map-elites", "cvt-map-elites"], preset="quick", seeds=2)
    both = replace(without, groups=(*without.groups, *with_truth.groups))
    return catalogue.with_evaluating(small(both, search=_SEARCH), Evaluating(workers))


def sections(page):
    """What stands below every heading of the Markdown; none may be empty."""
    parts = re.split(r"^(#+ .*)$", page, flags=re.M)[1:]
    titles, texts = parts[::2], [text.strip() for text in parts[1::2]]
    for title, text, after in zip(titles, texts, [*titles[1:], "#"], strict=True):
        assert text or after.count("#") > title.count("#"), f"nothing below {title}"
    return dict(zip(titles, texts, strict=True))


def test_the_study_file_knows_interface_and_evaluating(finished):
    made = study.read(finished)
    shapes = {group.config.task: group.config.interface for group in made.groups}
    assert {name: (found.behavior_shape, found.truth_dim) for name, found in shapes.items()} == {
        "blind": ((8, 2), 0),
        "seen": ((8, 2), 2),
    }
    for group in made.groups:
        assert open_folder(group.folder(finished, 1)).config == group.config


@pytest.mark.slow
def test_a_report_needs_neither_truth_nor_the_simulators(finished, tmp_path):
    path = write_report(finished, out=tmp_path / "report.html")
    page = path.with_suffix(".md").read_text()
    found = sections(page)
    assert not [title for title in found if "Question" in title or "Claims" in title]  # those are the paper's
    blind, seen = found["### blind (quick)"], found["### seen (quick)"]
    assert "QD score, archive size, max fitness over the iterations" in blind
    for word in ("coverage", "PQD", "EDR"):
        assert word not in blind
    assert re.search(r"\| QD score \| vq-elites \| aurora-plus \| 2, 2 \|", blind)
    assert "Of every algorithm the run with the median QD score is shown." in blind
    assert "coverage, PQD, EDR, CDS over the iterations" in seen
    assert "Best fitness in every bin of the 6x6 grid" in seen
    names = {picture.stem for picture in (tmp_path / "report-pictures").glob("*.png")}
    part = "comparison-quick"
    assert {f"{part}-blind-behaviors", f"{part}-blind-descriptors-aurora-plus", f"{part}-seen-archives"} <= names
    assert "tasks" not in names  # nobody here can draw their worlds
    assert "seen: 3 numbers in a solution, behavior of shape 8x2, 36 reachable bins." in page
    for metric in ("QD score", "archive size", "max fitness", "coverage", "PQD"):
        assert f"Corrected p of the difference in final {metric}." in page


@pytest.mark.long
def test_with_the_simulators_at_hand_their_worlds_are_drawn(finished, known, tmp_path):
    write_report(finished, out=tmp_path / "report.html")
    names = {picture.stem for picture in (tmp_path / "report-pictures").glob("*.png")}
    assert {"tasks", "comparison-quick-seen-behaviors"} <= names


def test_results_have_what_needs_no_truth(finished):
    data = load_study(finished)
    rows = data.results.set_index(["task", "algorithm", "seed"])
    for key, folder in data.runs.items():
        archive, row = Run(folder).archive, rows.loc[(key.task, key.algorithm, key.seed)]
        assert row["qd_score"] == pytest.approx((archive.fitness - row["lowest"]).sum(), rel=1e-4)
        assert row["size"] == len(archive)
        group = [Run(other).archive.fitness.min() for one, other in data.runs.items() if one.task == key.task]
        assert row["lowest"] == min(*group, 0)
        assert np.isnan(row["coverage"]) == np.isnan(row["edr_common"]) == (key.task == "blind")
    assert not can_draw(data.tasks["seen"])
    assert data.tasks["seen"].space.dim == 3


def test_a_drawing_that_fails_without_solutions_is_left_out(known):
    class Clumsy(small_simulators.Seen):
        def draw(self, axes, solutions):
            axes.plot(*np.stack([small_simulators.rolled(solution) for solution in solutions]).T)

    registry.simulator(name="clumsy", solution_dim=3, **small_simulators.SEEN)(Clumsy)
    assert registry.make("clumsy").drawable
    assert not can_draw(registry.make("clumsy"))
    assert can_draw(registry.make("seen"))


def test_a_study_with_workers_that_stops_and_goes_on_ends_the_same_and_leaves_no_workers(finished, known, tmp_path):
    """Workers do not change results: the whole study was computed in this process."""
    made = replace(plan(workers=2), groups=plan(workers=2).groups[2:3])
    chunks = []

    def watch(progress):
        chunks.append(getattr(progress.event, "phase", None) == "running")

    assert not run_study(made, tmp_path, watch=watch, stop=lambda: sum(chunks) >= 1)
    assert not multiprocessing.active_children()
    assert run_study(replace(plan(workers=1), groups=plan(workers=1).groups[2:3]), tmp_path)
    assert not multiprocessing.active_children()
    for seed in (0, 1):
        one, other = (Run.load(root / "seen" / "map-elites" / f"seed-{seed}") for root in (finished, tmp_path))
        assert one.archive.ids.tolist() == other.archive.ids.tolist()
        assert one.archive.fitness.tobytes() == other.archive.fitness.tobytes()
    load_study(tmp_path)  # does not mind either


def test_sums_over_archives_of_different_size_are_not_compared_without_a_word(finished):
    notes = [note for note in load_study(finished).notes if "QD score" in note]
    assert len(notes) == 1
    assert "blind" in notes[0]


def test_plain_lines_tell_what_the_evaluator_does(known, tmp_path, monkeypatch):
    monkeypatch.setattr("vqelites.studies.progress._EVERY", 0)
    monkeypatch.setattr("vqelites.runs.group._TELL_EVERY", 0)
    file = io.StringIO()
    with StudyDisplay("plain", file) as display:
        run_study(replace(plan(), groups=plan().groups[2:3]), tmp_path, watch=display)
    text = file.getvalue()
    assert re.search(
        r"map-elites on seen, seeds 0, 1: iteration 0/10, \d+ s, bootstrap: 95 of 96 evaluations, \d+", text
    )
    assert re.search(r"iteration 5/10, .* evaluations/s, coverage 0\.\d+, PQD", text)


def test_simulators_of_one_name_that_differ_are_not_mixed(finished, known, tmp_path):
    registry._ENTRIES.pop("seen")
    registry.simulator(name="seen", solution_dim=3, high=2.0, **small_simulators.SEEN)(small_simulators.Seen)
    other = replace(plan(), groups=(replace(plan().groups[2], seeds=(7,)),))
    assert run_study(other, tmp_path)
    with pytest.raises(RunError, match=r"different simulators named seen: high 1\.0 -> 2\.0"):
        load_study(finished, tmp_path)


def test_map_elites_without_a_truth_is_refused_before_any_work(known, tmp_path):
    made = small(catalogue.comparison(["blind"], ["vq-elites", "map-elites"], preset="quick", seeds=1))
    with pytest.raises(ValueError, match="MAP-Elites needs hand-coded cells"):
        run_study(made, tmp_path)
    assert not (tmp_path / "study.json").exists()


def test_workers_are_for_simulators_only(known):
    made = StudyCommand(("planar-arm", "blind"), algorithms=("vq-elites",), seeds=1, workers=3, retries=1).chosen()
    assert [group.config.evaluating for group in made.groups] == [Evaluating(), Evaluating(3, None, 1)]
    with pytest.raises(ValueError, match="all tasks here are in JAX"):
        StudyCommand(("planar-arm",), workers=3).chosen()


@pytest.mark.slow
def test_the_commands_take_a_task_file(tmp_path, capsys):
    options = ["--algorithms", "map-elites", "--seeds", "1", "--preset", "quick", "--iterations", "2", "--workers", "1"]
    for command in (["study", "seen", *options, "--out"], ["report"]):
        with pytest.raises(SystemExit) as ended:
            cli.main([*command, str(tmp_path / "study"), "--task-file", str(FILE)])
        assert ended.value.code == 0, capsys.readouterr().err
    assert study.read(tmp_path / "study").groups[0].config.evaluating == Evaluating(1)
    page = (tmp_path / "study" / "report.md").read_text()
    assert "## Differences" not in page  # there is nothing to compare one algorithm with
    assert "### seen (quick)" in sections(page)


def test_workers_with_a_time_out_are_no_other_study():
    """Comparing such a study with itself used to be an error."""
    config = Config.of("planar-arm", "vq-elites", "quick")
    tried = [Evaluating(2, 3.0), Evaluating(4, 3.0), Evaluating(None, 3.0, cluster="auto", num_cpus=2)]
    assert len({asked(replace(config, evaluating=one)).evaluating for one in tried}) == 1
    assert asked(replace(config, evaluating=Evaluating(2, 5.0))) != asked(replace(config, evaluating=tried[0]))
