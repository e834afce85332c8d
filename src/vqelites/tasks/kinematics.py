"""Where the first six joints of a KUKA LBR iiwa 14 put its flange, and which joint angles put it at a goal.

Six joints against three coordinates: the poses that reach a goal form a three-dimensional surface in joint space.
Given joints 3, 5 and 6, the others follow in closed form, in at most four ways: joint 4 from the distance between
shoulder and goal, joint 2 from the height of the goal, joint 1 from its heading. So no solution is missed, nothing has
to converge, and how much of the surface each pose stands for is known: thinned by that, poses are spread evenly.
"""

import functools
import itertools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

JOINTS = 6
SEGMENTS = (0.36, 0.42, 0.40, 0.126)  # m: base to shoulder, to elbow, to wrist, to flange
LIMIT = (2.967, 2.094, 2.967, 2.094, 2.967, 2.094)  # rad, both ways
SPEED = (1.48, 1.48, 1.75, 1.31, 2.27, 2.36)  # rad/s, both ways
TOLERANCE = 1e-4  # m: a pose reaches a goal if the flange is at most this far from it

Coordinate = Float[Array, "*n"]
Point = tuple[Coordinate, Coordinate, Coordinate]

_FREE, _SOLVED = np.array([2, 4, 5]), np.array([0, 1, 3])  # joints 3, 5, 6 and joints 1, 2, 4
_BATCH = 2**16
_GRID = 32  # angles per free joint when looking for any pose at all


@jax.jit
@functools.partial(jnp.vectorize, signature="(j)->(p,d)")
def chain(angles: Float[Array, "*n 6"]) -> Float[Array, "*n 5 3"]:
    """Positions of base, shoulder, elbow, wrist and flange."""
    q1, q2, q3, q4, q5, q6 = angles
    origin = (jnp.zeros_like(q1),) * 3
    points = [origin]
    # From the flange back to the base, in the frame of one joint pair after the other; joint 4 turns about -y.
    # Coordinate by coordinate: nothing but arithmetic, which the compiler fuses into one pass over a batch.
    for length, about_z, about_y in zip(SEGMENTS[:0:-1], (q5, q3, q1), (q6, -q4, q2), strict=True):
        points = [origin] + [_turn_zy(x, y, z + length, about_z, about_y) for x, y, z in points]
    return jnp.array([origin] + [(x, y, z + SEGMENTS[0]) for x, y, z in points])


def forward(angles: Float[Array, "*n 6"]) -> Float[Array, "*n 3"]:
    """Position of the flange."""
    return chain(angles)[..., -1, :]


def solve(free: Float[Array, "3"], goal: Float[Array, "3"]) -> Float[Array, "4 6"]:
    """All poses with these angles of joints 3, 5 and 6 that reach the goal; NaN in place of those that do not exist."""
    q3, q5, q6 = free
    goal_x, goal_y, goal_z = goal - jnp.array([0, 0, SEGMENTS[0]])
    upper, forearm, hand = SEGMENTS[1:]
    # Elbow to flange before joint 4 turns it; the turn must put the flange as far from the shoulder as the goal is.
    x, y = _turn(hand * jnp.sin(q6), jnp.zeros_like(q5), q5)
    z = forearm + hand * jnp.cos(q6)
    distance = goal_x**2 + goal_y**2 + goal_z**2 - upper**2 - x**2 - y**2 - z**2
    bend = jnp.arccos(distance / (2 * upper * jnp.hypot(x, z)))
    q4 = jnp.arctan2(x, z) + bend * jnp.array([1, 1, -1, -1])
    x, z = _turn(x, z, q4)
    # Shoulder to flange before joint 2 turns it; the turn must put the flange as high as the goal is.
    x, y = _turn(x, y, q3)
    z = z + upper
    lean = jnp.arccos(goal_z / jnp.hypot(x, z))
    q2 = lean * jnp.array([1, -1, 1, -1]) - jnp.arctan2(x, z)
    q1 = jnp.arctan2(goal_y, goal_x) - jnp.arctan2(y, _turn(z, x, q2)[1])
    poses = jnp.stack(jnp.broadcast_arrays(q1, q2, q3, q4, q5, q6), axis=1)
    return (poses + jnp.pi) % (2 * jnp.pi) - jnp.pi


