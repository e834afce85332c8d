"""Figures show the numbers they are given: checked on what matplotlib holds, not on pixels."""

import itertools

import jax
import jax.numpy as jnp
import matplotlib.colors
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.image import imread
from matplotlib.patches import Circle
from matplotlib.text import Text
from mpl_toolkits.mplot3d.art3d import Text3D
from mpl_toolkits.mplot3d.proj3d import proj_transform

from vqelites import metrics, plots
from vqelites.frames import ArchiveFrame
from vqelites.plots.style import fitness_scale, looks
from vqelites.tasks import Interface, SimulatorTask

ALGORITHMS = ["vq-elites", "map-elites", "cvt-map-elites", "aurora", "aurora-plus"]


def frame(truth, descriptors=None):
    """An archive whose fitness is 0, 1, 2, ..."""
    n = len(truth)
    descriptors = truth if descriptors is None else descriptors
    return ArchiveFrame(
        np.arange(n), np.zeros((n, 1)), np.arange(float(n)), np.zeros((n, 1)), descriptors, truth, np.arange(n)
    )


def lightness(color):
    """CIE L*: 0 black, 100 white."""
    rgb = np.array(matplotlib.colors.to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return 116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16


def texts(figure):
    """Everything written in the figure, with the box it fills, in pixels."""
    FigureCanvasAgg(figure).draw()
    words, ticks, drawn = set(figure.findobj(Text)), set(), set()
    for axes in figure.axes:
        on = axes.axison or axes.name == "3d"
        for axis in axes._axis_map.values():
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                ticks |= {tick.label1, tick.label2}
                # Ticks outside the limits are kept, but not drawn; without axes none are.
                drawn |= {tick.label1} if on and low <= tick.get_loc() <= high else set()
            words |= {axis.label} if on else set()  # 3-D axes do not list theirs
            ticks |= set() if on else {axis.label}
    shown = (words - ticks) | drawn
    return {text: extent(text) for text in shown if text.get_visible() and text.get_text().strip()}


def extent(text):
    """The box a text fills; matplotlib places those in 3-D only while it draws."""
    box = text.get_window_extent()
    if text.get_rotation() % 90:
        box = box.expanded(0.5, 0.5)  # the corners around a slanted text are empty
    if not isinstance(text, Text3D):
        return box
    x, y, _ = proj_transform(*text.get_position_3d(), text.axes.get_proj())
    (left, bottom), (x0, y0) = text.axes.transData.transform([(x, y), text.get_position()])
    return box.translated(left - x0, bottom - y0)


def assert_nothing_overlaps(figure):
    boxes = texts(figure)
    assert len(boxes) > 3
    width, height = figure.canvas.get_width_height()
    for text, box in boxes.items():
        assert box.x0 > -1, text
        assert box.y0 > -1, text
        assert box.x1 < width + 1, text
        assert box.y1 < height + 1, text
    for (a, box_a), (b, box_b) in itertools.combinations(boxes.items(), 2):
        # Half a pixel inside, so that boxes that only touch do not count.
        assert not box_a.padded(-0.5).overlaps(box_b.padded(-0.5)), (a, b)


@pytest.fixture
def curves(random):
    """Five algorithms with different numbers of seeds and iterations."""
    rows = [
        (name, seed, iteration, random.random(), 1000 * random.random())
        for k, name in enumerate(ALGORITHMS)
        for seed in range(k + 1)
        for iteration in range(1, 21 - k)
    ]
    return pd.DataFrame(rows, columns=["algorithm", "seed", "iteration", "coverage", "pqd"])


def test_lines_are_medians_and_bands_are_quartiles(curves):
    figure = plots.algorithm_curves(curves, ["coverage", "pqd"], "a task")
    for axes, metric in zip(figure.axes, ["coverage", "pqd"], strict=True):
        assert len(axes.lines) == len(axes.collections) == 5
        for name, line, band in zip(ALGORITHMS, axes.lines, axes.collections, strict=True):
            table = curves[curves["algorithm"] == name].pivot(index="iteration", columns="seed", values=metric)
            np.testing.assert_array_equal(line.get_xdata(), table.index)
            np.testing.assert_allclose(line.get_ydata(), table.median(axis=1))
            outline = band.get_paths()[0].vertices
            for iteration, values in table.iterrows():
                edges = outline[outline[:, 0] == iteration, 1]
                assert edges.min() == pytest.approx(values.quantile(0.25))
                assert edges.max() == pytest.approx(values.quantile(0.75))


def test_a_metric_an_algorithm_does_not_have_leaves_no_line_and_missing_points_leave_no_gap(curves):
    partly = curves.assign(loss=curves["pqd"].where(curves["iteration"] % 5 == 0))
    partly.loc[partly["algorithm"] == "map-elites", "loss"] = np.nan
    (axes,) = plots.algorithm_curves(partly, ["loss"], "a task").axes
    drawn = dict(zip(ALGORITHMS, axes.lines, strict=True))
    assert len(drawn["map-elites"].get_xdata()) == 0
    assert drawn["vq-elites"].get_xdata().tolist() == [5, 10, 15, 20]


def test_one_run_has_its_own_values_and_no_legend():
    figure = plots.metric_curves(np.arange(1, 4), {"PQD": np.array([1.0, 4.0, 2.0])}, "one run")
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), [1, 4, 2])
    assert not figure.legends


