"""The presets hold the numbers of the paper's tables, and build an algorithm for every task."""

from dataclasses import replace

import pytest

from vqelites import AskTell, cli
from vqelites.archives import CellArchive, UnstructuredArchive
from vqelites.experiments import presets as table
from vqelites.experiments.build import build
from vqelites.experiments.config import VQElitesSettings
from vqelites.experiments.presets import algorithms, presets, settings
from vqelites.tasks import registry

# iterations, cells, latent numbers, epochs per update, iterations between updates, AURORA's capacity
TABLE = {
    "mobile-free": (3000, 2000, 2, 10, 5, 5000),
    "mobile-l": (3000, 2000, 2, 10, 5, 5000),
    "arm": (3000, 1500, 5, 10, 5, 2500),
    "arm-constrained": (3000, 1500, 5, 10, 5, 2500),
    "minigrid": (10000, 400, 5, 10, 10, 800),
}


@pytest.mark.parametrize("preset", ["paper", "literal"])
@pytest.mark.parametrize("task", TABLE)
def test_sizes_of_the_papers_tables(task, preset):
    iterations, cells, latent, epochs, update_every, capacity = TABLE[task]
    made = {name: settings(task, name, preset) for name in algorithms()}
    assert all((s.search.iterations, s.search.batch_size) == (iterations, 128) for s in made.values())
    vq = made["vq-elites"]
    assert (vq.cells, vq.model.latent_dim, vq.epochs, vq.update_every) == (cells, latent, epochs, update_every)
    assert made["cvt-map-elites"].cells == cells
    for name, limits in {"aurora": (1e-5, 1e-5, 1e5, 5e-6, 0), "aurora-plus": (1e-5, 1e-5, 1, 5e-4, 0.1)}.items():
        s = made[name]
        assert (s.target, s.capacity, s.epochs, s.model.latent_dim) == (cells, capacity, 100, latent)
        assert (s.initial, s.minimum, s.maximum, s.k_csc, s.cooperate) == limits
        assert s.model.bounded == (name == "aurora-plus")
    for s in (vq, made["aurora"], made["aurora-plus"]):
        assert (s.model.learning_rate, s.model.minibatch, s.model.networks) == (7e-4, 64, task.split("-")[0])


@pytest.mark.parametrize("task", TABLE)
def test_auroras_threshold_can_go_as_far_in_quick_size_as_at_full_size(task):
    """Steered as at full size it hardly moved in 300 iterations, and plain AURORA looked better than it is."""
    full, quick = (settings(task, "aurora", preset) for preset in ("paper", "quick"))
    assert quick.search.iterations < full.search.iterations
    assert quick.k_csc * quick.search.iterations == pytest.approx(full.k_csc * full.search.iterations)
    assert settings(task, "aurora-plus", "quick").k_csc == settings(task, "aurora-plus").k_csc


def test_all_learned_models_see_the_same():
    """Search, loss, scale, blur, units and training data: no baseline has worse settings than ours."""
    for task in TABLE:
        vq, *auroras = (settings(task, name) for name in ("vq-elites", "aurora", "aurora-plus"))
        for aurora in auroras:
            own = {"bounded": aurora.model.bounded, "final_rate": aurora.model.final_rate}
            assert replace(vq.model, **own) == aurora.model
            assert (vq.data.distinct, vq.data.overlap) == (aurora.distinct, aurora.overlap) == (True, None)
            assert vq.search == aurora.search
        for name in ("map-elites", "cvt-map-elites"):  # one cell for each tile: uniform parents serve them better
            assert settings(task, name).search == replace(vq.search, tournament=1)


@pytest.mark.parametrize("preset", ["paper", "quick"])
@pytest.mark.parametrize("task", TABLE)
def test_one_default_for_all_tasks(task, preset):
    """Presets differ in sizes; only the search of the grid world is its own."""
    made, default = settings(task, "vq-elites", preset), VQElitesSettings()
    sizes = ("networks", "latent_dim", "bootstrap_epochs")
    assert replace(made.model, **{name: getattr(default.model, name) for name in sizes}) == default.model
    assert made.data == default.data
    own = {"iso", "line", "tournament"} if task == "minigrid" else set()
    differing = {name for name, value in vars(made.search).items() if value != getattr(default.search, name)}
    assert differing <= {"iterations"} | own
    rest = replace(made, model=default.model, search=default.search)
    sizes = ("cells", "update_every", "epochs")
    assert replace(rest, **{name: getattr(default, name) for name in sizes}) == default


