"""The page without a browser: what its widgets do."""

import asyncio
import re
import shutil

import numpy as np
import pytest
from bokeh.document import Document
from folders import write_run

from vqelites.explore.page import Explorer
from vqelites.explore.source import NotShownError
from vqelites.runs.explored import ExploredRun

NASTY = "<script>alert(1)</script>"


@pytest.fixture
def folder(tmp_path):
    return write_run(tmp_path / "run")


@pytest.fixture
def page(folder):
    return Explorer([ExploredRun(folder)])


def said(view):
    """The sentences that are shown."""
    return [pane.object for pane in view.message]


def test_the_newest_map_is_shown_with_its_cells(page):
    view = page.views[0]
    assert view.scene.iteration == 20
    assert len(view.map.cells.data["id"]) == 60
    assert len(view.map.empty.data["xs"]) == 4
    assert said(view) == []


def test_the_slider_changes_the_map(page):
    view = page.views[0]
    view.moment.value = 5
    assert len(view.map.cells.data["id"]) == 15
    assert "15 elites after iteration 5" in view.caption.object


@pytest.mark.parametrize("kind", ["vector", "series", "image", "colour", "video"])
def test_a_chosen_elite_shows_its_behavior(tmp_path, kind):
    view = Explorer([ExploredRun(write_run(tmp_path / "run", kind))]).views[0]
    assert not view.elite.view.visible
    assert view._count.object == "Click on the map to choose an elite."
    view.choose([int(view.record.archive.ids[45])])  # whose behavior is full of 45 / 60
    assert view._count.object == "<b>1</b> chosen"
    assert view.elite.view.visible
    behavior = view.elite.behavior
    if kind == "vector":
        np.testing.assert_allclose(behavior.source.data["y"], 0.75)
    elif kind == "series":
        np.testing.assert_allclose(behavior.source.data["ys"], 0.75)
    else:
        assert len(behavior.frames.data["image"]) == (5 if kind == "video" else 1)
        level = round(255 * 0.75 / (59 / 60))
        assert set(behavior.shown.data["image"][0].ravel().tolist()) == {0xFF000000 + 0x010101 * level}
    assert sum(one.view.visible for one in view.elite.neighbours) == 5


@pytest.mark.parametrize("kind", ["image", "video"])
def test_negative_pixels_are_not_black_alike(tmp_path, kind):
    """All below 0 was black: half of an image that is scaled from -1 to 1."""
    run = ExploredRun(write_run(tmp_path / "run", kind))
    run.read().archive.behavior[:] -= 0.5  # elite i is full of i / 60 - 0.5
    view = Explorer([run]).views[0]
    for row in (10, 45):
        view.choose([int(view.record.archive.ids[row])])
        level = round(255 * row / 59)
        assert set(view.elite.behavior.shown.data["image"][0].ravel().tolist()) == {0xFF000000 + 0x010101 * level}
        assert set(view.elite.behavior.packed(view.record.archive.behavior)[row].tolist()) == {level}


def test_channels_in_other_units_are_not_swallowed(tmp_path):
    path = write_run(tmp_path / "run", "series")
    run = ExploredRun(path)
    run.read().archive.behavior[..., 1] += 1000
    view = Explorer([run]).views[0]
    view.choose([int(view.record.archive.ids[45])])
    shown = view.elite.behavior
    np.testing.assert_allclose(shown.source.data["ys"], 45 / 59, atol=1e-3)
    assert shown.source.data["channel"] == ["1 (0.00 to 0.98)", "2 (1000.00 to 1000.98)"]
    np.testing.assert_allclose(shown.packed(view.record.archive.behavior)[45], 45 / 59, atol=1e-3)


def test_elites_that_were_replaced_are_said_to_be(page):
    view = page.views[0]
    view.moment.value = 5
    gone = view.source.scene(5).ids[0]
    view.record.archive.ids[0] = -1  # as if another had taken its place
    view.choose([int(gone)])
    assert "replaced since" in view.elite.note[0].object


