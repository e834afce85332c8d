"""A differential-drive robot that should end up everywhere in a walled square, at each place as early as possible."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from vqelites.tasks.base import AbstractTask, Chart
from vqelites.tasks.policies import MLP
from vqelites.types import Bins, Evaluation, SolutionSpace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORLD = 600.0  # side of the square world, in px
RADIUS = 10.0
SPEED = 4.0  # of a wheel at full throttle, in px per step
STEPS = 400
PIXELS = 64  # side of the raw behavior image
POLICY = MLP((4, 16, 2), jax.nn.relu, jnp.tanh)

# Walls are felt this much early, more than float32 rounds at 600 px: so no robot ever overlaps a wall, and one that
# stands against a wall is never counted in a bin inside it.
_SKIN = 1e-3
_REACH = RADIUS + _SKIN


class MobileRobot(AbstractTask):
    """A round robot in a 600x600 world with rectangular walls (x_low, y_low, x_high, y_high), y pointing up.

    The policy (4-16-2, ReLU, tanh) sees x and y divided by 600 and the cosine and sine of the heading, and drives the
    wheels at 4 px per step times its outputs, for 400 steps. Raw behavior: picture of the final position. Truth: final
    position in the unit square. Fitness: sum over the steps of exp(-distance to the final position), in the unit
    square; at most 400. Nothing is random. Grids over the truth list x first, so y runs fastest.
    """

    space: SolutionSpace
    behavior_shape: tuple[int, ...] = eqx.field(static=True)
    truth_low: tuple[float, ...] = eqx.field(static=True)
    truth_high: tuple[float, ...] = eqx.field(static=True)
    cells: Float[Array, "2025 2"]
    bins: Bins
    start: Float[Array, "3"]  # x, y, heading
    walls: Float[Array, "m 4"]

    def __init__(self, start: Sequence[float], walls: Sequence[Sequence[float]] = ()):
        if any(len(wall) != 4 for wall in walls):
            raise ValueError(f"A wall is four numbers (x_low, y_low, x_high, y_high), but got {list(walls)}.")
        corners = np.asarray(walls, float).reshape(-1, 4)
        _check(start, corners)
        # Uniform in [-1, 1], because 10,240 random policies then end in the most bins: 97 % (mobile-free) and 77 %
        # (mobile-l), against 93 and 49 % in [-0.3, 0.3], 76 and 61 % in [-2, 2], 68 and 54 % in [-3, 3].
        self.space = SolutionSpace(POLICY.size)
        self.behavior_shape = (PIXELS, PIXELS, 1)
        self.truth_low, self.truth_high = (0.0, 0.0), (1.0, 1.0)
        self.cells = _grid(45)
        self.bins = Bins(_grid(30), jnp.asarray(reachable_bins(start, corners, 30)))
        self.start = jnp.asarray(start, jnp.float32)
        self.walls = jnp.asarray(corners, jnp.float32)

    def evaluate(self, keys: Key[Array, "n"], solutions: Float[Array, "n s"]) -> Evaluation:
        positions = self.trajectories(solutions)[:, 1:, :2] / WORLD
        final = positions[:, -1]
        distance = jnp.linalg.norm(positions - final[:, None], axis=-1)
        return Evaluation(fitness=jnp.exp(-distance).sum(axis=1), behavior=jax.vmap(picture)(final), truth=final)

    def trajectories(self, solutions: Float[Array, "n s"]) -> Float[Array, "n 401 3"]:
        """Position (px) and heading of each robot at the start and after each step."""

        def rollout(solution: Float[Array, "s"]) -> Float[Array, "401 3"]:
            layers = POLICY.unflatten(solution)

            def step(state: Float[Array, "3"], _: None) -> tuple[Float[Array, "3"], Float[Array, "3"]]:
                x, y, heading = state
                seen = jnp.stack([x / WORLD, y / WORLD, jnp.cos(heading), jnp.sin(heading)])
                state = drive(state, SPEED * POLICY.apply(layers, seen), self.walls)
                return state, state

            # Measured, 128 robots: CPU 4.4 ms, unrolled by 4 6.7 ms, by 10 14 ms; H200 1.8 ms unrolled by 10.
            unroll = 1 if jax.default_backend() == "cpu" else 10
            _, states = jax.lax.scan(step, self.start, None, STEPS, unroll=unroll)
            return jnp.concatenate([self.start[None], states])

        return jax.vmap(rollout)(solutions)

    @property
    def chart(self) -> Chart:
        """Drawn in pixels."""
        return Chart(scale=WORLD)

    def draw(self, axes: "Axes", solutions: Float[Array, "n s"]) -> None:
        """The map from above, with the start, every robot's way and where it ended."""
        from matplotlib.patches import Circle, Rectangle

        for x_low, y_low, x_high, y_high in np.asarray(self.walls):
            axes.add_patch(Rectangle((x_low, y_low), x_high - x_low, y_high - y_low, color="0.35"))
        for way in np.asarray(self.trajectories(solutions)):
            (line,) = axes.plot(way[:, 0], way[:, 1], linewidth=0.8, alpha=0.7)
            axes.add_patch(Circle((way[-1, 0], way[-1, 1]), RADIUS, color=line.get_color()))
        x, y, heading = np.asarray(self.start)
        axes.add_patch(Circle((x, y), RADIUS, facecolor="white", edgecolor="black", zorder=3))
        tip = (x + 6 * RADIUS * np.cos(heading), y + 6 * RADIUS * np.sin(heading))
        axes.annotate("", tip, (x, y), arrowprops={"arrowstyle": "->", "color": "black"}, zorder=3)
        axes.set(xlim=(0, WORLD), ylim=(0, WORLD), aspect="equal", xlabel="x (px)", ylabel="y (px)")


