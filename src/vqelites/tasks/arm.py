"""A robot arm that should put its flange at a goal, in as many poses as there are."""

import hashlib
import importlib.resources
import io
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from vqelites.tasks.base import AbstractTask, Chart
from vqelites.tasks.kinematics import JOINTS, LIMIT, SPEED, chain, check_reachable, forward
from vqelites.tasks.policies import MLP, gaussian, identity
from vqelites.types import Bins, Evaluation, SolutionSpace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from mpl_toolkits.mplot3d import Axes3D

GOAL = (0.5, 0.0, 0.5)  # m
START = (0.0, math.pi / 3, 0.0, -math.pi / 3, 0.0, math.pi / 3)  # rad
CONSTRAINED = (0.5, 0.5, *LIMIT[2:])  # rad, both ways: joints 1 and 2 hardly turn
STEPS = 300
DT = 0.01  # s
NEAR = 0.05  # m from the goal: a pose farther away misses it
# Random parameters lie within +-WEIGHT, where 1,280 random policies reach most of the 400 bins: 318 and, constrained,
# 312 (mean of 6 seeds); 306 and 308 within +-0.25, 321 and 282 within +-0.5, 291 and 259 within +-1.
WEIGHT = 0.3
_TOGETHER = 8  # policies whose steps CPUs compute side by side
POLICY = MLP((JOINTS, 32, 32, JOINTS), gaussian, identity)

# Of data/arm_groundtruth.npz, written by `python -m vqelites.tasks.groundtruth`.
GROUND_TRUTH_SHA256 = "8c16177c91d1a4e494ef1836117b69481039c0cdfc92639983ac83c6758dc457"


