"""Robots of Brax that walk, as tasks in JAX: compiled with the search, thousands of them at once on a GPU."""

import contextlib
import io
import warnings

from vqelites.tasks.extras import needed

with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
    warnings.simplefilter("ignore")  # of its solver, and that a simulator nobody asked for is not there
    needed("brax.envs", "brax")

from vqelites.tasks.brax.options import BraxOptions as BraxOptions
from vqelites.tasks.brax.task import BraxTask as BraxTask
from vqelites.tasks.brax.task import make as make
