"""Where behavior belongs in the space that an algorithm has learned."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from vqelites import inputs
from vqelites.levels import as_floats
from vqelites.loop import QD, State


def describe(qd: QD, state: State, behavior: Any) -> np.ndarray:
    """The descriptors (n, d) of behavior (n, *shape), or that of one, (d,)."""
    if not qd.schedule.learns:
        raise ValueError(
            "The descriptors are hand-coded: solutions are placed by their truth, which behavior does not tell. Look "
            "them up by it, archive.nearest(truth)."
        )
    one = np.ndim(behavior) == len(qd.sizes.behavior)
    rows = inputs.behaviors("behavior", np.asarray(behavior)[None] if one else behavior, qd.sizes.behavior)
    nothing = jnp.zeros((len(rows), qd.sizes.truth))
    found = np.asarray(qd.descriptor.describe(state.descriptor, jnp.asarray(as_floats(rows)), nothing))
    return found[0] if one else found
