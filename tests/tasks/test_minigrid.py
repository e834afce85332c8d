"""The grid world: rules against a plain re-implementation, what can be reached, views, and bad maps."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import slow_tasks
from matplotlib.figure import Figure

from vqelites.tasks.minigrid import AGENT, COLOURS, MASKED, MOVES, MiniGrid, default_map

KEY = jax.random.key(0)
# Keys everywhere, an open edge, two doors in a row and a key without a door: much happens within a few steps.
BUSY = ["S.a#..", ".dA.B.", "b.#.#.", ".#####", "......"]
evaluate = eqx.filter_jit(lambda task, solutions: task.evaluate(jax.random.split(KEY, len(solutions)), solutions))
trajectories = eqx.filter_jit(lambda task, solutions: task.trajectories(solutions))


@pytest.fixture(scope="module", params=["experiment", "busy", "quiet keys"])
def task(request):
    if request.param == "experiment":
        return MiniGrid()
    return MiniGrid(BUSY, key_signal=25.0 if request.param == "busy" else 1.0)


def rows_of(task):
    return default_map() if task.behavior_shape[0] == 18 else BUSY


def policies(task, n, seed=0):
    low, high = task.space.low, task.space.high
    return jnp.asarray(np.random.default_rng(seed).uniform(low, high, (n, task.space.dim)), jnp.float32)


def cnn_layers(task, solution):
    hidden = task.policy.size - 224 - 1168 - 85  # parameters of the other layers
    return slow_tasks.cut(np.asarray(solution), [(27, 8), (72, 16), (hidden // 16 - 1, 16), (16, 5)])


def test_rollouts_equal_the_reference(task):
    solutions = policies(task, 4)
    ways, evaluation = np.asarray(trajectories(task, solutions)), evaluate(task, solutions)
    for i, solution in enumerate(solutions):
        layers, world, known = cnn_layers(task, solution), slow_tasks.GridWorld(rows_of(task)), {}
        for step in range(200):
            assert ways[i, step].tolist() == [world.row, world.column]
            state = (world.row, world.column, world.points)
            if state not in known:
                view = world.view(COLOURS, AGENT, MASKED)
                keys = task.key_signal * np.array(world.keys())
                known[state] = int(np.argmax(slow_tasks.grid_cnn(layers, view, keys)))
            world.act(known[state])
        assert evaluation.truth[i].tolist() == [world.row, world.column]
        assert evaluation.fitness[i] == world.points
        np.testing.assert_array_equal(evaluation.behavior[i], world.view(COLOURS, AGENT, MASKED).astype(np.float32))


def test_skipping_rounds_changes_nothing(task):
    solutions = policies(task, 64, seed=1)
    np.testing.assert_array_equal(evaluate(task, solutions).truth, trajectories(task, solutions)[:, -1])


def walk(task, actions):
    """The states after each of the actions (steps,)."""
    act = lambda state, action: (task.act(state, action),) * 2  # noqa: E731
    return jax.lax.scan(act, task.first_state, actions)[1]


def test_random_walks_equal_the_reference(task):
    actions = np.random.default_rng(2).integers(0, 5, (20, 300))
    states = jax.jit(jax.vmap(lambda a: walk(task, a)))(jnp.asarray(actions))
    views = np.asarray(jax.jit(jax.vmap(lambda state: task.view(state)))(jax.tree.map(lambda x: x[:, -1], states)))
    keys, doors = np.asarray(states.keys), np.asarray(states.doors)
    for i, sequence in enumerate(actions):
        world = slow_tasks.GridWorld(rows_of(task))
        for step, action in enumerate(sequence):
            world.act(action)
            assert np.asarray(states.position)[i, step].tolist() == [world.row, world.column]
            assert keys[i, step].tolist() == world.keys()
            assert 10 * keys[i, step].sum() + 20 * doors[i, step].sum() == world.points
        np.testing.assert_array_equal(views[i], world.view(COLOURS, AGENT, MASKED).astype(np.float32))
    if task.behavior_shape[0] < 18:
        assert doors[:, -1].any(axis=0)[:2].all()


def test_every_free_tile_is_reachable_in_time():
    task = MiniGrid()
    steps = slow_tasks.fewest_steps(default_map())
    free = {tuple(place) for place in np.argwhere(np.asarray(task.bins.reachable).reshape(18, 18)).tolist()}
    assert set(steps) == free
    assert len(free) == 203
    assert max(steps.values()) == 77
    assert len(slow_tasks.fewest_steps(default_map(), with_keys=False)) == 90
    np.testing.assert_array_equal(np.asarray(task.cells).reshape(18, 18, 2)[4, 11], [4, 11])


def test_colours_are_unique():
    colours = {"agent": AGENT, "masked": MASKED, **{tile: colour for tile, colour in COLOURS.items() if tile != "S"}}
    assert len(set(colours.values())) == len(colours) == 12
    assert COLOURS["S"] == COLOURS["."]
    assert all(0 <= channel <= 1 for colour in colours.values() for channel in colour)


def test_a_key_is_heard_among_the_features():
    assert MiniGrid().key_signal == 25


def test_a_key_opens_its_door_once():
    task = MiniGrid(["Sa.A."])
    right, left = MOVES.index((0, 1)), MOVES.index((0, -1))
    states = walk(task, jnp.asarray([right, right, right, right, left, left, right]))
    assert states.position[:, 1].tolist() == [1, 2, 3, 4, 3, 2, 3]
    assert states.keys[:, 0].tolist() == [True] * 7
    assert states.doors[:, 0].tolist() == [False, False, True, True, True, True, True]
    image = np.asarray(task.view(jax.tree.map(lambda x: x[3], states)))
    np.testing.assert_array_equal(image[0], [MASKED, COLOURS["."], COLOURS["."], COLOURS["."], AGENT])
    image = np.asarray(task.view(task.first_state))
    np.testing.assert_array_equal(image[0], [AGENT, COLOURS["a"], COLOURS["."], COLOURS["A"], MASKED])


def test_a_door_without_its_key_and_the_edge_block():
    task = MiniGrid(["aAS"])
    right, left, down = (MOVES.index(move) for move in [(0, 1), (0, -1), (1, 0)])
    states = walk(task, jnp.asarray([left, right, down]))
    assert states.position.tolist() == [[0, 2]] * 3
    assert not states.keys.any()


@pytest.mark.long
def test_random_policies_hardly_open_doors():
    """Measured: of 10,240 random policies none picks up a key, and they end on 35 tiles."""
    task = MiniGrid()
    fitness = evaluate(task, policies(task, 10_240)).fitness
    assert (fitness >= 30).mean() <= 0.01


def test_evaluation_has_the_promised_shapes_and_is_deterministic(task):
    solutions = policies(task, 8)
    first, again = evaluate(task, solutions), evaluate(task, solutions)
    assert eqx.tree_equal(first, again)
    assert first.behavior.shape == (8, *task.behavior_shape)
    assert first.truth.shape == (8, 2)
    assert first.fitness.dtype == jnp.float32
    np.testing.assert_array_equal(evaluate(task, solutions[::-1]).truth, first.truth[::-1])
    assert task.cells.shape == (task.behavior_shape[0] * task.behavior_shape[1], 2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "rows of one length"),
        (["S..", ".."], r"lengths \[2, 3\]"),
        (["...", "..."], "one start 'S', but got 0"),
        (["S.S"], "one start 'S', but got 2"),
        (["S.x"], "but got 'x'"),
        (["S.B"], "Door 'B' has no key"),
        (["Saa"], "more than once"),
        (["SaAA"], "more than once"),
    ],
)
def test_bad_maps_are_explained(rows, message):
    with pytest.raises(ValueError, match=message):
        MiniGrid(rows)


def test_drawing_shows_ways_and_ends():
    task = MiniGrid(BUSY)
    axes = Figure().add_subplot()
    task.draw(axes, policies(task, 3))
    assert len(axes.images) == 1
    assert len(axes.lines) == 2 * 3 + 1
