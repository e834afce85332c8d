"""Checks on what users hand in: every error says what was expected, what came, and what to do."""

from typing import Any

import jax
import numpy as np


def plain(value: Any) -> Any:
    """A setting as Python's own number or list, where it comes as NumPy's or JAX's."""
    return np.asarray(value).tolist() if isinstance(value, np.generic | np.ndarray | jax.Array) else value


def numbers(name: str, values: Any) -> np.ndarray:
    """The values as float32; images of 8-bit integers are scaled to [0, 1]."""
    array = np.asarray(values)
    if array.dtype == np.uint8:
        return array.astype(np.float32) / 255
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"{name} must hold real numbers, but its dtype is {array.dtype}. Convert it to a NumPy array of floats."
        )
    with np.errstate(over="ignore"):  # too large for float32 becomes inf, which is counted and kept out
        return array.astype(np.float32)


def shaped(name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The values as float32 of exactly this shape."""
    array = numbers(name, values)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, one row per solution, but has {array.shape}.")
    return array


def in_unit_range(name: str, values: np.ndarray) -> None:
    """Cross-entropy compares brightness: values must lie in [0, 1] where they are finite."""
    finite = values[np.isfinite(values)]
    if finite.size and (finite.min() < 0 or finite.max() > 1):
        raise ValueError(
            f"{name} must lie in [0, 1] for a cross-entropy model, but spans [{finite.min():g}, {finite.max():g}]. "
            "Scale it, or choose loss='squared'."
        )


def positive(**counts: int) -> None:
    """Every count is a whole number of at least one."""
    for name, value in counts.items():
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, but is {value!r}.")


def bootstrap(value: Any, shape: tuple[int, ...], default: int) -> tuple[int, np.ndarray | None]:
    """How many random solutions to start with, and the behavior brought along instead, if any."""
    if value is None:
        return default, None
    if isinstance(value, int | np.integer):
        if value < 0:
            raise ValueError(f"bootstrap is a number of random solutions, or an array of behavior, but is {value}.")
        return int(value), None
    data = numbers("bootstrap", value)
    if data.ndim == 0 or data.shape[1:] != shape:
        raise ValueError(f"bootstrap behavior must have shape (n, {', '.join(map(str, shape))}), but has {data.shape}.")
    if not np.isfinite(data).all(axis=tuple(range(1, data.ndim))).any():
        raise ValueError(
            f"bootstrap behavior is empty: none of its {len(data)} rows is finite. "
            "Give at least one row, or a number of random solutions."
        )
    return 0, data
