"""A small embedded task: a planar arm that should reach everywhere with evenly bent joints."""

from typing import TYPE_CHECKING, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from vqelites.tasks.base import AbstractTask
from vqelites.tessellation import grid
from vqelites.types import Bins, Evaluation, SolutionSpace

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PlanarArm(AbstractTask):
    """`joints` links of total length 1, from the origin; a solution is one angle per joint, in half turns.

    Raw behavior is a picture of the arm ("image") or where its joints are ("joints"); the truth is where its tip is.
    Fitness exp(-variance of the angles) is 1 for an evenly bent arm.
    """

    space: SolutionSpace
    cells: Float[Array, "k 2"]
    bins: Bins
    behavior_shape: tuple[int, ...] = eqx.field(static=True)
    truth_low: tuple[float, ...] = eqx.field(static=True)
    truth_high: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, joints: int = 8, behavior: Literal["image", "joints"] = "image", pixels: int = 16):
        if behavior not in ("image", "joints"):
            raise ValueError(f"The planar arm's behavior is 'image' or 'joints', not {behavior!r}.")
        self.space = SolutionSpace(joints, bounded=True)
        self.behavior_shape = (pixels, pixels, 1) if behavior == "image" else (joints * 2,)
        self.truth_low, self.truth_high = (-1.0, -1.0), (1.0, 1.0)
        self.cells = grid((30, 30), self.truth_low, self.truth_high)
        centres = grid((16, 16), self.truth_low, self.truth_high)
        self.bins = Bins(centres, reachable=jnp.linalg.norm(centres, axis=1) <= 1)

    def evaluate(self, keys: Key[Array, "n"], solutions: Float[Array, "n s"]) -> Evaluation:
        positions = jax.vmap(joint_positions)(solutions)
        fitness = jnp.exp(-jnp.var(solutions * jnp.pi, axis=1))
        return Evaluation(fitness, self._behavior(positions), truth=positions[:, -1])

    def draw(self, axes: "Axes", solutions: Float[Array, "n s"]) -> None:
        """The reachable disc with the arms in it, their tips marked."""
        from matplotlib.patches import Circle

        axes.add_patch(Circle((0, 0), 1, facecolor="#f2f2f2", edgecolor="#888888"))
        for arm in np.asarray(jax.vmap(joint_positions)(solutions)):
            joints = np.concatenate([np.zeros((1, 2)), arm])
            (line,) = axes.plot(joints[:, 0], joints[:, 1], linewidth=1.5)
            axes.plot(*joints[-1], marker="o", markersize=4, color=line.get_color())
        axes.set(xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), aspect="equal", xlabel="x", ylabel="y")

    def _behavior(self, positions: Float[Array, "n j 2"]) -> Float[Array, "n *shape"]:
        if len(self.behavior_shape) == 1:
            return positions.reshape(positions.shape[0], -1)
        return jax.vmap(lambda arm: picture(arm, self.behavior_shape[0]))(positions)[..., None]


def joint_positions(angles: Float[Array, "j"]) -> Float[Array, "j 2"]:
    """Ends of all links; each angle is relative to the link before."""
    heading = jnp.cumsum(angles) * jnp.pi
    links = jnp.stack([jnp.cos(heading), jnp.sin(heading)], axis=1) / angles.shape[0]
    return jnp.cumsum(links, axis=0)


def picture(joints: Float[Array, "j 2"], pixels: int) -> Float[Array, "h w"]:
    """The arm as a thin grey line with a white hand, on black, in the square [-1, 1]^2, row 0 at the top."""
    centres = (2 * jnp.arange(pixels) + 1) / pixels - 1
    points = jnp.stack(jnp.meshgrid(centres, -centres), axis=-1)
    starts = jnp.concatenate([jnp.zeros((1, 2)), joints[:-1]])
    along = (joints - starts)[None, None]
    offset = points[:, :, None] - starts[None, None]
    share = jnp.clip((offset * along).sum(-1) / (along**2).sum(-1), 0, 1)
    to_arm = jnp.linalg.norm(offset - share[..., None] * along, axis=-1).min(axis=-1)
    to_hand = jnp.linalg.norm(points - joints[-1][None, None], axis=-1)
    return jnp.maximum(0.25 * _brush(to_arm, 0.5, pixels), _brush(to_hand, 1.5, pixels))


def _brush(distance: Float[Array, "h w"], radius: float, pixels: int) -> Float[Array, "h w"]:
    """Full brightness within `radius` pixels of the shape, fading to black over one more."""
    return jnp.clip(radius + 1 - distance * pixels / 2, 0, 1)
