"""What a solution looks like at work."""

from typing import NamedTuple

import numpy as np


class Film(NamedTuple):
    """Frames of one evaluation, drawn while it was repeated."""

    frames: np.ndarray
    """(T, h, w, 3) in 8 bits"""
    rate: float = 30.0
    """frames per second"""
    fitness: float | None = None
    """of the evaluation that is seen"""
