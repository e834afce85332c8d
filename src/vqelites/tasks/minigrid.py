"""A grid world of rooms, keys and doors that should be walked to its last tile, seen through a small window."""

from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from vqelites.tasks.base import AbstractTask, Chart, Mark
from vqelites.tasks.policies import GridCNN, Layers
from vqelites.types import Bins, Evaluation, SolutionSpace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STEPS = 200
VIEW = 3  # tiles seen in each direction
KEY_POINTS, DOOR_POINTS = 10, 20
WEIGHT, BIAS = 3.0, 0.01  # limits of random policies: see `GridCNN.limits`
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1), (0, 0))  # up, right, down, left, stay: (row, column)

Colour = tuple[float, float, float]
MASKED = (0.0, 0.0, 0.0)
FLOOR = (1.0, 1.0, 1.0)
AGENT = (1.0, 0.0, 0.0)
COLOURS = {
    "#": (0.5, 0.5, 0.5),
    ".": FLOOR,
    "S": FLOOR,  # the start is an ordinary floor tile
    # A door is a darker shade of its key.
    "a": (1.0, 1.0, 0.0), "A": (0.5, 0.5, 0.0),
    "b": (0.0, 1.0, 0.0), "B": (0.0, 0.5, 0.0),
    "c": (0.0, 1.0, 1.0), "C": (0.0, 0.5, 0.5),
    "d": (0.0, 0.0, 1.0), "D": (0.0, 0.0, 0.5),
}  # fmt: skip


class GridState(eqx.Module):
    """Where the agent is, and what it has done."""

    position: Int[Array, "2"]  # row, column
    keys: Bool[Array, "k"]  # picked up
    doors: Bool[Array, "k"]  # opened