def _turn(x: Coordinate, y: Coordinate, angle: Coordinate) -> tuple[Coordinate, Coordinate]:
    """(x, y) turned from x towards y."""
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    return cos * x - sin * y, sin * x + cos * y


def _turn_zy(x: Coordinate, y: Coordinate, z: Coordinate, about_z: Coordinate, about_y: Coordinate) -> Point:
    """(x, y, z) turned about y, then about z."""
    z, x = _turn(z, x, about_y)
    return *_turn(x, y, about_z), z


def inverse(
    key: Key[Array, ""], n: int, goal: Float[Array, "3"], low: Float[Array, "6"], high: Float[Array, "6"]
) -> Iterator[Float[np.ndarray, "m 6"]]:
    """n poses that reach the goal within the limits, spread evenly over all such poses, in batches."""
    check_reachable(goal, low, high)
    found, full = 0, None
    for batch in itertools.count():
        poses, area, chance = (np.asarray(x) for x in _draw(jax.random.fold_in(key, batch), goal, low, high))
        if not (area > 0).any():
            continue
        # Not the largest area: where two solutions meet it is infinite, and nothing else would be kept.
        full = np.quantile(area[area > 0], 0.999) if full is None else full
        rows = poses[chance * full < area][: n - found]
        yield rows
        found += len(rows)
        if found == n:
            return


def check_reachable(goal: Float[Array, "3"], low: Float[Array, "6"], high: Float[Array, "6"]) -> None:
    """Raise if no pose within the limits reaches the goal, as far as a grid over joints 3, 5 and 6 can tell."""
    angles = np.linspace(np.asarray(low)[_FREE], np.asarray(high)[_FREE], _GRID, axis=1, dtype=np.float32)
    free = np.stack(np.meshgrid(*angles), axis=-1).reshape(-1, 3)
    if not np.any(_complete(jnp.asarray(free), goal, low, high)[1]):
        raise ValueError(
            f"No pose within the joint limits puts the flange at goal={goal.tolist()} (tried {_GRID}^3 settings of "
            f"joints 3, 5, 6). Expected a goal off the base's axis and at most {sum(SEGMENTS[1:]):.3f} m from the "
            f"shoulder at (0, 0, {SEGMENTS[0]}); move the goal or widen low={low.tolist()}, high={high.tolist()}."
        )


@jax.jit
def _complete(
    free: Float[Array, "n 3"], goal: Float[Array, "3"], low: Float[Array, "6"], high: Float[Array, "6"]
) -> tuple[Float[Array, "m 6"], Bool[Array, "m"]]:
    """All poses with these angles of joints 3, 5 and 6, and which of them reach the goal within the limits."""

    def reaches(pose: Float[Array, "6"]) -> Bool[Array, ""]:
        return ((low <= pose) & (pose <= high)).all() & (jnp.linalg.norm(forward(pose) - goal) <= TOLERANCE)

    poses = jax.vmap(solve, (0, None))(free, goal).reshape(-1, JOINTS)
    return poses, jax.vmap(reaches)(poses)


@jax.jit
def _draw(
    key: Key[Array, ""], goal: Float[Array, "3"], low: Float[Array, "6"], high: Float[Array, "6"]
) -> tuple[Float[Array, "m 6"], Float[Array, "m"], Float[Array, "m"]]:
    """Poses for random angles of joints 3, 5 and 6, the surface each stands for (0: misses), and a number in [0, 1)."""
    key_free, key_chance = jax.random.split(key)
    free = jax.random.uniform(key_free, (_BATCH, 3)) * (high - low)[None, _FREE] + low[None, _FREE]
    poses, valid = _complete(free, goal, low, high)
    return poses, jnp.where(valid, jax.vmap(_area)(poses), 0), jax.random.uniform(key_chance, valid.shape)


def _area(pose: Float[Array, "6"]) -> Float[Array, ""]:
    """Surface of poses with the same flange position, per volume of joints 3, 5 and 6 (the area formula of a graph)."""
    jacobian = jax.jacfwd(forward)(pose)
    return jnp.sqrt(jnp.linalg.det(jacobian @ jacobian.T)) / jnp.abs(jnp.linalg.det(jacobian[:, _SOLVED]))