def test_algorithms_differ_in_lightness_and_all_looks_without_colour():
    styles = looks(ALGORITHMS)
    for a, b in itertools.combinations(styles.values(), 2):
        assert abs(lightness(a.color) - lightness(b.color)) > 8
    everything = looks([*ALGORITHMS, *map(str, range(8))]).values()
    assert len({(look.dashes, look.marker) for look in everything}) == 13
    assert max(lightness(look.color) for look in everything) < 80  # visible on white
    variants = sorted(lightness(look.color) for look in looks(map(str, range(8))).values())
    assert min(b - a for a, b in itertools.pairwise(variants)) > 6


def test_an_algorithm_looks_the_same_in_any_company_and_too_many_variants_are_an_error():
    assert looks(["a", "vq-elites", "b"])["vq-elites"] == looks(ALGORITHMS)["vq-elites"]
    with pytest.raises(ValueError, match="8 variants apart, but got 9"):
        looks(map(str, range(9)))


@pytest.mark.parametrize("size", [(8, 8), (30, 30)])
def test_grids_show_the_best_fitness_and_hatch_what_cannot_be_reached(tasks, random, size):
    task = tasks["mobile-l"]
    bins = task.bins if size == (30, 30) else metrics.coarser(task.bins, size, (0, 0), (1, 1))
    reachable = np.asarray(bins.reachable).reshape(size)
    archives = {name: metrics.outcomes(random.random((200, 2)), k + random.random(200)) for k, name in enumerate("ab")}
    grids = {name: metrics.project(bins, elites).best.reshape(size) for name, elites in archives.items()}
    figure = plots.elite_grids(task, grids, reachable, "where")
    meshes = [m for axes in figure.axes[:2] for m in axes.findobj(QuadMesh)]
    for mesh, grid in zip(meshes, grids.values(), strict=True):
        shown = mesh.get_array().reshape(size).T  # x runs along the horizontal axis
        np.testing.assert_array_equal(shown.mask, ~reachable | np.isnan(grid))
        np.testing.assert_array_equal(shown[~shown.mask], grid[~shown.mask])
    assert meshes[0].get_clim() == meshes[1].get_clim()
    (hatched,) = figure.axes[0].findobj(PolyCollection)
    assert len(hatched.get_paths()) == (~reachable).sum() > 0
    assert hatched.get_hatch()
    centres = np.array([path.vertices[:4].mean(axis=0) for path in hatched.get_paths()])
    assert (centres > 0.4).all()  # the wall is at the upper right


def test_an_elite_in_an_unreachable_bin_is_not_shown(tasks):
    reachable = np.array([[True, False], [True, True]])
    figure = plots.elite_grids(tasks["mobile-l"], {"a": np.ones((2, 2))}, reachable, "where")
    (mesh,) = figure.axes[0].findobj(QuadMesh)
    assert mesh.get_array().mask.sum() == 1


def test_minigrid_tiles_lie_where_the_map_has_them_with_keys_and_doors(tasks):
    task = tasks["minigrid"]
    grid = np.full((18, 18), np.nan)
    grid[1, 3] = 50.0
    axes = plots.elite_grids(task, {"map-elites": grid}, ~np.asarray(task.wall), "tiles").axes[0]
    mesh = axes.findobj(QuadMesh)[0]
    ((row, column),) = np.argwhere(~mesh.get_array().reshape(18, 18).mask)
    assert (row, column) == (1, 3)
    assert axes.get_ylim() == (17.5, -0.5)  # row 0 at the top
    assert sorted(text.get_text() for text in axes.texts) == sorted("SabcdABCD")
    key = next(text for text in axes.texts if text.get_text() == "b")
    assert key.get_position() == (14, 2)


