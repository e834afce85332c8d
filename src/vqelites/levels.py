"""Behavior in 8 bits: images as cameras and environments give them, whose levels 0 to 255 stand for 0 to 1.

They are held as they come, in a quarter of the memory of floats, and become floats where they are looked at. No JAX
here, since workers do without.
"""

import numpy as np

FLOATS = np.arange(256, dtype=np.float32) / np.float32(255)  # what each level stands for


def as_floats(behavior: np.ndarray) -> np.ndarray:
    """What 8-bit levels stand for; floats are left alone."""
    return FLOATS[behavior] if behavior.dtype == np.uint8 else behavior


def as_levels(behavior: np.ndarray) -> np.ndarray | None:
    """The 8-bit levels that stand for exactly these numbers, or None if some bit of them would change."""
    if behavior.dtype == np.uint8:
        return behavior
    if not ((behavior >= 0) & (behavior <= 1)).all():
        return None
    levels = np.rint(behavior * np.float32(255)).astype(np.uint8)
    same = np.array_equal(FLOATS[levels].view(np.uint32), behavior.astype(np.float32).view(np.uint32))
    return levels if same else None