def mobile_free() -> MobileRobot:
    """The empty square, started from its middle."""
    return MobileRobot((300.0, 300.0, 0.0))


def mobile_l() -> MobileRobot:
    """An L: a block fills the upper right, and the robot starts at the upper end of the left arm, looking down."""
    return MobileRobot((60.0, 540.0, -math.pi / 2), [(250.0, 250.0, 600.0, 600.0)])


def drive(state: Float[Array, "3"], wheels: Float[Array, "2"], walls: Float[Array, "m 4"]) -> Float[Array, "3"]:
    """One step at given wheel speeds (left, right): along the old heading up to the first wall, and a turn."""
    position, heading = state[:2], state[2]
    left, right = wheels
    move = (left + right) / 2 * jnp.stack([jnp.cos(heading), jnp.sin(heading)])
    position = jnp.clip(position + free_share(position, move, walls) * move, _REACH, WORLD - _REACH)
    return jnp.append(position, heading + (right - left) / (4 * RADIUS))


def free_share(position: Float[Array, "2"], move: Float[Array, "2"], walls: Float[Array, "m 4"]) -> Float[Array, ""]:
    """The share of a move that a round robot makes before it touches a wall; exact, so that it cannot jump a thin one.

    The places where the robot's centre would touch a rectangle are the rectangle grown sideways, the rectangle grown
    upwards, and discs around its four corners.
    """
    edge = jnp.where(move > 0, WORLD - _REACH, _REACH)
    share = jnp.where(move == 0, 1, (edge - position) / jnp.where(move == 0, 1, move)).min()
    if walls.shape[0]:
        grown = jnp.asarray([[-_REACH, 0, _REACH, 0], [0, -_REACH, 0, _REACH]])
        boxes = (walls[:, None] + grown[None]).reshape(-1, 4)
        share = jnp.minimum(share, jax.vmap(lambda box: _until_box(position, move, box))(boxes).min())
        corners = jnp.concatenate([walls[:, (0, 1)], walls[:, (2, 3)], walls[:, (0, 3)], walls[:, (2, 1)]])
        share = jnp.minimum(share, jax.vmap(lambda corner: _until_disc(position, move, corner))(corners).min())
    return jnp.clip(share, 0, 1)


