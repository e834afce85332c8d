"""Tasks: what can be tried, and what happens then."""

from vqelites.tasks.base import AbstractTask as AbstractTask
from vqelites.tasks.base import Task as Task
from vqelites.tasks.planar_arm import PlanarArm as PlanarArm
from vqelites.tasks.simulated import Interface as Interface
from vqelites.tasks.simulated import SimulatorTask as SimulatorTask
