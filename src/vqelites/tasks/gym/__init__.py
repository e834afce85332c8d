"""Environments of Gymnasium as simulators: any of them, a policy to act in it, and what is seen of an episode.

No module here imports JAX, so that worker processes start fast.
"""

from vqelites.tasks.extras import needed

needed("gymnasium", "gym")

from vqelites.tasks.gym.episodes import Episode as Episode  # noqa: E402
from vqelites.tasks.gym.options import GymOptions as GymOptions  # noqa: E402
from vqelites.tasks.gym.task import GymTask as GymTask  # noqa: E402
from vqelites.tasks.gym.task import make as make  # noqa: E402