class Arm(AbstractTask):
    """Joints 1 to 6 of a KUKA LBR iiwa 14 under velocity control: 300 steps of 0.01 s.

    The policy (6-32-32-6, exp(-x^2), 1,478 parameters) sees the joint angles in radians, as they are: they lie within
    +-3 already. Its outputs are joint velocities in rad/s, clipped to the robot's; angles are clipped to the limits.
    Raw behavior and truth: the final joint angles. Fitness: exp(-distance of the flange to the goal in m). Nothing is
    random. `cells` and `bins` are poses; the truth's known limits are the robot's own, even where `low` and `high` are
    tighter: whoever designs the descriptor does not know of the constraint.
    """

    space: SolutionSpace
    behavior_shape: tuple[int, ...] = eqx.field(static=True)
    truth_low: tuple[float, ...] = eqx.field(static=True)
    truth_high: tuple[float, ...] = eqx.field(static=True)
    cells: Float[Array, "k 6"]
    bins: Bins
    low: Float[Array, "6"]
    high: Float[Array, "6"]
    start: Float[Array, "6"]
    goal: Float[Array, "3"]
    near_goal: ClassVar[float] = math.exp(-NEAR)

    def __init__(
        self,
        *,
        low: Sequence[float],
        high: Sequence[float],
        start: Sequence[float],
        goal: Sequence[float],
        cells: Float[np.ndarray, "k 6"],
        bins: Float[np.ndarray, "b 6"],
    ):
        _check(low, high, start, goal)
        self.space = SolutionSpace(POLICY.size, -WEIGHT, WEIGHT)
        self.behavior_shape = (JOINTS,)
        self.truth_low, self.truth_high = tuple(-x for x in LIMIT), LIMIT
        # By way of NumPy: each conversion that JAX makes is a small program, to be compiled.
        numbers = [np.array(x, np.float32) for x in (cells, bins, low, high, start, goal)]
        self.cells, centres, self.low, self.high, self.start, self.goal = jax.device_put(numbers)
        self.bins = Bins(centres, jax.device_put(np.ones(len(bins), bool)))
        check_reachable(self.goal, self.low, self.high)

    def evaluate(self, keys: Key[Array, "n"], solutions: Float[Array, "n s"]) -> Evaluation:
        final = jax.lax.platform_dependent(
            solutions, cpu=lambda rows: self._side_by_side(rows), default=lambda rows: jax.vmap(self._rollout)(rows)
        )
        distance = jnp.linalg.norm(forward(final) - self.goal[None], axis=1)
        return Evaluation(fitness=jnp.exp(-distance), behavior=final, truth=final)

    def _rollout(self, solution: Float[Array, "s"]) -> Float[Array, "6"]:
        """The joint angles after the last step."""
        layers = POLICY.unflatten(solution)

        def step(_: int, angles: Float[Array, "6"]) -> Float[Array, "6"]:
            return self._moved(angles, POLICY.apply(layers, angles))

        return jax.lax.fori_loop(0, STEPS, step, self.start)

    def _side_by_side(self, solutions: Float[Array, "n s"]) -> Float[Array, "n 6"]:
        """The same for many, some at a time: how CPUs are fastest."""
        n, size = solutions.shape

        def block(solutions: Float[Array, "{_TOGETHER} s"]) -> Float[Array, "{_TOGETHER} 6"]:
            layers = [(jnp.moveaxis(w, 0, -1), b.T) for w, b in jax.vmap(POLICY.unflatten)(solutions)]
            layers = jax.lax.optimization_barrier(layers)  # once, not in every step

            def step(_: int, angles: Float[Array, "6 {_TOGETHER}"]) -> Float[Array, "6 {_TOGETHER}"]:
                return self._moved(angles.T, POLICY.apply_side_by_side(layers, angles).T).T

            start = jnp.broadcast_to(self.start[:, None], (JOINTS, _TOGETHER))
            return jax.lax.fori_loop(0, STEPS, step, start).T

        blocks = jnp.pad(solutions, ((0, -n % _TOGETHER), (0, 0))).reshape(-1, _TOGETHER, size)
        return jax.lax.map(block, blocks).reshape(-1, JOINTS)[:n]

    def _moved(self, angles: Float[Array, "*n 6"], velocity: Float[Array, "*n 6"]) -> Float[Array, "*n 6"]:
        """The joint angles a step later."""
        speed = jnp.broadcast_to(jnp.asarray(SPEED), angles.shape)
        low, high = (jnp.broadcast_to(limit, angles.shape) for limit in (self.low, self.high))
        return jnp.clip(angles + DT * jnp.clip(velocity, -speed, speed), low, high)

    @property
    def chart(self) -> Chart:
        """Drawn in space."""
        return Chart(projection="3d")

    def draw(self, axes: "Axes", solutions: Float[Array, "n s"]) -> None:
        """The final poses, the start in black, and the goal. Poses that miss the goal are grey and dotted.

        The start's joints are numbered if it is alone.
        """
        poses = jax.vmap(self._rollout)(solutions)
        missed = np.asarray(jnp.linalg.norm(forward(poses) - self.goal[None], axis=1)) > NEAR
        draw_poses(axes, poses[~missed])
        draw_poses(axes, poses[missed], color="#555555", linestyle=":", alpha=1.0)
        named = {f"misses the goal by more than {100 * NEAR:g} cm": axes.lines[-1]} if missed.any() else {}
        draw_poses(axes, self.start[None], color="black", linestyle="--", alpha=1.0)
        named["start"] = axes.lines[-1]
        (named["goal"],) = axes.plot(
            *np.asarray(self.goal)[:, None], marker="*", markersize=14, color="red", linestyle="none"
        )
        axes.legend(named.values(), named, loc="upper left", fontsize=8, frameon=False)
        if not len(solutions):
            _number_joints(axes, np.asarray(self.start), np.asarray(self.goal))


def arm() -> Arm:
    """The arm with the limits of the robot."""
    truth = load_ground_truth()
    low = tuple(-x for x in LIMIT)
    return Arm(low=low, high=LIMIT, start=START, goal=GOAL, cells=truth["cells"], bins=truth["bins"])