class MiniGrid(AbstractTask):
    """Rooms behind locked doors: # wall, . floor, S start, a to d keys, A to D the doors they open.

    A CNN policy sees the tiles at most 3 rows and columns away, the rest masked in black, and the keys it holds; its
    largest output moves the agent up, right, down, left or not at all, 200 times. Walls, closed doors without their
    key and the map's edge block. Moving into a door with its key opens it. Keys taken and doors opened become floor.
    Fitness: 10 points a key, 20 a door. Raw behavior: the last view. Truth: the last tile (row, column).
    Hand-coded cells are all tiles, row by row, walls too: MAP-Elites does not know them. Nothing is random.
    `key_signal` is the policy's input for a key it holds: 1 is too weak beside 400 features, 100 too strong.
    """

    space: SolutionSpace
    behavior_shape: tuple[int, ...] = eqx.field(static=True)
    truth_low: tuple[float, ...] = eqx.field(static=True)
    truth_high: tuple[float, ...] = eqx.field(static=True)
    cells: Float[Array, "k 2"]
    bins: Bins
    policy: GridCNN
    image: Float[Array, "h w 3"]  # the whole map at the start, without the agent
    wall: Bool[Array, "h w"]
    key_at: Bool[Array, "h w k"]
    door_at: Bool[Array, "h w k"]
    start: Int[Array, "2"]
    key_signal: float = eqx.field(static=True)

    def __init__(self, rows: Sequence[str] | None = None, key_signal: float = 25.0):
        tiles = parse(default_map() if rows is None else rows)
        height, width = tiles.shape
        letters = sorted({tile for tile in tiles.flat if tile in "abcd"})
        self.policy = GridCNN(height, width, len(letters))
        # With biases near 0 the masked part of a view gives no signal, so that a changed weight changes what is done
        # at some tiles and not everywhere.
        limits = self.policy.limits(WEIGHT, BIAS)
        self.space = SolutionSpace(self.policy.size, -limits, limits)
        self.behavior_shape = (height, width, 3)
        # Half a tile beyond the outer tiles' centres, so that every tile has an equal share of the box.
        self.truth_low, self.truth_high = (-0.5, -0.5), (height - 0.5, width - 0.5)
        self.cells = jnp.asarray(np.argwhere(np.ones(tiles.shape, bool)), jnp.float32)
        self.bins = Bins(self.cells, jnp.asarray(tiles != "#").reshape(-1))
        self.image = jnp.asarray([[COLOURS[tile] for tile in row] for row in tiles], jnp.float32)
        self.wall = jnp.asarray(tiles == "#")
        self.key_at = jnp.asarray(tiles[..., None] == np.array(letters, dtype="<U1"))
        self.door_at = jnp.asarray(tiles[..., None] == np.array([c.upper() for c in letters], dtype="<U1"))
        self.start = jnp.asarray(np.argwhere(tiles == "S")[0], jnp.int32)
        self.key_signal = key_signal

    def evaluate(self, keys: Key[Array, "n"], solutions: Float[Array, "n s"]) -> Evaluation:
        final = jax.vmap(self._last_state)(solutions)
        return Evaluation(
            fitness=jax.vmap(self._points)(final).astype(jnp.float32),
            behavior=jax.vmap(self.view)(final),
            truth=final.position.astype(jnp.float32),
        )

    def trajectories(self, solutions: Float[Array, "n s"]) -> Int[Array, "n 201 2"]:
        """The tile of each agent at the start and after each step."""

        def rollout(solution: Float[Array, "s"]) -> Int[Array, "201 2"]:
            layers = self.policy.unflatten(solution)

            def step(state: GridState, _: None) -> tuple[GridState, Int[Array, "2"]]:
                state = self.act(state, self._choose(layers, state))
                return state, state.position

            _, tiles = jax.lax.scan(step, self.first_state, None, STEPS)
            return jnp.concatenate([self.start[None], tiles])

        return jax.vmap(rollout)(solutions)

    @property
    def chart(self) -> Chart:
        """Tiles by row and column; start, keys (small letters) and doors (capitals) in the colour of their pair."""
        row, column = np.asarray(self.start)
        marks = [Mark("S", (float(column), float(row)), (0.0, 0.0, 0.0))]
        for letters, tiles in (("abcd", self.key_at), ("ABCD", self.door_at)):
            for row, column, pair in np.argwhere(np.asarray(tiles)):
                marks.append(Mark(letters[pair], (float(column), float(row)), COLOURS["ABCD"[pair]]))
        return Chart(rows_first=True, marks=tuple(marks))

    def draw(self, axes: "Axes", solutions: Float[Array, "n s"]) -> None:
        """The map at the start, with every agent's way and where it ended."""
        axes.imshow(np.asarray(self.image))
        ways = np.asarray(self.trajectories(solutions), float)
        for i, way in enumerate(ways):
            # Side by side within the tile, so that ways along the same tiles stay apart.
            shift = 0.6 * ((i + 0.5) / len(ways) - 0.5)
            (line,) = axes.plot(way[:, 1] + shift, way[:, 0] + shift, linewidth=1.2, alpha=0.7)
            axes.plot(way[-1, 1] + shift, way[-1, 0] + shift, marker="o", color=line.get_color())
        axes.plot(self.start[1], self.start[0], marker="x", color="black", linestyle="none")
        axes.set(xlabel="column", ylabel="row")

    @property
    def first_state(self) -> GridState:
        """The agent at the start, empty-handed."""
        none = jnp.zeros(self.policy.keys, bool)
        return GridState(self.start, none, none)

    def act(self, state: GridState, action: Int[Array, ""]) -> GridState:
        """The state after one action."""
        target = jnp.clip(state.position + jnp.asarray(MOVES)[action], 0, jnp.asarray(self.wall.shape) - 1)
        locked = (self.door_at[target[0], target[1]] & ~state.keys).any()
        blocked = self.wall[target[0], target[1]] | locked
        position = jnp.where(blocked, state.position, target)
        row, column = position
        return GridState(position, state.keys | self.key_at[row, column], state.doors | self.door_at[row, column])

    def view(self, state: GridState) -> Float[Array, "h w 3"]:
        """The map as the agent sees it."""
        row, column = state.position
        rows, columns = jnp.arange(self.image.shape[0])[:, None], jnp.arange(self.image.shape[1])[None]
        seen = (jnp.abs(rows - row) <= VIEW) & (jnp.abs(columns - column) <= VIEW)
        gone = (self.key_at & state.keys[None, None]) | (self.door_at & state.doors[None, None])
        image = _paint(self.image, gone.any(axis=-1), FLOOR)
        image = _paint(image, (rows == row) & (columns == column), AGENT)
        return _paint(image, ~seen, MASKED)

    def _choose(self, layers: Layers, state: GridState) -> Int[Array, ""]:
        """The policy's action."""
        return jnp.argmax(self.policy.apply(layers, self.view(state), self.key_signal * state.keys))

    def _points(self, state: GridState) -> Int[Array, ""]:
        """Points scored so far."""
        return KEY_POINTS * state.keys.sum() + DOOR_POINTS * state.doors.sum()

    def _last_state(self, solution: Float[Array, "s"]) -> GridState:
        """The state after the last step.

        A policy without memory repeats itself for ever once it is in a state again, so whole rounds are skipped. They
        are noticed by comparing with a state kept from earlier, renewed at ever longer intervals (Brent 1980).
        Measured on CPU, 128 agents: 15 times as fast as 200 steps for random policies, 3 to 4 times for evolved ones.
        """
        layers = self.policy.unflatten(solution)
        zero = jnp.asarray(0, jnp.int32)

        def step(carry: tuple[GridState, Int[Array, ""], GridState, Int[Array, ""], Int[Array, ""]]) -> tuple:
            state, time, kept, kept_time, interval = carry
            state, time = self.act(state, self._choose(layers, state)), time + 1
            age = time - kept_time
            # Points only grow: if they are the same, so are the keys and doors.
            again = (state.position == kept.position).all() & (self._points(state) == self._points(kept))
            time = jnp.where(again, time + (STEPS - time) // age * age, time)
            renew = age == interval
            kept, kept_time = jax.tree.map(lambda a, b: jnp.where(renew, a, b), (state, time), (kept, kept_time))
            return state, time, kept, kept_time, jnp.where(renew, 2 * interval, interval)

        first = (self.first_state, zero, self.first_state, zero, zero + 1)
        return jax.lax.while_loop(lambda carry: carry[1] < STEPS, step, first)[0]


def _paint(image: Float[Array, "h w 3"], tiles: Bool[Array, "h w"], colour: Colour) -> Float[Array, "h w 3"]:
    """The image with some tiles in another colour."""
    return jnp.where(tiles[..., None], jnp.asarray(colour)[None, None], image)


def default_map() -> list[str]:
    """The rows of the 18x18 map of the experiments."""
    return resources.files("vqelites.tasks").joinpath("data/minigrid_map.txt").read_text().split()


def parse(rows: Sequence[str]) -> np.ndarray:
    """The map's characters as an array (height, width), checked."""
    lengths = {len(row) for row in rows}
    if len(lengths) != 1 or lengths == {0}:
        raise ValueError(
            f"A map has rows of one length, but got lengths {sorted(lengths)}. Fill the short ones with '#'."
        )
    tiles = np.array([list(row) for row in rows])
    unknown = sorted(set(tiles.flat) - set(COLOURS))
    if unknown:
        raise ValueError(f"A map is made of {''.join(COLOURS)!r}, but got {''.join(unknown)!r}. Replace those tiles.")
    count = {tile: int((tiles == tile).sum()) for tile in COLOURS}
    if count["S"] != 1:
        raise ValueError(f"A map has one start 'S', but got {count['S']}. Mark the tile the agent starts from.")
    for key in "abcd":
        if max(count[key], count[key.upper()]) > 1:
            raise ValueError(
                f"A map has each key and door once, but '{key}' or '{key.upper()}' is there more than once."
            )
        if count[key.upper()] > count[key]:
            raise ValueError(f"Door '{key.upper()}' has no key. Put an '{key}' on the map, or make the door floor.")
    return tiles
