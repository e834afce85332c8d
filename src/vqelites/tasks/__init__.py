"""Tasks: what can be tried, and what happens then."""

from vqelites.tasks.base import AbstractTask as AbstractTask
from vqelites.tasks.planar_arm import PlanarArm as PlanarArm
