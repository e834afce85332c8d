"""A robot of Brax as a task in JAX: the uni- and omni-directional tasks that users of QDax know."""

import math
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from vqelites.tasks.base import AbstractTask
from vqelites.tasks.brax.options import BraxOptions
from vqelites.tasks.brax.robots import environment, robot, touching
from vqelites.tasks.families import spelled
from vqelites.tasks.options import check_names
from vqelites.tasks.policies import MLP
from vqelites.tessellation import grid
from vqelites.types import Bins, Evaluation, SolutionSpace

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CELLS, _BINS = 1000, 400  # about as many, of MAP-Elites and of metrics
_SPEED = 0.6  # m/s: the limits of an omni-directional task, 30 m in 1,000 steps of the ant, as in QDax


class Instant(NamedTuple):
    """What is recorded of every step."""

    reward: Float[Array, ""]
    feet: Float[Array, "f"]  # 1 for those that touch the ground
    place: Float[Array, "3"]  # of the body
    observation: Float[Array, "o"]
    alive: Float[Array, ""]  # 1 until the robot has fallen


class BraxTask(AbstractTask):
    """Policies that move a robot of Brax.

    `ant` or `ant-uni`: rewarded for going forward; the truth is the share of time that each foot touches the ground.
    `ant-omni`: rewarded for staying upright with little effort; the truth is where it ends. The same for every robot
    of `robots.py`. `options` are the fields of `BraxOptions`.
    """

    space: SolutionSpace
    cells: Float[Array, "k t"]
    bins: Bins
    policy: MLP
    env: Any = eqx.field(static=True)
    subject: str = eqx.field(static=True)
    options: BraxOptions = eqx.field(static=True)
    behavior_shape: tuple[int, ...] = eqx.field(static=True)
    truth_low: tuple[float, ...] = eqx.field(static=True)
    truth_high: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, subject: str, **options: Any):
        check_names("BraxTask", options, [field.name for field in fields(BraxOptions)])
        self.subject, self.options = subject, BraxOptions(**options)
        name, kind = self._parts
        if kind not in ("uni", "omni"):
            raise ValueError(f"{subject!r} must end in -uni (forward, by all gaits) or -omni (everywhere).")
        known = robot(name)
        self.env = environment(name, self.options.backend)
        sizes = (self.env.observation_size, *self.options.hidden, self.env.action_size)
        self.policy = MLP(sizes, jnp.tanh, jnp.tanh)
        limits = self.policy.limits(math.sqrt(3), 0.1)  # weights of LeCun's size
        self.space = SolutionSpace(self.policy.size, -limits, limits)
        seen = {"observations": sizes[0], "feet contact": len(known.feet), "path": 3}[self.options.behavior]
        self.behavior_shape = (self.options.moments, seen)
        reach = _SPEED * float(self.env.dt) * self.options.steps
        width = len(known.feet) if kind == "uni" else known.directions
        self.truth_low = (0.0 if kind == "uni" else -reach,) * width
        self.truth_high = (1.0 if kind == "uni" else reach,) * width
        self.cells = grid((round(_CELLS ** (1 / width)),) * width, self.truth_low, self.truth_high)
        centres = grid((round(_BINS ** (1 / width)),) * width, self.truth_low, self.truth_high)
        self.bins = Bins(centres, jnp.ones(len(centres), bool))

    @property
    def name(self) -> str:
        """`brax:ROBOT,OPTIONS`, from which it can be made again."""
        return f"brax:{spelled(self.subject, self.options)}"

    @property
    def _parts(self) -> tuple[str, str]:
        """The robot, and uni or omni."""
        name, _, kind = self.subject.partition("-")
        return name, kind or "uni"

    def evaluate(self, keys: Key[Array, "n"], solutions: Float[Array, "n s"]) -> Evaluation:
        return jax.vmap(lambda key, solution: self.both(key, solution)[0])(keys, solutions)

    def draw(self, axes: "Axes", solutions: Float[Array, "n s"]) -> None:
        """The paths of the body: from above if it can turn, else from the side."""
        keys = jax.random.split(jax.random.key(0), len(solutions))
        moments = _episodes(self, keys, solutions)
        turns = robot(self._parts[0]).directions == 2
        for places, alive in zip(np.asarray(moments.place), np.asarray(moments.alive), strict=True):
            way = places[alive > 0][:, [0, 1] if turns else [0, 2]]
            axes.plot(*way.T, marker="o", markevery=[-1], markersize=4, linewidth=1.2)
        axes.set(xlabel="x (m)", ylabel="y (m)" if turns else "height (m)")

    def episode(self, key: Key[Array, ""], solution: Float[Array, "s"]) -> Instant:
        """All that is recorded: steps + 1 moments, the start included; those after a fall repeat what was before it."""
        layers, known = self.policy.unflatten(solution), robot(self._parts[0])
        omni = self._parts[1] == "omni"

        def moment(state: Any, alive: Float[Array, ""]) -> Instant:
            reward = state.reward - state.metrics[known.forward] * omni
            feet = touching(self.env, known.feet, state).astype(jnp.float32)
            return Instant(reward * alive, feet * alive, state.pipeline_state.x.pos[0], state.obs, alive)

        def step(state: Any, _: None) -> tuple[Any, Instant]:
            standing = 1 - state.done
            after = self.env.step(state, self.policy.apply(layers, state.obs))
            after = after.replace(done=jnp.maximum(state.done, after.done))
            # What fell stays as it fell: nothing that it does afterwards may count, or become infinite.
            after = jax.tree.map(lambda new, old: jnp.where(standing > 0, new, old), after, state)
            return after, moment(after, standing)

        start = self.env.reset(key)
        first = moment(start, jnp.ones(()))._replace(reward=jnp.zeros(()))
        _, rest = jax.lax.scan(step, start, None, length=self.options.steps)
        return jax.tree.map(lambda one, more: jnp.concatenate([one[None], more]), first, rest)

    def both(self, key: Key[Array, ""], solution: Float[Array, "s"]) -> tuple[Evaluation, Instant]:
        """What one solution did, and the episode in which it did that."""
        moments = self.episode(key, solution)
        last = moments.alive.sum() - 1
        feet = moments.feet[1:].sum(axis=0) / jnp.maximum(last, 1)
        place = moments.place[-1, : len(self.truth_low)]
        seen = {"observations": moments.observation, "feet contact": moments.feet, "path": moments.place}
        chosen = jnp.round(jnp.linspace(0, 1, self.options.moments) * last).astype(int)
        behavior, truth = seen[self.options.behavior][chosen], feet if self._parts[1] == "uni" else place
        return Evaluation(moments.reward.sum(), behavior, truth), moments


@eqx.filter_jit
def _episodes(task: BraxTask, keys: Key[Array, "n"], solutions: Float[Array, "n s"]) -> Instant:
    return jax.vmap(task.episode)(keys, solutions)


def make(subject: str, options: BraxOptions) -> BraxTask:
    """The task of a name."""
    return BraxTask(subject, **vars(options))
