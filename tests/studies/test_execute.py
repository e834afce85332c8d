"""Studies that stop and go on: between groups, inside them, after damage; and what they refuse."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from small_studies import small

from vqelites.runs.files import RunError
from vqelites.runs.folder import locked, open_folder
from vqelites.runs.run import Run
from vqelites.studies import catalogue, study
from vqelites.studies.execute import run_study
from vqelites.studies.progress import StudyDisplay
from vqelites.tasks import registry


@pytest.fixture(scope="module")
def plan():
    """Two groups of three seeds, without a model: fast."""
    made = catalogue.comparison(["planar-arm"], ["map-elites", "cvt-map-elites"], preset="quick", seeds=3)
    return small(made, search={"iterations": 10, "batch_size": 16, "bootstrap": 32}, cells=20)


@pytest.fixture(scope="module")
def whole(plan, tmp_path_factory):
    """The study, never interrupted."""
    root = tmp_path_factory.mktemp("whole")
    assert run_study(plan, root)
    return root


class Watch:
    """Remembers what was told, and says stop after some chunks."""

    def __init__(self, chunks=10**6):
        self.seen, self.chunks = [], chunks

    def __call__(self, progress):
        self.seen.append(progress)

    def stop(self):
        return sum(p.event is not None and getattr(p.event, "phase", "") == "running" for p in self.seen) >= self.chunks

    @property
    def works(self):
        return [(p.work.kind, p.work.group.label, p.work.seeds) for p in self.seen if p.event is None]


def assert_same(plan, one, other):
    """Metrics (their time aside) and archives agree bit for bit."""
    for group in plan.groups:
        for seed in group.seeds:
            a, b = (Run.load(group.folder(root, seed)) for root in (one, other))
            assert a.finished
            assert b.finished
            assert a.metrics.drop(columns="seconds").equals(b.metrics.drop(columns="seconds"))
            for x, y in zip(vars(a.archive).values(), vars(b.archive).values(), strict=True):
                assert x.tobytes() == y.tobytes()


def test_every_seed_has_its_folder_and_seeds_differ(plan, whole):
    assert study.read(whole) == plan
    pqd = {Run.load(group.folder(whole, seed)).metrics["pqd"].iloc[-1] for group in plan.groups for seed in group.seeds}
    assert len(pqd) == 6


@pytest.mark.parametrize("chunks", [0, 1, 2, 3])  # before all, inside the first group, between both, inside the second
def test_a_study_that_was_interrupted_ends_as_if_it_had_not_been(plan, whole, tmp_path, chunks):
    first = Watch(chunks)
    assert not run_study(plan, tmp_path, watch=first, stop=first.stop)
    again = Watch()
    assert run_study(plan, tmp_path, watch=again)
    begun = {0: [], 1: ["map-elites"], 2: [], 3: ["cvt-map-elites"]}[chunks]
    assert [label for kind, label, _ in again.works if kind == "resume"] == begun
    assert_same(plan, whole, tmp_path)


def test_finished_runs_are_left_alone(plan, whole):
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*.*") if path.name not in (".lock", "study.json")}
    watch = Watch()
    assert run_study(plan, whole, watch=watch)
    assert watch.seen == []
    assert before == {path: path.stat().st_mtime_ns for path in before}


@pytest.mark.slow
def test_more_seeds_are_added_to_what_is_there(plan, tmp_path):
    (first, _) = plan.groups
    fewer = replace(plan, groups=(replace(first, seeds=(0, 1)),))
    run_study(fewer, tmp_path)
    watch = Watch()
    assert run_study(replace(plan, groups=(replace(first, seeds=(0, 1, 2)),)), tmp_path, watch=watch)
    assert watch.works == [("start", "map-elites", (2,))]
    assert study.read(tmp_path).groups[0].seeds == (0, 1, 2)


@pytest.mark.slow
def test_together_says_how_many_seeds_go_into_one_program(plan, tmp_path):
    watch = Watch()
    run_study(replace(plan, groups=plan.groups[:1]), tmp_path, together=2, watch=watch)
    assert [seeds for _, _, seeds in watch.works] == [(0, 1), (2,)]
    folder = open_folder(plan.groups[0].folder(tmp_path, 1))
    assert folder.group == {0: "seed-0", 1: "seed-1"}


def test_memory_decides_how_many_if_nobody_says(plan, tmp_path, monkeypatch):
    monkeypatch.setattr("vqelites.studies.memory.limit", lambda: 1)
    watch = Watch()
    run_study(replace(plan, groups=plan.groups[:1]), tmp_path, watch=watch)
    assert [seeds for _, _, seeds in watch.works] == [(0,), (1,), (2,)]


def test_other_settings_in_the_folder_are_an_error_and_change_nothing(plan, whole):
    before = (whole / "study.json").read_bytes()
    with pytest.raises(RunError, match=r"map-elites on planar-arm with other settings: .*iterations 10 -> 20"):
        run_study(catalogue.with_iterations(plan, 20), whole)
    with pytest.raises(RunError, match="holds the study 'comparison', not 'paper'"):
        run_study(replace(plan, name="paper"), whole)
    assert (whole / "study.json").read_bytes() == before


def test_a_folder_with_other_things_is_refused(plan, tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RunError, match=r"holds 'thesis\.txt', but no study"):
        run_study(plan, tmp_path)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == ["thesis.txt"]


def test_a_run_in_anothers_place_is_refused(plan, tmp_path):
    watch = Watch(1)
    run_study(plan, tmp_path, watch=watch, stop=watch.stop)
    place = plan.groups[0].folder(tmp_path, 0)
    place.rename(plan.groups[0].folder(tmp_path, 7))
    plan.groups[0].folder(tmp_path, 1).rename(place)
    with pytest.raises(RunError, match="not those of its place"):
        run_study(plan, tmp_path)


def test_a_process_that_died_while_folders_were_made_is_made_good(plan, whole, tmp_path):
    watch = Watch(0)
    run_study(plan, tmp_path, watch=watch, stop=watch.stop)
    group = plan.groups[0]
    one = json.loads((group.folder(whole, 0) / "config.json").read_text())
    group.folder(tmp_path, 0).mkdir(parents=True)
    (group.folder(tmp_path, 0) / "config.json").write_text(json.dumps(one))  # the other two were never written
    again = Watch()
    assert run_study(plan, tmp_path, watch=again)
    assert again.works[0] == ("replace", "map-elites", (0, 1, 2))
    assert_same(plan, whole, tmp_path)


def test_a_damaged_archive_is_mended_from_the_checkpoint(plan, whole, tmp_path):
    run_study(plan, tmp_path)
    (plan.groups[1].folder(tmp_path, 2) / "archive.npz").write_bytes(b"not an archive")
    watch = Watch()
    assert run_study(plan, tmp_path, watch=watch)
    assert watch.works == [("resume", "cvt-map-elites", (0, 1, 2))]
    assert_same(plan, whole, tmp_path)


def test_two_processes_cannot_run_the_same_study(plan, whole):
    with locked([whole]), pytest.raises(RunError, match="Another process"):
        run_study(plan, whole)


def test_impossible_settings_are_an_error_before_any_work(plan, tmp_path):
    broken = replace(plan.groups[1], config=replace(plan.groups[1].config, task="nowhere"))
    with pytest.raises(RunError, match="There is no task named 'nowhere'"):
        run_study(replace(plan, groups=(plan.groups[0], broken)), tmp_path)
    assert not (tmp_path / "study.json").exists()
    assert "nowhere" not in registry.names()


def test_plain_lines_tell_what_is_done_and_quiet_tells_nothing(plan, tmp_path):
    shown, silent = io.StringIO(), io.StringIO()
    one = replace(plan, groups=plan.groups[:1])
    with StudyDisplay("plain", shown) as display, StudyDisplay("quiet", silent) as other:
        run_study(one, tmp_path, watch=lambda progress: (display(progress), other(progress)))
    lines = shown.getvalue().splitlines()
    assert lines[0].startswith("[0/3 runs finished] map-elites on planar-arm, seeds 0, 1, 2: 10 iterations")
    last = Run.load(one.groups[0].folder(tmp_path, 1)).metrics.iloc[-1]
    assert "iteration 10/10" in lines[-1]
    pqd = np.median([Run.load(one.groups[0].folder(tmp_path, s)).metrics["pqd"].iloc[-1] for s in range(3)])
    assert f"PQD {pqd:.1f}" in lines[-1]
    assert last["iteration"] == 10
    assert silent.getvalue() == ""


def test_bars_count_runs(plan, tmp_path):
    display = StudyDisplay("bar", io.StringIO())
    with display:
        run_study(plan, tmp_path, watch=display)
    whole, current = display._bars.tasks
    assert (whole.completed, whole.total) == (6, 6)
    assert (current.completed, current.total) == (10, 10)
    assert current.description == "cvt-map-elites on planar-arm, seeds 0, 1, 2"