def test_clicking_a_cell_chooses_its_elite_and_shift_adds_another(page):
    view = page.views[0]
    chosen = []
    for row, shift in ((3, False), (9, True), (4, False)):
        x, y = view.scene.descriptors[row]
        view.map._tapped(type("Tap", (), {"x": x, "y": y, "modifiers": {"shift": shift}}))
        chosen.append(list(view.chosen))
    ids = view.scene.ids
    assert chosen == [[ids[3]], [ids[3], ids[9]], [ids[4]]]


def test_the_filter_hides_elites(page):
    view = page.views[0]
    middle = float(np.median(view.scene.fitness))
    view.fitness.value = (middle, view.fitness.end)
    view.fitness.param.trigger("value_throttled")
    assert 25 <= len(view.map.cells.data["id"]) <= 35
    assert "hidden by the filter" in view.caption.object
    assert (np.asarray(view.map.cells.data["fitness"]) >= middle).all()


def test_an_outlier_does_not_swallow_the_filter_and_is_cut_off_only_if_that_is_asked_for(tmp_path):
    """The steps of the slider were as large as the fitness of all other elites."""
    path = write_run(tmp_path / "run", moments=(20,))
    view = Explorer([ExploredRun(path, path.name)]).views[0]
    view.scene.fitness[7] = -1000.0
    view._set_fitness(None)
    view._draw()
    assert view.fitness.start > -10
    assert len(view.map.cells.data["id"]) == 60
    view.fitness.value = (view.fitness.start, float(np.median(view.scene.fitness)))
    view.fitness.param.trigger("value_throttled")
    assert view.scene.ids[7] in view.map.cells.data["id"]
    assert 25 <= len(view.map.cells.data["id"]) <= 35
    view.fitness.value = (view.fitness.start + view.fitness.step, view.fitness.end)
    view.fitness.param.trigger("value_throttled")
    assert view.scene.ids[7] not in view.map.cells.data["id"]


def test_a_run_is_complete_before_a_browser_hears_of_it(tmp_path):
    """Its colours could reach the browser before itself: they were lost, and its console said so."""
    runs = [ExploredRun(write_run(tmp_path / f"run{seed}", seed=seed)) for seed in (0, 1)]
    page, document, told = Explorer(runs), Document(), []
    document.add_root(page.view.get_root(document))
    document.on_change(told.append)
    page.run.value = runs[1].name
    shown = page.views[0].map
    assert told
    assert not [event for event in told if getattr(event, "model", None) in (shown.colours, shown.bar)]


def test_colours_are_of_the_column_that_is_chosen(page):
    view = page.views[0]
    view.column.value = "truth 1"
    shown = dict(zip(view.map.cells.data["id"], view.map.cells.data["value"], strict=True))
    assert shown == dict(zip(view.record.archive.ids, view.record.archive.truth[:, 0].astype(float), strict=True))


def test_two_runs_of_one_task_share_their_colours(tmp_path):
    runs = [ExploredRun(write_run(tmp_path / f"run{seed}", seed=seed)) for seed in (0, 1)]
    page = Explorer(runs)
    page.beside.value = runs[1].name
    left, right = (view.map.colours for view in page.views)
    assert (left.low, left.high) == (right.low, right.high)
    assert all(len(source.data["x"]) == 21 for source in page.curves.sources["size"])
    assert f"Solid: {page.run.value}. Dashed: {page.beside.value}." in page.curves.legend.object


def test_a_run_that_goes_on_moves(tmp_path):
    path, later = tmp_path / "run", write_run(tmp_path / "later")
    write_run(path, moments=(5, 10), saved=False)
    page = Explorer([ExploredRun(path)])
    view = page.views[0]
    assert view.scene.iteration == 10
    shutil.rmtree(path)
    later.rename(path)
    page.follow()
    assert view.scene.iteration == 20
    assert len(page.curves.sources["size"][0].data["x"]) == 21
    view.choose([int(view.scene.ids[0])])
    assert view.elite.view.visible


