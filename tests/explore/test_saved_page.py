"""The page as a file, in a real browser: what its widgets draw without a server is what they draw with one."""

import numpy as np
import pytest
from chromium import browser, needs_chromium
from folders import write_run

from vqelites.explore.page import Explorer
from vqelites.runs.explored import ExploredRun

pytestmark = [needs_chromium, pytest.mark.long]

# What the first map of the page draws, and how its widgets stand.
_DRAWN = """() => {
  const models = [...Bokeh.documents[0]._all_models.values()]
  const of = (...names) => models.find(one => one.data && names.every(name => name in one.data)).data
  const plain = data => Object.fromEntries(Object.entries(data).map(([name, all]) => [name, Array.from(all, one =>
    typeof one === "number" ? (Number.isNaN(one) ? null : one) : Array.from(one))]))
  const mapper = models.find(one => one.type === "LinearColorMapper")
  const filter = models.find(one => one.type === "RangeSlider")
  return {cells: plain(of("xs", "id")), dots: plain(of("x", "id")), scale: [mapper.low, mapper.high],
          filter: [filter.start, filter.end, ...filter.value]}
}"""


@pytest.fixture(scope="module")
def window():
    with browser() as opened:
        yield opened


@pytest.fixture(params=[("image", 2), ("series", 4)], ids=["plane", "deep"])
def run(request, tmp_path):
    kind, latent = request.param
    return ExploredRun(write_run(tmp_path / "run", kind, latent=latent))


def opened(window, page, folder):
    """The page, saved and opened; nothing may go wrong on it."""
    window.wrong.clear()
    (folder / "page.html").write_bytes(page.as_html().getvalue())
    window.open((folder / "page.html").as_uri())
    return window.tab


def choose(tab, label, value):
    tab.get_by_label(label, exact=True).first.select_option(value)


def back(tab):
    """To the first snapshot."""
    tab.locator("input[type=range]").first.focus()
    tab.keyboard.press("Home")


def narrow(tab, steps=60):
    """Raise the lower end of the filter, of 200 steps."""
    tab.locator(".noUi-handle-lower").first.focus()
    for _ in range(steps):
        tab.keyboard.press("ArrowRight")


def check(tab, view):
    """What is drawn is what the page draws that has a server, with its widgets in the same places."""
    tab.wait_for_timeout(300)
    drawn = tab.evaluate(_DRAWN)
    for source, seen in ((view.map.cells, drawn["cells"]), (view.map.dots, drawn["dots"])):
        for name, expected in source.data.items():
            if name in ("xs", "ys"):
                for one, other in zip(expected, seen[name], strict=True):
                    np.testing.assert_allclose(one, other, atol=1e-5)
            else:
                found = np.array([np.nan if value is None else value for value in seen[name]], float)
                np.testing.assert_allclose(found, np.asarray(expected, float), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(drawn["scale"], [view.map.colours.low, view.map.colours.high], rtol=1e-5)
    np.testing.assert_allclose(drawn["filter"], [view.fitness.start, view.fitness.end, *view.fitness.value], rtol=1e-5)


def test_widgets_of_a_saved_page_draw_what_they_draw_with_a_server(window, run, tmp_path):
    page = Explorer([run])
    view, tab = page.views[0], opened(window, page, tmp_path)
    for colour in ("truth 2", "solution 3", "age", "novelty"):
        choose(tab, "Colour", colour)
        view.column.value = colour
        check(tab, view)
    for across, up in (("truth 1", "descriptor 2"), ("descriptor 2", "fitness"), ("descriptor 1", "descriptor 2")):
        choose(tab, "Across", across)
        choose(tab, "Up", up)
        view.across.value, view.up.value = across, up
        check(tab, view)
    narrow(tab)
    view.fitness.value = tuple(tab.evaluate(_DRAWN)["filter"][2:])
    assert view.fitness.value[0] > view.fitness.start
    view.fitness.param.trigger("value_throttled")
    check(tab, view)
    back(tab)
    view.moment.value = 5
    check(tab, view)
    assert tab.get_by_text("hidden by the filter").is_visible()
    assert window.wrong == []


def test_an_elite_that_was_replaced_shows_no_behavior_in_a_saved_page(window, tmp_path):
    run = ExploredRun(write_run(tmp_path / "run", "image"))
    run.read().archive.ids[:15] = -1 - np.arange(15)  # those of the first snapshot
    tab = opened(window, Explorer([run]), tmp_path)
    back(tab)
    window.click_map()
    tab.get_by_text("It was replaced since").wait_for(timeout=10_000)
    assert window.wrong == []


def test_two_runs_of_a_saved_page_share_their_colours(window, tmp_path):
    runs = [ExploredRun(write_run(tmp_path / f"run{seed}", seed=seed)) for seed in (0, 1)]
    page = Explorer(runs)
    page.beside.value = runs[1].name
    tab = opened(window, page, tmp_path)
    for view in page.views:
        view.column.value = "truth 1"
    for place in (0, 1):
        tab.get_by_label("Colour", exact=True).nth(place).select_option("truth 1")
    check(tab, page.views[0])
    assert window.wrong == []


def test_a_file_has_no_more_snapshots_than_it_has_room_for_and_says_so(window, tmp_path, monkeypatch):
    run = ExploredRun(write_run(tmp_path / "run", moments=tuple(range(1, 21))))
    monkeypatch.setattr("vqelites.explore.packing._SCENES", 30_000)
    tab = opened(window, Explorer([run]), tmp_path)
    assert tab.get_by_text("of 20 snapshots").is_visible()
    back(tab)
    tab.get_by_text("3 elites after iteration 1").wait_for(timeout=10_000)
    assert window.wrong == []