def test_the_coarse_grid_of_tiles_lies_as_their_map_does(tasks):
    archives = {"map-elites": frame(np.array([[1.0, 16.0]]))}
    axes = plots.archive_views(tasks["minigrid"], archives, {}, "tiles").axes[0]
    ((row, column),) = np.argwhere(~axes.findobj(QuadMesh)[0].get_array().reshape(8, 8).mask)
    assert (row, column) == (0, 7)
    assert axes.get_ylim() == (17.5, -0.5)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("column", "row")


def simulated(bins):
    """A task in a unit square of which only its interface is known."""
    known = Interface(3, behavior_shape=(1,), truth_low=(0, 0), truth_high=(1, 1), bins=bins)
    return SimulatorTask(lambda solution, seed: None, known)


def test_views_of_a_task_that_has_no_bins_and_cannot_be_drawn_have_what_is_left(random):
    archives = {name: frame(random.random((40, 2)), random.random((40, 3))) for name in "ab"}
    *views, _ = plots.archive_views(simulated(None), archives, {}, "views", world=False).axes
    assert [axes.get_title() for axes in views[::2]] == ["a: 40 elites", "b: 40 elites"]
    assert {axes.get_title() for axes in views[1::2]} == {"their descriptors"}
    np.testing.assert_array_equal(views[2].collections[0].get_offsets(), archives["b"].truth)


def test_the_coarse_grid_is_nowhere_finer_than_the_bins(random):
    """Rows and columns between the bins of a simulator, which are few, were hatched as out of reach."""
    archives = {"a": frame(random.random((40, 2)))}
    first = plots.archive_views(simulated((3, 20)), archives, {}, "views", world=False).axes[0]
    (mesh,) = first.findobj(QuadMesh)
    assert mesh.get_array().size == 3 * 8
    assert all(len(hatched.get_paths()) == 0 for hatched in first.findobj(PolyCollection) if hatched.get_hatch())


def test_elites_lie_on_the_map_in_its_own_units(tasks):
    figure = plots.final_positions(tasks["mobile-l"], {"a": frame(np.array([[0.25, 0.5], [0.1, 0.9]]))}, "ends")
    np.testing.assert_allclose(figure.axes[0].collections[-1].get_offsets(), [[150, 300], [60, 540]])
    figure = plots.final_positions(tasks["minigrid"], {"a": frame(np.array([[1.0, 3.0]]))}, "ends")
    np.testing.assert_allclose(figure.axes[0].collections[-1].get_offsets(), [[3, 1]])  # column, row
    with pytest.raises(ValueError, match="2 numbers have a place on a map, but these have 6"):
        plots.final_positions(tasks["arm"], {"a": frame(np.zeros((1, 6)))}, "ends")


def test_the_arm_alone_has_its_joints_numbered_where_they_are_and_at_work_every_pose(tasks):
    task = tasks["arm"]
    figure = plots.at_work(task, jax.vmap(task.space.random)(jax.random.split(jax.random.key(0), 5)), "poses")
    left, right = figure.axes
    assert not right.texts
    assert [text.get_text() for text in left.texts] == list("123456")
    shoulder = left.texts[1].get_position_3d()
    np.testing.assert_allclose(shoulder[:2], 0)
    assert shoulder[2] == pytest.approx(0.36, abs=0.15)
    assert len([line for line in right.lines if len(line.get_data_3d()[0]) == 5]) == 5 + 1  # and the start


def test_spread_picks_points_far_apart_without_repeats():
    points = np.array([[0.0], [0.1], [5.0], [10.0], [10.0], [-10.0]])
    chosen = plots.spread(points, 4)
    assert sorted(points[chosen, 0]) == [-10.0, 0.1, 5.0, 10.0] or sorted(points[chosen, 0]) == [-10.0, 0.0, 5.0, 10.0]
    assert len(plots.spread(points, 10)) == 5  # two are in one place
    assert len(plots.spread(points[:0], 3)) == 0