def test_a_moment_that_was_chosen_stays_while_the_run_goes_on(page, folder):
    view = page.views[0]
    view.moment.value = 5
    (folder / "metrics.csv").touch()
    page.follow()
    assert view.scene.iteration == 5


def test_a_run_that_vanishes_becomes_a_sentence_and_may_come_back(page, folder, tmp_path):
    view = page.views[0]
    folder.rename(tmp_path / "away")
    page.follow()
    assert "There is no folder" in said(view)[0]
    assert not view.body.visible
    (tmp_path / "away").rename(folder)
    page.follow()
    assert said(view) == []
    assert view.body.visible


def test_a_damaged_snapshot_becomes_a_sentence(page, folder):
    (folder / "snapshots" / "000005.npz").write_bytes(b"rubbish")
    view = page.views[0]
    view.moment.value = 5
    assert "000005.npz" in said(view)[0]
    view.moment.value = 10
    assert said(view) == []


def test_a_run_that_has_not_begun_is_waited_for(tmp_path):
    page = Explorer([ExploredRun(tmp_path / "run")])
    assert "There is no folder" in said(page.views[0])[0]
    write_run(tmp_path / "run")
    page.follow()
    assert page.views[0].scene.iteration == 20


def test_a_name_that_nobody_offered_opens_nothing(page, tmp_path):
    secret = write_run(tmp_path / "secret")
    page.run.param.update(options=[*page.run.options, str(secret)], value=str(secret))  # as a forged message might
    assert page.views == []


def test_names_with_html_stay_text(tmp_path):
    page = Explorer([ExploredRun(write_run(tmp_path / "run", task=NASTY))])
    assert "&lt;script&gt;" in page.views[0].title.object
    assert NASTY not in page.views[0].title.object
    assert NASTY not in page.as_html().getvalue().decode()


def test_a_replay_that_fails_is_a_sentence(page):
    view = page.views[0]
    view.choose([int(view.scene.ids[0])])
    asyncio.run(view.elite._replay(None))
    assert "is not known here" in view.elite.replayed[0].object


def test_why_elites_cannot_be_replayed_stands_where_the_button_would_be(page):
    """The button was left out without a word."""
    view = page.views[0]
    assert not view.elite.button.visible
    assert view.elite.no_replay.visible
    told = "No replay. The simulator &#x27;ball&#x27; is not known here: pass its file with --task-file"
    assert told in view.elite.no_replay.object


def test_a_single_elite_has_no_heading_of_neighbours(tmp_path):
    """Nothing stood below it."""
    view = Explorer([ExploredRun(write_run(tmp_path / "run", count=1, moments=(20,)))]).views[0]
    view.choose([int(view.scene.ids[0])])
    assert view.elite.view.visible
    assert not view.elite.near.visible


def test_a_replay_shows_frames(page, monkeypatch):
    view = page.views[0]
    monkeypatch.setattr(ExploredRun, "replay", lambda self, id: np.ones((3, 8, 8, 1)))
    view.choose([int(view.scene.ids[0])])
    asyncio.run(view.elite._replay(None))
    assert len(view.elite.replayed) == 1
    assert view.elite.replayed[0][1].direction == 1  # it plays
    view.choose([int(view.scene.ids[1])])
    assert len(view.elite.replayed) == 0  # it was another's


def test_chosen_elites_are_exported(page):
    view = page.views[0]
    ids = view.scene.ids[[2, 5]].tolist()
    view.choose(ids)
    with np.load(view.npz.callback(), allow_pickle=False) as file:
        assert file["ids"].tolist() == ids
    assert view.csv.callback().getvalue().count(b"\n") == 3


def test_the_exported_page_needs_nothing_from_outside(page):
    view = page.views[0]
    view.choose([int(view.scene.ids[7])])
    text = page.as_html().getvalue().decode()
    assert f"Elite {view.scene.ids[7]}" in text
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=[\"']?https?:", text)
    assert not re.findall(r'"url":"https?:', text)


def test_scenes_that_are_gone_raise_the_sentence_error(folder):
    with pytest.raises(NotShownError, match="no snapshot of iteration 7"):
        ExploredRun(folder).scene(7)
