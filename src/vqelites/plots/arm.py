"""The robot arm in three dimensions."""

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D

from vqelites.plots.style import few_ticks, new_figure
from vqelites.tasks.arm import Arm, draw_poses
from vqelites.tasks.kinematics import chain


def arm_poses(task: Arm, poses: np.ndarray, title: str) -> Figure:
    """Left: the start pose with its joints numbered. Right: these poses (n, 6); `spread` picks diverse ones."""
    figure = new_figure(9.6, 4.8)
    figure.suptitle(title)
    left, right = (figure.add_subplot(1, 2, i, projection="3d") for i in (1, 2))
    task.draw(left, jnp.zeros((0, task.space.dim)))
    _number_joints(left, np.asarray(task.start), np.asarray(task.goal))
    left.set_title("start pose, joints 1 to 6, and the goal")
    draw_poses(right, jnp.asarray(poses))
    right.plot(*np.asarray(task.goal)[:, None], marker="*", markersize=14, color="red", linestyle="none")
    right.set_title(f"{len(poses)} poses")
    few_ticks(left, 4)
    few_ticks(right, 4)
    return figure


def _number_joints(axes: Axes3D, pose: np.ndarray, goal: np.ndarray) -> None:
    """1 to 6 at the joints: those that bend the arm where it bends, those that twist it in the middle of a segment."""
    base, shoulder, elbow, wrist, _ = np.asarray(chain(jnp.asarray(pose)))
    joints = [(base + shoulder) / 2, shoulder, (shoulder + elbow) / 2, elbow, (elbow + wrist) / 2, wrist]
    for number, place in enumerate(joints, 1):
        axes.plot(*place[:, None], marker="o", markersize=5, color="black")
        x, y, z = place
        z += 0.07 if np.linalg.norm(place - goal) > 0.15 else -0.13  # not onto the goal's star
        axes.text(x, y, z, str(number), fontsize=10, fontweight="bold", ha="center")