def all_figures(tasks, curves, random):
    mobile, truth = tasks["mobile-l"], random.random((30, 2)) * [0.4, 1]
    grid = metrics.project(mobile.bins, metrics.outcomes(truth, np.arange(30.0))).best.reshape(30, 30)
    reachable = np.asarray(mobile.bins.reachable).reshape(30, 30)
    archives = {name: frame(truth) for name in ("vq-elites", "map-elites")}
    tiles = random.uniform(0, 100, (18, 18))
    decoded = {i: random.random((2000, 8, 8, 1)) for i in (40, 60, 10000)}
    yield "curves", plots.algorithm_curves(curves, ["coverage", "pqd"], "mobile-l")
    yield "grids", plots.elite_grids(mobile, {"vq-elites": grid, "map-elites": grid}, reachable, "mobile-l")
    walls = np.asarray(tasks["minigrid"].wall)
    yield "tiles", plots.elite_grids(tasks["minigrid"], {"vq-elites": tiles, "map-elites": tiles}, ~walls, "minigrid")
    yield "maps", plots.task_maps(tasks)
    yield "positions", plots.final_positions(mobile, archives, "mobile-l")
    yield "views", plots.archive_views(mobile, archives, {"vq-elites": 2 * truth - 0.9}, "mobile-l")
    yield "latent", plots.latent_cells(random.normal(size=(50, 5)), np.arange(50.0), None, "arm")
    yield "codes", plots.decoded_codes(decoded, [1999, 1998, 1, 20, 300], "codes")
    yield "overview", plots.overview()
    yield "arm", plots.at_work(tasks["arm-constrained"], jnp.zeros((5, tasks["arm"].space.dim)), "arm")
    drift = metrics.codebook_drift([10, 20], [np.zeros((9, 2)), np.ones((9, 2))])
    yield "drift", plots.drift_curves({"vq-elites": drift, "with a rather long name": drift}, "drift")


@pytest.mark.slow
def test_no_text_overlaps_another_or_leaves_the_page(tasks, curves, random):
    for name, figure in all_figures(tasks, curves, random):
        try:
            assert_nothing_overlaps(figure)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


def test_the_overview_keeps_its_words_inside_their_boxes_and_joins_all_of_them():
    figure = plots.overview()
    FigureCanvasAgg(figure).draw()
    (axes,) = figure.axes
    boxes = [patch.get_window_extent() for patch in axes.patches if patch.get_facecolor()[:3] == (1, 1, 1)]
    words = [text.get_window_extent() for text in axes.texts if "\n" in text.get_text()]
    assert len(boxes) == 14
    for word in words:
        assert any(box.x0 < word.x0 and word.x1 < box.x1 and box.y0 < word.y0 and word.y1 < box.y1 for box in boxes)


def test_a_saved_picture_is_a_png_of_the_right_size_and_the_same_svg_every_time(tmp_path):
    def figure():
        return plots.latent_cells(np.zeros((3, 2)), np.arange(3.0), None, "saved")

    path = plots.save(figure(), tmp_path / "one.png")
    assert imread(path).shape[:2] == (4.6 * 150, 5.2 * 150)
    assert not (tmp_path / "one.svg").exists()
    plots.save(figure(), tmp_path / "two.png", vector=True)
    plots.save(figure(), tmp_path / "three.png", vector=True)
    first, second = ((tmp_path / name).read_text() for name in ("two.svg", "three.svg"))
    assert first.startswith("<?xml")
    assert 'width="374.4pt" height="331.2pt"' in first  # inches times 72
    assert first == second


def test_maps_show_start_and_walls(tasks):
    figure = plots.task_maps(tasks)
    assert [axes.get_title() for axes in figure.axes] == list(tasks)
    walls = [patch.get_bbox().bounds for patch in figure.axes[1].patches if hasattr(patch, "get_bbox")]
    assert (250, 250, 350, 350) in walls
    (start,) = [patch.center for patch in figure.axes[1].patches if isinstance(patch, Circle)]
    np.testing.assert_allclose(start, tasks["mobile-l"].start[:2])


def test_the_bar_of_a_colour_scale_is_pointed_where_outliers_lie_beyond_it():
    inside = np.linspace(0, 1, 99)
    for outliers, pointed in (([], "neither"), ([-50], "min"), ([50], "max"), ([-50, 50], "both")):
        scale = fitness_scale([inside, np.array(outliers, float), np.array([np.nan])])
        assert scale.cmap.colorbar_extend == pointed
        assert -4 < scale.norm.vmin <= 0 < 1 <= scale.norm.vmax < 5