# The two below are written number by number: a third faster on CPU than with arrays of length 2.
def _until_box(position: Float[Array, "2"], move: Float[Array, "2"], box: Float[Array, "4"]) -> Float[Array, ""]:
    """The share of a move after which it enters a box, infinite if it does not."""
    enter_x, leave_x = _between(position[0], move[0], box[0], box[2])
    enter_y, leave_y = _between(position[1], move[1], box[1], box[3])
    enter, leave = jnp.maximum(enter_x, enter_y), jnp.minimum(leave_x, leave_y)
    # A robot at a face may be inside by a rounding error: it is held if it pushes on, and free to go back.
    length = jnp.sqrt(move[0] ** 2 + move[1] ** 2)
    hit = (leave > jnp.maximum(enter, 0)) & (enter * length > -_SKIN)
    return jnp.where(hit, enter, jnp.inf)


def _between(
    place: Float[Array, ""], move: Float[Array, ""], low: Float[Array, ""], high: Float[Array, ""]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """The shares of a move along one axis at which it comes between two limits and leaves them again."""
    still = move == 0
    a, b = ((limit - place) / jnp.where(still, 1, move) for limit in (low, high))
    inside = (low < place) & (place < high)
    enter = jnp.where(still, jnp.where(inside, -jnp.inf, jnp.inf), jnp.minimum(a, b))
    return enter, jnp.where(still, jnp.inf, jnp.maximum(a, b))


def _until_disc(position: Float[Array, "2"], move: Float[Array, "2"], centre: Float[Array, "2"]) -> Float[Array, ""]:
    """The share of a move after which it comes within reach of a point, infinite if it does not."""
    (x, y), (dx, dy) = position - centre, move
    toward = -(x * dx + y * dy)
    room = x**2 + y**2 - _REACH**2
    square = toward**2 - (dx**2 + dy**2) * room
    hit = (toward > 0) & (square > 0)
    return jnp.where(hit, room / (toward + jnp.sqrt(jnp.where(hit, square, 1))), jnp.inf)


def picture(position: Float[Array, "2"]) -> Float[Array, "64 64 1"]:
    """A robot at a place in the unit square, white on black, row 0 at the top: each pixel is its covered share.

    Exact up to float32 rounding (about 1e-6).
    """
    radius = RADIUS / WORLD * PIXELS
    side = math.ceil(2 * radius) + 1  # of the only pixels that can be touched
    centre = jnp.stack([1 - position[1], position[0]]) * PIXELS  # row, column
    first = jnp.clip(jnp.floor(centre - radius).astype(jnp.int32), 0, PIXELS - side)
    edges = (first[:, None] + jnp.arange(side + 1)[None] - centre[:, None]) / radius
    area = _disc_area(edges[0, :, None], edges[1, None, :]) * radius**2
    share = jnp.diff(jnp.diff(area, axis=0), axis=1)
    share = jnp.where(share < 1e-6, 0, jnp.minimum(share, 1))  # what rounding leaves of untouched pixels is nothing
    blank = jnp.zeros((PIXELS, PIXELS))
    return jax.lax.dynamic_update_slice(blank, share, (first[0], first[1]))[..., None]


def _disc_area(a: Float[Array, "i 1"], b: Float[Array, "1 j"]) -> Float[Array, "i j"]:
    """Area of the part of the unit disc where x < a and y < b, in closed form."""
    a, b = jnp.clip(a, -1, 1), jnp.clip(b, -1, 1)
    # Integrate over x < a the part of the chord [-h, h] that lies under b: that is h + clip(b, -h, h), h^2 = 1 - x^2.
    cut = jnp.sqrt(1 - b**2)
    middle = jnp.abs(b) * (jnp.clip(a, -cut, cut) + cut)
    sides = _half_area(jnp.minimum(a, -cut)) + _half_area(jnp.maximum(a, cut)) - _half_area(cut)
    return _half_area(a) + jnp.sign(b) * (middle + sides)


def _half_area(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """Area of the upper half of the unit disc left of x."""
    return (x * jnp.sqrt(1 - x**2) + jnp.arcsin(x) + jnp.pi / 2) / 2


def reachable_bins(start: Sequence[float], walls: Float[np.ndarray, "m 4"], bins: int) -> Bool[np.ndarray, "b"]:
    """Which bins of a regular grid the robot's centre can be in after at most 400 steps, x first.

    Searched on nodes 4 px apart (a step at full speed), none of them on the border of a 20 px bin: turn on the spot
    to one of 8 directions, then drive forwards or backwards along it. Every bin found is truly reachable; a bin of
    which only slivers between the nodes are free may be missed.
    """
    nodes = round(WORLD / SPEED)
    x = (np.arange(nodes) + 0.5) * SPEED
    place = np.stack(np.meshgrid(x, x, indexing="ij"), axis=-1)
    free: np.ndarray = np.all((place >= RADIUS) & (place <= WORLD - RADIUS), axis=-1)
    for wall in walls:
        gap = np.maximum(np.maximum(wall[:2] - place, place - wall[2:]), 0)
        # Half a pixel to spare: a diagonal between two nodes comes 0.4 px closer to a corner than its ends.
        free &= np.hypot(gap[..., 0], gap[..., 1]) >= RADIUS + 0.5
    here = (int(start[0] / SPEED), int(start[1] / SPEED))
    reached = (_steps_to(free, here) <= STEPS).reshape(bins, nodes // bins, bins, nodes // bins)
    return reached.any(axis=(1, 3)).reshape(-1)


def _steps_to(free: Bool[np.ndarray, "x y"], start: tuple[int, int]) -> Float[np.ndarray, "x y"]:
    """Steps that suffice to drive to each node, infinite where none do."""
    turn = math.ceil(math.pi / 2 / (SPEED / (2 * RADIUS))) + 1  # at most a quarter, and a last step that is not full
    steps = np.full((4, *np.pad(free, 1).shape), np.inf)
    steps[:, start[0] + 1, start[1] + 1] = 2 * turn + 3  # onto the node or a free one beside it first
    blocked = ~np.pad(free, 1)
    for _ in range(STEPS):
        before = steps.copy()
        for axis, (dx, dy) in enumerate([(1, 0), (1, 1), (0, 1), (-1, 1)]):
            for sign in (1, -1):
                ahead = np.roll(steps[axis], (sign * dx, sign * dy), (0, 1)) + math.hypot(dx, dy)
                steps[axis] = np.minimum(steps[axis], np.where(blocked, np.inf, ahead))
        steps = np.minimum(steps, steps.min(axis=0) + turn)
        if np.array_equal(steps, before):
            break
    return steps.min(axis=0)[1:-1, 1:-1]


def _grid(n: int) -> Float[Array, "k 2"]:
    """Cell centres of the n x n grid over the unit square, y running fastest."""
    axis = (np.arange(n) + 0.5) / n
    return jnp.asarray(np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2), jnp.float32)


def _check(start: Sequence[float], walls: Float[np.ndarray, "m 4"]) -> None:
    """Raise if a wall is no rectangle in the world, or if the robot does not start in free space."""
    for wall in walls:
        low, high = wall[:2], wall[2:]
        if not (low < high).all():
            raise ValueError(
                f"A wall is (x_low, y_low, x_high, y_high) with low < high, but got {wall.tolist()}. Swap its corners."
            )
        if not ((low >= 0) & (high <= WORLD)).all():
            raise ValueError(f"Walls lie within 0 and {WORLD:g}, but got {wall.tolist()}. Cut it at the world's edge.")
    if len(start) != 3 or not np.isfinite(start).all():
        raise ValueError(f"The start is (x, y, heading), three finite numbers, but got {tuple(start)}.")
    place = np.asarray(start[:2], float)
    gaps = [np.linalg.norm(np.maximum(np.maximum(wall[:2] - place, place - wall[2:]), 0)) for wall in walls]
    gap = min([*gaps, place.min(), WORLD - place.max()])
    if gap < _REACH:
        raise ValueError(
            f"The robot's centre starts at least {_REACH} px from every wall, but {tuple(start[:2])} is {gap:g} px "
            "from one. Move the start."
        )
