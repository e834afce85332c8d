"""The mobile robot: physics against a slow reference, walls, pictures, and which bins can be reached."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_tasks
from hypothesis import assume, given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from vqelites.tasks import mobile
from vqelites.tasks.mobile import RADIUS, MobileRobot, mobile_free, mobile_l

KEY = jax.random.key(0)
# Two rooms with thin walls and a box: many contacts with faces and corners.
ROOMS = [(0, 290, 270, 293), (330, 290, 600, 293), (200, 100, 260, 130), (400, 400, 401, 600)]
drive, picture = jax.jit(mobile.drive), jax.jit(mobile.picture)
trajectories = eqx.filter_jit(lambda task, solutions: task.trajectories(solutions))
evaluate = eqx.filter_jit(lambda task, solutions: task.evaluate(jax.random.split(KEY, len(solutions)), solutions))


@pytest.fixture(scope="module", params=["free", "l", "rooms"])
def task(request):
    made = {"free": mobile_free, "l": mobile_l, "rooms": lambda: MobileRobot((300.0, 200.0, 1.0), ROOMS)}
    return made[request.param]()


def policies(n, seed=0, scale=1.0):
    return jnp.asarray(np.random.default_rng(seed).uniform(-scale, scale, (n, 114)), jnp.float32)


def bin_of(task, truth):
    """The nearest bin of each place in the unit square."""
    return np.linalg.norm(np.asarray(truth)[:, None] - np.asarray(task.bins.centres)[None], axis=-1).argmin(axis=1)


def gaps(places, walls):
    """Distance of places (n, 2) to the nearest wall rectangle or edge, in float64."""
    places = np.asarray(places, np.float64)
    gap = np.minimum(places.min(axis=1), 600 - places.max(axis=1))
    for wall in np.asarray(walls, np.float64):
        outside = np.maximum(np.maximum(wall[:2] - places, places - wall[2:]), 0)
        gap = np.minimum(gap, np.linalg.norm(outside, axis=1))
    return gap


def test_every_step_equals_the_reference(task):
    solutions = policies(6)
    walls = np.asarray(task.walls).tolist()
    errors = []
    for solution, way in zip(solutions, np.asarray(trajectories(task, solutions)), strict=True):
        layers = slow_tasks.cut(solution, [(4, 16), (16, 2)])
        expected = np.array([slow_tasks.robot_step(layers, state, walls) for state in way[:-1]])
        errors.append(np.abs(way[1:] - expected))
    errors = np.concatenate(errors)
    # The reference's samples may miss that a corner is grazed by a hundred thousandth of a pixel.
    assert (errors[:, :2].max(axis=1) < 2e-3).mean() > 0.999
    assert errors[:, 2].max() < 1e-4


def test_whole_rollouts_equal_the_reference(task):
    solutions = policies(6, seed=1)
    walls = np.asarray(task.walls).tolist()
    evaluation = evaluate(task, solutions)
    for i, solution in enumerate(solutions):
        layers = slow_tasks.cut(solution, [(4, 16), (16, 2)])
        way = [tuple(np.asarray(task.start).tolist())]
        for _ in range(400):
            way.append(slow_tasks.robot_step(layers, way[-1], walls))
        places = np.array(way)[1:, :2] / 600
        np.testing.assert_allclose(evaluation.truth[i], places[-1], atol=2e-3)
        fitness = np.exp(-np.linalg.norm(places - places[-1], axis=1)).sum()
        np.testing.assert_allclose(evaluation.fitness[i], fitness, rtol=2e-3)


@st.composite
def maps(draw):
    """Three rectangles, some as thin as a hair, and a start that may lie in one."""
    walls = []
    for _ in range(3):
        low = [draw(st.integers(0, 599)) for _ in range(2)]
        walls.append([*low, *(min(600.0, a + draw(st.sampled_from([0.01, 1, 30, 300]))) for a in low)])
    start = [draw(st.integers(11, 589)), draw(st.integers(11, 589)), draw(st.floats(-3.25, 3.25, width=32))]
    return np.array(walls, np.float32), np.array(start, np.float32)


@pytest.fixture(scope="module")
def template():
    return MobileRobot((20.0, 20.0, 0.0), [(300, 300, 310, 310)] * 3)


@given(maps(), st.integers(0, 10**6), st.sampled_from([0.5, 1.0, 3.0]))
def test_no_wall_is_ever_crossed(template, world, seed, scale):
    walls, start = world
    assume(gaps(start[None, :2], walls)[0] > RADIUS + 0.002)
    task = eqx.tree_at(lambda t: (t.walls, t.start), template, (jnp.asarray(walls), jnp.asarray(start)))
    places = np.asarray(trajectories(task, policies(32, seed, scale)))[..., :2].astype(np.float64)
    assert gaps(places.reshape(-1, 2), walls).min() >= RADIUS
    for share in np.linspace(0, 1, 9)[1:-1]:
        between = (1 - share) * places[:, :-1] + share * places[:, 1:]
        assert gaps(between.reshape(-1, 2), walls).min() >= RADIUS - 1e-6


def test_a_blocked_robot_stops_at_the_wall_and_still_turns():
    walls = jnp.asarray([[100.0, 0.0, 101.0, 600.0]])
    state = drive(jnp.asarray([88.0, 50.0, 0.0]), jnp.asarray([3.0, 4.0]), walls)
    np.testing.assert_allclose(state, [89.999, 50, 1 / 40], atol=1e-4)
    pushed = drive(state, jnp.asarray([4.0, 4.0]), walls)
    np.testing.assert_allclose(pushed, state, atol=1e-4)
    back = drive(state, jnp.asarray([-4.0, -4.0]), walls)
    np.testing.assert_allclose(back[:2], state[:2] - 4 * jnp.asarray([np.cos(1 / 40), np.sin(1 / 40)]), atol=1e-3)


def test_a_robot_slides_past_a_wall_it_only_touches():
    walls = jnp.asarray([[100.0, 100.0, 200.0, 200.0]])
    place = jnp.asarray([100.0 - RADIUS - 1e-3, 90.0])
    moved = drive(jnp.append(place, jnp.pi / 2), jnp.asarray([4.0, 4.0]), walls)
    np.testing.assert_allclose(moved[:2], place + jnp.asarray([0.0, 4.0]), atol=1e-3)


@pytest.mark.parametrize("place", [(300.0, 300.0), (10.001, 10.001), (589.999, 10.001), (123.4, 567.8), (304.7, 295.3)])
def test_picture_is_the_covered_share_of_each_pixel(place):
    image = np.asarray(picture(jnp.asarray(place) / 600))[..., 0]
    np.testing.assert_allclose(image, slow_tasks.robot_picture(*place), atol=5e-3)
    assert image.min() >= 0
    assert image.max() <= 1
    np.testing.assert_allclose(image.sum(), np.pi * (RADIUS * 64 / 600) ** 2, rtol=1e-5)
    rows, columns = np.mgrid[:64, :64] + 0.5
    mass = np.array([(columns * image).sum(), 64 * image.sum() - (rows * image).sum()]) / image.sum()
    # To a hundredth of a pixel of the picture: shares do not tell where in a pixel the robot is.
    np.testing.assert_allclose(mass * 600 / 64, place, atol=0.1)


def test_picture_of_a_robot_on_a_pixel_centre():
    image = np.asarray(picture(jnp.asarray([20.5, 40.5]) / 64))[..., 0]
    assert image[23, 20] == pytest.approx(1, abs=1e-5)  # row 64 - 1 - 40: row 0 is at the top
    # The neighbour to the right: columns 0.5 to 1.5 right of the centre, a disc of radius 16/15 around it.
    x = 0.5 + (np.arange(100000) + 0.5) / 100000
    expected = np.minimum(2 * np.sqrt(np.maximum((16 / 15) ** 2 - x**2, 0)), 1).mean()
    np.testing.assert_allclose(image[[23, 23, 22, 24], [19, 21, 20, 20]], expected, atol=1e-5)
    assert (image > 0).sum() == 9


def plan(state, waypoints):
    """Wheel speeds that turn towards each waypoint on the spot and drive there, and rest until step 400."""
    x, y, heading = state
    wheels = []
    for goal_x, goal_y in waypoints:
        turn = (np.arctan2(goal_y - y, goal_x - x) - heading + np.pi) % (2 * np.pi) - np.pi
        steps = int(np.ceil(abs(turn) / 0.2))
        wheels += [(-20 * turn / steps, 20 * turn / steps)] * steps if steps else []
        length = np.hypot(goal_x - x, goal_y - y)
        steps = int(np.ceil(length / 4))
        wheels += [(length / steps, length / steps)] * steps if steps else []
        x, y, heading = goal_x, goal_y, heading + turn
    assert len(wheels) <= 400
    assert np.abs(wheels).max() <= 4 + 1e-9
    return np.array(wheels + [(0, 0)] * (400 - len(wheels)), np.float32)


@pytest.mark.parametrize(("make", "reachable"), [(mobile_free, 900), (mobile_l, 577)])
def test_reachable_bins_are_the_ones_a_plan_leads_to(make, reachable):
    task = make()
    walls = np.asarray(task.walls)
    flags = np.asarray(task.bins.reachable)
    assert flags.sum() == reachable
    offsets = np.arange(20) + 0.5
    inside = np.stack(np.meshgrid(offsets, offsets), axis=-1).reshape(-1, 2) - 10
    commands = []
    for centre, is_reachable in zip(np.asarray(task.bins.centres, np.float64) * 600, flags, strict=True):
        room = gaps(centre + inside, walls)
        assert (room.max() > RADIUS) == is_reachable
        if is_reachable:
            goal = (centre + inside)[room.argmax()]
            # In the L, both arms are convex and meet in the lower left.
            commands.append(plan(np.asarray(task.start), [goal] if goal[0] < 239 else [(100.0, 100.0), goal]))

    def run(wheels):
        return jax.lax.scan(lambda state, w: (mobile.drive(state, w, task.walls), None), task.start, wheels)[0]

    final = jax.jit(jax.vmap(run))(jnp.asarray(np.stack(commands)))
    np.testing.assert_array_equal(bin_of(task, final[:, :2] / 600), np.flatnonzero(flags))


def test_a_closed_room_and_a_far_end_are_not_reachable():
    # A wall cuts off the right; on the left, a comb of 8 walls makes the way to the last lane longer than 400 steps.
    comb = [(60 * i + 40, 0 if i % 2 else 30, 60 * i + 42, 570 if i % 2 else 600) for i in range(8)]
    task = MobileRobot((15.0, 585.0, 0.0), [*comb, (550, 0, 552, 600)])
    flags = np.asarray(task.bins.reachable).reshape(30, 30)
    assert flags[0].all()
    assert not flags[28:].any()
    assert not flags[24:27].any()


def test_evaluation_has_the_promised_shapes_and_is_deterministic(task):
    solutions = policies(6)
    first, again = evaluate(task, solutions), evaluate(task, solutions)
    assert eqx.tree_equal(first, again)
    assert first.behavior.shape == (6, *task.behavior_shape)
    assert first.truth.shape == (6, 2)
    assert bool(((first.fitness > 0) & (first.fitness <= 400)).all())
    np.testing.assert_allclose(evaluate(task, solutions[::-1]).truth, first.truth[::-1], atol=1e-3)
    assert task.cells.shape == (45 * 45, 2)
    assert task.bins.centres.shape == (900, 2)


def test_random_policies_spread():
    """Measured: 10,240 random policies end in 97 % of the bins; 1,280 in 46 %."""
    task = mobile_free()
    assert len(np.unique(bin_of(task, evaluate(task, policies(1280)).truth))) > 0.4 * 900


@pytest.mark.parametrize(
    ("start", "walls", "message"),
    [
        ((300, 300, 0), [(250, 250, 350, 350)], "Move the start"),
        ((300, 300, 0), [(305, 100, 350, 500)], "is 5 px from one"),
        ((5, 300, 0), [], "is 5 px from one"),
        ((300, 300), [], "three finite numbers"),
        ((300, float("nan"), 0), [], "three finite numbers"),
        ((300, 300, 0), [(-1, 0, 50, 50)], "within 0 and 600"),
        ((300, 300, 0), [(0, 0, 50, 601)], "within 0 and 600"),
        ((300, 300, 0), [(50, 0, 50, 50)], "low < high"),
        ((300, 300, 0), [(0, 60, 50, 50)], "low < high"),
        ((300, 300, 0), [(0, 60, 50)], "four numbers"),
    ],
)
def test_bad_maps_are_explained(start, walls, message):
    with pytest.raises(ValueError, match=message):
        MobileRobot(start, walls)


def test_drawing_shows_walls_ways_and_robots():
    axes = Figure().add_subplot()
    mobile_l().draw(axes, policies(3))
    assert len(axes.patches) == 1 + 3 + 1  # the wall, the robots, the start
    assert len(axes.lines) == 3
