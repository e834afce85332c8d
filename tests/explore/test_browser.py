"""The page in a real browser: it loads, answers, and asks nothing of anyone else."""

import io
import shutil
import time

import numpy as np
import pytest
from chromium import browser, needs_chromium
from folders import write_run
from PIL import Image
from serving import served

from vqelites.explore.page import Explorer
from vqelites.runs.explored import ExploredRun
from vqelites.studies import catalogue, study
from vqelites.studies.explored import sources

pytestmark = [needs_chromium, pytest.mark.long]
MANY = 20_000


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run of every kind, and a large one."""
    root = tmp_path_factory.mktemp("runs")
    kinds = ("image", "vector", "series", "video")
    written = {kind: write_run(root / kind, kind, task=kind) for kind in kinds}
    written["deep"] = write_run(root / "deep", latent=4, task="deep")
    written["large"] = write_run(root / "large", "image", count=MANY, task="large")
    return {name: ExploredRun(path, name) for name, path in written.items()}


@pytest.fixture(scope="module")
def url(runs):
    with served(list(runs.values())) as address:
        yield address


@pytest.fixture(scope="module")
def window():
    with browser() as opened:
        yield opened


@pytest.fixture
def page(window, url):
    """The page, opened anew; nothing may have gone wrong on it in the end."""
    window.wrong.clear()
    window.open(url)
    yield window
    assert window.wrong == []


def show(page, name, place=0):
    """Choose a run, and wait until its map is there."""
    page.tab.locator("select").nth(place).select_option(name)
    page.tab.get_by_text(f"vq-elites on {name}").wait_for(timeout=30_000)
    page.tab.wait_for_timeout(1000)


def upper_right(page):
    """The plot of what the chosen elite did."""
    edge = page.map.bounding_box()
    plots = page.tab.locator(".bk-Figure:visible").all()
    right = [plot for plot in plots if plot.bounding_box()["x"] >= edge["x"] + edge["width"]]
    return min(right, key=lambda plot: plot.bounding_box()["y"])


def pixels(locator):
    """What is seen of something, as levels (h, w, 3)."""
    return np.asarray(Image.open(io.BytesIO(locator.screenshot())).convert("RGB"))


def test_choosing_an_elite_shows_its_picture(page, runs):
    page.click_map()
    archive = runs["image"].read().archive
    row = int(np.flatnonzero(archive.ids == page.elite())[0])
    page.tab.wait_for_timeout(500)
    seen = pixels(page.tab.locator(".bk-Figure").nth(1))
    centre = seen[seen.shape[0] // 2, seen.shape[1] // 2]
    brightest = archive.behavior.max()
    np.testing.assert_allclose(centre, 255 * archive.behavior[row].max() / brightest, atol=2)


def test_a_square_picture_is_not_squeezed(page):
    page.click_map()
    assert page.elite() >= 0
    page.tab.wait_for_timeout(500)
    plot = upper_right(page)
    box, seen = plot.bounding_box(), pixels(plot)
    inside = (seen < 250).all(axis=2)  # what is no background
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    assert abs(np.ptp(rows) - np.ptp(columns)) <= 0.02 * box["height"]


@pytest.mark.parametrize("kind", ["vector", "series", "video", "deep"])
def test_every_kind_of_behavior_is_drawn(page, kind):
    show(page, kind)
    before = page.tab.locator(".bk-Figure:visible").count()
    page.click_map()
    assert page.elite() >= 0
    page.tab.wait_for_timeout(500)
    assert page.tab.locator(".bk-Figure:visible").count() == before + 7  # behavior, solution, five neighbours
    if kind == "video":
        shown = page.tab.locator(".bk-Figure").nth(1)
        assert page.tab.locator("button.next:visible").count() == 2  # of the run's moments, and of the video
        assert pixels(shown).std() >= 0
    if kind == "deep":
        assert page.tab.get_by_text("projected from 4 dimensions").is_visible()


def test_the_slider_changes_the_map(page):
    before = pixels(page.map)
    page.tab.locator("input[type=range]").first.focus()
    page.tab.keyboard.press("Home")
    page.tab.get_by_text("15 elites after iteration 5").wait_for(timeout=60_000)
    page.tab.wait_for_timeout(500)
    assert (pixels(page.map) != before).any(axis=2).mean() > 0.1


def test_two_runs_stand_side_by_side(page):
    show(page, "vector", place=1)
    left, right = (page.tab.locator(".bk-Figure:visible").nth(i).bounding_box() for i in (0, 1))
    assert left["y"] == right["y"]
    assert left["x"] + left["width"] <= right["x"]


def test_the_exported_page_opens_again(page, tmp_path):
    page.click_map()
    chosen = page.elite()
    with page.tab.expect_download(timeout=60_000) as download:
        page.tab.get_by_text("This page as HTML").click()
    file = tmp_path / "page.html"
    download.value.save_as(file)
    page.open(file.as_uri())
    assert page.elite() == chosen
    assert len(np.unique(pixels(page.map).reshape(-1, 3), axis=0)) > 30


@pytest.mark.parametrize("kind", ["image", "vector", "series", "video", "deep"])
def test_elites_can_be_chosen_in_the_exported_page(page, runs, kind, tmp_path):
    """Whichever is shown, its behavior is that of the archive: in these runs it is full of one level."""
    file = tmp_path / "page.html"
    file.write_bytes(Explorer([runs[kind]]).as_html().getvalue())
    page.open(file.as_uri())
    archive, seen = runs[kind].read().archive, []
    assert page.elite() == archive.best(1).ids[0]  # until one is chosen
    for across in (0.2, 0.3, 0.55):
        page.click_map(across)
        page.tab.wait_for_timeout(300)
        seen.append(page.elite())
        if kind in ("image", "video"):
            shown = pixels(upper_right(page))
            level = archive.behavior[archive.ids == seen[-1]].ravel()[0] / archive.behavior.max()
            middle = shown[shown.shape[0] // 2, shown.shape[1] // 2]
            assert abs(middle / 255 - level).max() < 0.01
    assert len(set(seen)) == 3


def test_chosen_elites_are_saved(page, tmp_path):
    page.click_map()
    chosen = page.elite()
    with page.tab.expect_download(timeout=60_000) as download:
        page.tab.get_by_text("Elites as npz").click()
    download.value.save_as(tmp_path / "elites.npz")
    with np.load(tmp_path / "elites.npz", allow_pickle=False) as file:
        assert file["ids"].tolist() == [chosen]


def test_of_twenty_thousand_elites_any_can_be_shown(page):
    """How soon is printed (`-s`): 0.3 s are wanted, but a clock says more of the machine than of the page."""
    show(page, "large")
    page.tab.get_by_text(f"{MANY} elites").wait_for(timeout=60_000)
    page.tab.wait_for_timeout(2000)
    page.click_map()
    seen, times = page.elite(), []
    for across in (0.2, 0.3, 0.4, 0.5, 0.6):
        began = time.perf_counter()
        page.click_map(across)
        while page.elite() == seen:
            assert time.perf_counter() - began < 60
        times.append(time.perf_counter() - began)
        seen = page.elite()
        page.tab.wait_for_timeout(300)
    print(f"seconds until an elite of {MANY} is shown: {sorted(times)}")


def test_every_run_of_a_study_can_be_shown(window, tmp_path):
    """Two of its three runs are begun; the third is a sentence."""
    planned = catalogue.comparison(["planar-arm"], ["vq-elites"], preset="quick", seeds=3)
    root = tmp_path / "study"
    root.mkdir()
    study.write(planned, root)
    for seed in (0, 1):
        write_run(planned.groups[0].folder(root, seed), "image", task="planar-arm", seed=seed)
    runs = sources([root])
    left, right = (window.tab.locator("select").nth(place) for place in (0, 1))
    window.wrong.clear()
    with served(runs) as url:
        window.open(url)
        for seed in (0, 1):
            left.select_option(runs[seed].name)
            window.tab.locator("h3", has_text=f"quick, seed {seed}").wait_for(timeout=60_000)
            window.tab.wait_for_timeout(1000)
            window.click_map()
            assert window.elite() in runs[seed].read().archive.ids
        right.select_option(runs[0].name)
        window.tab.locator("h3", has_text="quick, seed 0").wait_for(timeout=60_000)
        assert window.tab.locator("h3", has_text="quick, seed 1").is_visible()
        left.select_option(runs[2].name)
        window.tab.get_by_text("There is no folder").wait_for(timeout=60_000)
        window.tab.goto("about:blank")
    assert window.wrong == []


def test_names_with_html_stay_text(window, tmp_path):
    name = "<img src=x onerror=alert(1)>"
    runs = [ExploredRun(write_run(tmp_path / place, task="<b>ball</b>"), f"{name} {place}") for place in "ab"]
    window.wrong.clear()
    with served(runs) as url:
        window.open(url)
        window.tab.locator("select").nth(1).select_option(f"{name} b")
        window.tab.get_by_text(f"Solid: {name} a. Dashed: {name} b.").wait_for(timeout=60_000)
        window.tab.locator("h3", has_text="vq-elites on <b>ball</b>").nth(1).wait_for(timeout=60_000)
        assert window.tab.locator("img[src=x], h3 b").count() == 0
        window.tab.goto("about:blank")
    assert window.wrong == []


def test_a_run_that_goes_on_moves_and_one_that_vanishes_is_said_to(window, tmp_path):
    window.wrong.clear()
    path, later = write_run(tmp_path / "run", moments=(5, 10), saved=False), write_run(tmp_path / "later")
    with served([ExploredRun(path)]) as url:
        window.open(url)
        window.tab.get_by_text("after iteration 10").wait_for(timeout=60_000)
        shutil.rmtree(path)
        later.rename(path)
        window.tab.get_by_text("60 elites after iteration 20").wait_for(timeout=60_000)
        shutil.rmtree(path)
        window.tab.get_by_text("There is no folder").wait_for(timeout=60_000)
        window.tab.goto("about:blank")
    assert window.wrong == []
