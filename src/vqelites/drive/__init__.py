"""Shells around the one loop: compiled for tasks in JAX, host for simulators anywhere else."""

from vqelites.drive.asynchronous import Asynchronous as Asynchronous
from vqelites.drive.compiled import Compiled as Compiled
from vqelites.drive.host import Host as Host
from vqelites.drive.host import Piece as Piece
from vqelites.drive.host import Position as Position
from vqelites.drive.host import Rows as Rows
from vqelites.drive.instep import InStep as InStep
from vqelites.drive.simulated import AbstractSimulated as AbstractSimulated
from vqelites.drive.steps import Measure as Measure
from vqelites.drive.steps import StepInfo as StepInfo