def arm_constrained() -> Arm:
    """The arm with joints 1 and 2 limited to +-0.5 rad, the start clipped to that; the cells do not know of it."""
    truth = load_ground_truth()
    low, high = tuple(-x for x in CONSTRAINED), CONSTRAINED
    start = tuple(np.clip(START, low, high).tolist())
    return Arm(low=low, high=high, start=start, goal=GOAL, cells=truth["cells"], bins=truth["constrained_bins"])


def load_ground_truth() -> dict[str, Float[np.ndarray, "k 6"]]:
    """Poses that stand for all poses at the goal: 1,500 `cells`, 400 `bins`, 400 `constrained_bins`."""
    content = importlib.resources.files("vqelites.tasks").joinpath("data/arm_groundtruth.npz").read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != GROUND_TRUTH_SHA256:
        raise RuntimeError(
            f"vqelites/tasks/data/arm_groundtruth.npz should have SHA-256 {GROUND_TRUTH_SHA256}, but has {found}. "
            "Coverage would not be comparable: reinstall the package."
        )
    with np.load(io.BytesIO(content)) as arrays:
        return dict(arrays)


def draw_poses(
    axes: "Axes",
    poses: Float[Array, "n 6"],
    *,
    color: str | None = None,
    linestyle: str = "-",
    alpha: float = 0.7,
) -> None:
    """Arms in these poses, as lines from base to flange on 3-D axes; each in its own colour unless one is given."""
    if axes.name != "3d":
        raise ValueError(f"Arms are drawn on 3-D axes, but got {axes.name!r} ones. Use add_subplot(projection='3d').")
    for points in np.asarray(chain(poses)):
        axes.plot(*points.T, color=color, linestyle=linestyle, alpha=alpha, marker="o", markersize=3)
    axes.set(xlim=(-0.4, 0.8), ylim=(-0.6, 0.6), zlim=(0, 1.2), box_aspect=(1, 1, 1))
    axes.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)")


def _number_joints(axes: "Axes3D", pose: Float[np.ndarray, "6"], goal: Float[np.ndarray, "3"]) -> None:
    """1 to 6 at the joints: those that bend the arm where it bends, those that twist it in the middle of a segment."""
    base, shoulder, elbow, wrist, _ = np.asarray(chain(jnp.asarray(pose)))
    joints = [(base + shoulder) / 2, shoulder, (shoulder + elbow) / 2, elbow, (elbow + wrist) / 2, wrist]
    for number, place in enumerate(joints, 1):
        axes.plot(*place[:, None], marker="o", markersize=5, color="black")
        x, y, z = place
        z += 0.07 if np.linalg.norm(place - goal) > 0.15 else -0.13  # not onto the goal's star
        axes.text(x, y, z, str(number), fontsize=10, fontweight="bold", ha="center")


def _check(low: Sequence[float], high: Sequence[float], start: Sequence[float], goal: Sequence[float]) -> None:
    """Raise if the numbers do not describe this robot."""
    for name, values, size in (
        ("low", low, JOINTS),
        ("high", high, JOINTS),
        ("start", start, JOINTS),
        ("goal", goal, 3),
    ):
        if np.shape(values) != (size,) or not np.isfinite(values).all():
            raise ValueError(f"The arm's {name} is {size} finite numbers, but got {values}.")
    for joint, (lowest, highest, limit) in enumerate(zip(low, high, LIMIT, strict=True), 1):
        if not -limit <= lowest < highest <= limit:
            raise ValueError(
                f"Joint {joint} needs limits with {-limit} <= low < high <= {limit} rad, "
                f"but got low={lowest}, high={highest}. Swap or tighten them."
            )
    for joint, (lowest, angle, highest) in enumerate(zip(low, start, high, strict=True), 1):
        if not lowest <= angle <= highest:
            raise ValueError(
                f"Joint {joint} starts within its limits {lowest} and {highest} rad, but got {angle}. "
                "Clip the start to the limits."
            )