def test_the_literal_form_departs_in_nothing():
    s = settings("arm", "vq-elites", "literal")
    assert (s.model.blur, s.model.loss, s.model.reduction) == (0, "squared", "sum")
    assert (s.model.standardise, s.model.principal) == (False, False)
    assert (s.stretch, s.equal_cells, s.even, s.data.distinct) == (0, 0, False, False)
    assert (s.model.final_rate, s.fringe, s.data.archive, s.data.replay) == (1, False, 0, 0)
    for task, filtered in {"minigrid": None, "mobile-l": 0.5}.items():
        s = settings(task, "vq-elites", "literal")
        assert (s.drift, s.data.archive, s.data.overlap) == (False, 0, filtered)
        assert not settings(task, "map-elites", "literal").drift
        searches = [settings(task, name, "literal").search for name in algorithms()]
        assert {(search.iso, search.line, search.tournament) for search in searches} == {(0.01, 0.2, 1)}
        aurora = settings(task, "aurora", "literal")
        assert aurora.model.reduction == s.model.reduction == "sum"
        assert (aurora.overlap, aurora.distinct, aurora.stretch) == (filtered, False, 0)


@pytest.mark.parametrize("task", registry.names())
def test_every_preset_builds(task):
    made = registry.make(task)
    for algorithm in ("map-elites", "vq-elites", "aurora", "aurora-plus"):
        for preset in presets():
            qd = build(made, settings(task, algorithm, preset))
            assert isinstance(qd.archive, UnstructuredArchive if algorithm.startswith("aurora") else CellArchive)
            assert qd.schedule.iterations == settings(task, algorithm, preset).search.iterations


def test_cooperation_is_a_share_of_the_run():
    chosen = settings("planar-arm", "aurora-plus")
    short = replace(chosen, search=replace(chosen.search, iterations=50))
    assert build(registry.make("planar-arm"), short).schedule.cooperate == 5
    with pytest.raises(ValueError, match=r"between 0 and 1, but got 30"):
        build(registry.make("planar-arm"), replace(chosen, cooperate=30))


def test_wrong_names_get_suggestions():
    with pytest.raises(ValueError, match=r"no algorithm named 'vqelites'.*vq-elites"):
        settings("arm", "vqelites")
    with pytest.raises(ValueError, match=r"no preset named 'papers'.*Did you mean paper"):
        settings("arm", "aurora", "papers")


def test_an_algorithm_is_registered_in_one_place(monkeypatch, capsys):
    """One line in the table of presets, and the command line, runs and ask/tell know it."""
    own = replace(table._ALGORITHMS["map-elites"], summary="mine")
    monkeypatch.setitem(table._ALGORITHMS, "my-elites", own)
    command = cli._parse(["run", "planar-arm", "--algorithm", "my-elites"])
    assert (command.algorithm, command.settings) == ("my-elites", settings("planar-arm", "map-elites"))
    qd = AskTell("my-elites", solution_dim=2, behavior_shape=2, truth_low=(0, 0), truth_high=(1, 1), bins=(2, 2))
    assert repr(qd).startswith("<my-elites: 0 elites")
    with pytest.raises(SystemExit):
        cli.main(["algorithms"])
    assert "my-elites" in capsys.readouterr().out


def test_a_record_of_settings_is_taken_with_single_values_in_its_place():
    own = replace(VQElitesSettings(), cells=50, beta=0.5)
    assert table.wanted("", "vq-elites", record=own, values={"cells": 60}) == replace(own, cells=60)
    with pytest.raises(ValueError, match="aurora takes AuroraSettings, not VQElitesSettings"):
        table.wanted("", "aurora", record=own)
