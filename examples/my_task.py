"""A task of your own, in one file: throw a ball and see where it flies.

    vqelites run throw --task-file examples/my_task.py --preset quick --iterations 200

The name given to `register` is all that a run folder remembers of this file, so pass the file again where the task is
needed: `vqelites resume runs/throw-vq-elites-0 --task-file examples/my_task.py`.
"""

import equinox as eqx
import jax.numpy as jnp

from vqelites import Evaluation, SolutionSpace
from vqelites.tasks import AbstractTask, registry
from vqelites.tessellation import grid
from vqelites.types import Bins

GRAVITY, MOMENTS = 9.81, 16
FAR, HIGH = 12.0, 6.0  # metres; nobody throws further


@registry.register("throw", "a ball that should land everywhere, thrown as gently as possible")
class Throw(AbstractTask):
    """A solution is angle and speed of a throw; every field below must be there, in any task."""

    # Where solutions live: 2 numbers, an angle in radians and a speed in m/s; children are kept within these limits.
    space: SolutionSpace
    # What is known of the true outcome: hand-coded cells for MAP-Elites, and bins that metrics count.
    cells: jnp.ndarray
    bins: Bins
    # The raw record of what a solution did, which learned descriptors are made of: 16 positions (x, y) of the ball.
    # A vector (d,), a time series (T, d), an image (H, W, C) or a video (T, H, W, C).
    behavior_shape: tuple[int, ...] = eqx.field(static=True, default=(MOMENTS, 2))
    # Limits of the truth, the hand-coded descriptor: here how far the ball flies and how high.
    truth_low: tuple[float, ...] = eqx.field(static=True, default=(0.0, 0.0))
    truth_high: tuple[float, ...] = eqx.field(static=True, default=(FAR, HIGH))

    def __init__(self):
        self.space = SolutionSpace(2, [0.1, 1.0], [1.5, 10.0], bounded=True)
        self.cells = grid((20, 20), self.truth_low, self.truth_high)
        centres = grid((12, 12), self.truth_low, self.truth_high)
        # Only bins that some throw reaches count: height h at distance d needs the speed v^2 = g (2 h + d^2 / 8 h).
        far, high = centres[:, 0], centres[:, 1]
        needed = GRAVITY * (2 * high + far**2 / (8 * high))
        self.bins = Bins(centres, reachable=needed <= 10.0**2)

    def evaluate(self, keys, solutions):
        """Try n solutions (n, 2) at once, in JAX. `key` is for tasks with randomness; this one has none."""
        angle, speed = solutions[:, 0], solutions[:, 1]
        across, up = speed * jnp.cos(angle), speed * jnp.sin(angle)
        moment = jnp.linspace(0, 1, MOMENTS)[None] * (2 * up / GRAVITY)[:, None]  # until it lands
        x, y = across[:, None] * moment, up[:, None] * moment - GRAVITY / 2 * moment**2
        return Evaluation(
            fitness=-(speed**2) / 100,  # maximised; NaN or infinity would keep the solution out
            behavior=jnp.stack([x, y], axis=2),
            truth=jnp.stack([x[:, -1], up**2 / (2 * GRAVITY)], axis=1),
        )

    def draw(self, axes, solutions):
        """Some solutions in their world, on matplotlib axes."""
        for flight in self.evaluate(None, solutions).behavior:
            axes.plot(flight[:, 0], flight[:, 1], linewidth=1.2)
        axes.set(xlim=(0, FAR), ylim=(0, HIGH), xlabel="x (m)", ylabel="height (m)")
