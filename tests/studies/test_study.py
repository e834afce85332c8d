"""Studies as data: what the named ones contain, how they are written down, and how runs are divided."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vqelites.runs.config import Config
from vqelites.runs.files import RunError, write_sealed
from vqelites.studies import catalogue, memory, study
from vqelites.studies.commands import StudyCommand
from vqelites.studies.study import Group, Study

NAMES = ["paper", "ablation-update", "ablation-cooperation", "ablation-bounding", "ablation-start"]


def settings_of(name, **options):
    return {group.label: group.config.settings for group in catalogue.named(name, **options).groups}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("preset", ["paper", "quick", "literal"])
def test_a_study_comes_back_from_its_file(name, preset, tmp_path):
    made = catalogue.named(name, preset=preset)
    study.write(made, tmp_path)
    assert study.read(tmp_path) == made


def test_the_papers_evaluation_has_its_tasks_algorithms_and_seeds():
    groups = catalogue.named("paper").groups
    assert {group.config.task for group in groups} == {"mobile-free", "mobile-l", "arm", "arm-constrained", "minigrid"}
    assert len(groups) == 5 * 4
    assert {group.config.task: len(group.seeds) for group in groups} == {
        "mobile-free": 10, "mobile-l": 10, "arm": 10, "arm-constrained": 10, "minigrid": 5,
    }  # fmt: skip
    assert {group.config.settings.search.iterations for group in groups if group.config.task == "minigrid"} == {10000}


def test_the_ablation_of_updates_varies_pace_and_cooperation_only():
    made = settings_of("ablation-update")
    paces = {(s.update_every, s.epochs, s.cooperate) for s in made.values()}
    assert paces == {(every, epochs, share) for every, epochs in ((1, 1), (5, 10), (100, 100)) for share in (0.0, 0.1)}
    assert len({replace(s, update_every=1, epochs=1, cooperate=0) for s in made.values()}) == 1


def test_the_ablation_of_bounding_has_codes_in_the_box_only_where_it_says_so():
    made = settings_of("ablation-bounding")
    assert {label: (s.model.bounded, s.codebook) for label, s in made.items()} == {
        "bounded": (True, "kmeans"),
        "unbounded": (False, "random"),  # unbounded and random: normally distributed
        "unbounded, codes in [-1, 1]": (False, "kmeans"),
    }


def test_the_ablation_of_the_start_crosses_bootstrap_and_codebook():
    made = settings_of("ablation-start").values()
    starts = {(s.search.bootstrap > 0, s.model.bootstrap_epochs > 0, s.codebook) for s in made}
    assert starts == {(on, on, codes) for on in (True, False) for codes in ("kmeans", "random")}


def test_the_ablation_of_cooperation_switches_it_for_each_algorithm():
    groups = catalogue.named("ablation-cooperation").groups
    shares = {(group.config.algorithm, group.config.settings.cooperate) for group in groups}
    assert shares == {(name, share) for name in ("vq-elites", "aurora", "aurora-plus") for share in (0.0, 0.1)}


def test_ablations_run_where_the_paper_ran_them_and_elsewhere_if_told():
    for name in NAMES[1:]:
        assert {group.config.task for group in catalogue.named(name).groups} == {"mobile-l"}
        moved = catalogue.named(name, preset="quick", tasks=["mobile-l"], seeds=2)
        assert {(group.config.task, group.config.preset, group.seeds) for group in moved.groups} == {
            ("mobile-l", "quick", (0, 1))
        }


def test_another_length_is_the_only_change():
    made = catalogue.named("paper", preset="quick")
    shorter = catalogue.with_iterations(made, 7)
    assert {group.config.iterations for group in shorter.groups} == {7}
    assert catalogue.with_iterations(shorter, 99) == catalogue.with_iterations(made, 99)


@given(st.lists(st.integers(), unique=True, max_size=30), st.integers(1, 12))
def test_seeds_are_divided_into_few_parts_of_nearly_equal_size(seeds, most):
    parts = memory.divided(seeds, most)
    assert [seed for part in parts for seed in part] == seeds
    assert len(parts) == -(-len(seeds) // most)
    sizes = [len(part) for part in parts]
    assert max(sizes, default=0) <= most
    assert max(sizes, default=0) - min(sizes, default=0) <= 1


@given(st.integers(1, 10**9), st.integers(1, 10**12))
def test_as_many_runs_as_fit_and_at_least_one(size, limit):
    count = memory.fitting(size, limit)
    assert count >= 1
    assert count == 1 or count * memory.FACTOR * size <= limit
    assert (count + 1) * memory.FACTOR * size > limit


def test_memory_is_limited_to_less_than_there_is():
    assert 10**8 < memory.limit() < 10**13


CONFIG = Config.of("planar-arm", "map-elites", "quick")


@pytest.mark.parametrize("labels", [("a", "a"), ("a b", "A-b"), ("",), ("<>",)])
def test_labels_that_would_share_a_folder_or_have_none_are_refused(labels):
    with pytest.raises(ValueError, match="label"):
        Study("comparison", "?", tuple(Group(label, CONFIG, (0,)) for label in labels))


def test_an_empty_study_and_repeated_seeds_are_refused():
    with pytest.raises(ValueError, match="at least one group"):
        Study("comparison", "?", ())
    with pytest.raises(ValueError, match="different seeds"):
        Group("a", CONFIG, (1, 1))


def test_joining_adds_seeds_and_groups_but_never_changes_settings(tmp_path):
    old = Study("comparison", "?", (Group("a", CONFIG, (0, 1)),))
    new = Study("comparison", "?", (Group("a", CONFIG, (1, 2)), Group("b", CONFIG, (0,))))
    both = study.joined(old, new, tmp_path)
    assert [(group.label, group.seeds) for group in both.groups] == [("a", (0, 1, 2)), ("b", (0,))]
    changed = catalogue.with_iterations(old, 5)
    with pytest.raises(RunError, match=r"other settings: settings\.search\.iterations 300 -> 5"):
        study.joined(old, changed, tmp_path)
    with pytest.raises(RunError, match="holds the study 'comparison', not 'paper'"):
        study.joined(old, replace(new, name="paper"), tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": 3}, "groups must be a list"),
        ({"name": None}, "name is missing"),
        ({"groups": []}, "at least one group"),
        ({"groups": [{"label": "a", "task": "arm", "algorithm": "magic", "preset": "quick"}]}, "knows no 'magic'"),
        ({"format": 99}, "Use the newer version"),
        ({"format": 1, "vqelites": "0.0.7"}, r"an earlier vqelites \(0\.0\.7\)"),
    ],
)
def test_a_study_file_that_cannot_be_right_is_named(change, message, tmp_path):
    write_sealed(tmp_path / study.FILE, {"format": study.FORMAT, "name": "x", "question": "?", "groups": [], **change})
    with pytest.raises(RunError, match=message):
        study.read(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Name at least one task"),
        ({"tasks": ("armm",)}, "Did you mean arm"),
        ({"tasks": ("arm", "arm")}, "each only once"),
        ({"tasks": ("arm",), "seeds": 0}, "at least 1 seed"),
        ({"tasks": ("arm",), "together": 0}, "--together must be at least 1"),
        ({"study": "paper", "algorithms": ("aurora",)}, "leave out --algorithms"),
        ({"tasks": ("arm",), "iterations": 0}, "iterations must be a whole number of at least 1"),
    ],
)
def test_impossible_commands_say_why(options, message):
    with pytest.raises(ValueError, match=message):
        StudyCommand(**options).chosen()


def test_the_command_of_the_documentation_is_what_it_says():
    made = StudyCommand(("arm", "arm-constrained"), preset="quick", seeds=3).chosen()
    assert made.runs == 2 * 4 * 3
    assert {group.label for group in made.groups} == {"vq-elites", "map-elites", "aurora", "aurora-plus"}
