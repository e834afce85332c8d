"""Checks on what users hand in: every error says what was expected, what came, and what to do."""

from collections.abc import Iterable, Set
from typing import Any

import jax
import numpy as np

from vqelites.levels import as_floats, as_levels

_EXACT = 2**24  # float32 holds every whole number up to here
_SEEDS = 2**32  # as many as 32 bits tell apart
_CHANNELS = (1, 3, 4)  # of pictures: grey, colour, colour with transparency


def plain(value: Any) -> Any:
    """A setting as Python's own number or list, where it comes as NumPy's or JAX's."""
    return np.asarray(value).tolist() if isinstance(value, np.generic | np.ndarray | jax.Array) else value


def seed(value: Any) -> int:
    """A seed as Python's own number."""
    number = plain(value)
    if not _whole(number, 0) or number >= _SEEDS:
        hint = " For another one every time, pass secrets.randbelow(2**32)." if value is None else ""
        raise ValueError(f"seed must be a whole number from 0 to {_SEEDS - 1}, but is {value!r}.{hint}")
    return int(number)


def shape(value: Any) -> tuple[int, ...]:
    """The shape of one behavior; as with NumPy's shapes, a number alone is the length of a vector."""
    given = plain(value)
    sizes = tuple(given) if isinstance(given, Iterable) else (given,)
    if not sizes or not all(_whole(size, 1) for size in sizes):
        raise ValueError(
            "behavior_shape must be whole numbers of at least 1, such as (10,) for a vector or (64, 64, 3) for an "
            f"image, but is {value!r}."
        )
    return tuple(int(size) for size in sizes)


def numbers(name: str, values: Any) -> np.ndarray:
    """The values as float32."""
    array = _array(name, values)
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"{name} must hold real numbers, but its dtype is {array.dtype}. Convert it to a NumPy array of floats."
        )
    with np.errstate(over="ignore"):  # too large for float32 becomes inf, which is counted and kept out
        return array.astype(np.float32)


def shaped(name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The values as float32 of exactly this shape."""
    array = numbers(name, _array(name, values, shape[1:]))
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, one row per solution, but has {array.shape}.")
    return array


def behaviors(name: str, values: Any, shape: tuple[int, ...], count: int | None = None) -> np.ndarray:
    """`count` (or any number of) behaviors of a shape: images and videos of 8-bit levels as they are, others as floats.

    All numbers but such levels, which stand for 0 to 1 (`levels.py`), stay what they are.
    """
    array = _array(name, values, shape)
    rows = array if array.dtype == np.uint8 and len(shape) > 2 else numbers(name, array)
    if rows.ndim == 0 or rows.shape[1:] != shape or len(rows) != (len(rows) if count is None else count):
        wanted = ", ".join(map(str, ("n" if count is None else count, *shape)))
        raise ValueError(f"{name} must have shape ({wanted}), one row per solution, but has {rows.shape}.")
    if array.dtype.kind in "iu" and array.size and max(int(array.max()), -int(array.min())) > _EXACT:
        raise ValueError(
            f"{name} holds whole numbers from {array.min()} to {array.max()}; beyond {_EXACT} neighbours become the "
            "same 32-bit float. Subtract an offset or divide, then pass floats."
        )
    return rows


def held(name: str, rows: np.ndarray, eight_bit: bool) -> np.ndarray:
    """Behaviors as a run holds them: in 8 bits if the first ones told were, else as float32."""
    held = as_levels(rows) if eight_bit else as_floats(rows)
    if held is None:
        raise ValueError(
            f"{name} holds images between 8-bit levels, or numbers that are not finite, but the first were uint8, "
            "so the run keeps 8 bits. Pass all images of a run as uint8, or all as floats in one scale, such as "
            "image / 255."
        )
    return held


def flag(name: str, value: Any) -> bool:
    """True or False, as Python's own."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, but is {value!r}.")
    return bool(value)


def finite_rows(*columns: np.ndarray) -> np.ndarray:
    """Which rows (n,) hold only finite numbers, in all columns."""
    rows = [np.isfinite(column).reshape(len(column), -1).all(axis=1) for column in columns]
    return np.logical_and.reduce(rows)


def limit(name: str, value: Any) -> float | tuple[float, ...]:
    """One limit for all parameters, or one each, as what files can hold."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiu" or array.ndim > 1:
        raise ValueError(f"{name} must be a number, or one for each parameter, but is {value!r}.")
    return tuple(map(float, array.tolist())) if array.ndim else float(array)


def rows(name: str, values: Any, row: tuple[int, ...]) -> np.ndarray:
    """Any number of rows of a shape, as float32."""
    array = numbers(name, values)
    if array.shape[1:] != row or array.ndim == 0:
        wanted = ", ".join(map(str, ("n", *row)))
        raise ValueError(f"{name} must have shape ({wanted}), one row per solution, but has {array.shape}.")
    return array


def width(name: str, values: Any, count: int) -> int:
    """How many numbers each of `count` rows has."""
    array = numbers(name, values)
    if array.ndim != 2 or len(array) != count:
        raise ValueError(f"{name} must have shape ({count}, t), one row per solution, but has {array.shape}.")
    return array.shape[1]


def truth(values: Any, count: int, width: int) -> np.ndarray:
    """The truth of `count` solutions, told always or never, as float32."""
    if values is None:
        if width:
            raise ValueError(
                f"truth must be told with these evaluations too, as an array ({count}, {width}): the algorithm needs "
                "it, or it was told with the first ones."
            )
        return np.zeros((count, 0), np.float32)
    if not width:
        raise ValueError(
            "truth was not told with the first evaluations, so it cannot be told with these: the elites that are there "
            "have none. Tell it from the start, or never."
        )
    return shaped("truth", values, (count, width))


def pixel_kinds(name: str, values: Any, before: Set[str]) -> frozenset[str]:
    """What is known of the scale of a run's images: what these say and what was known before, unless they disagree.

    8-bit images are taken as 0 to 1, so floats beyond that are in another scale; and where images had fractions between
    0 and 1, whole numbers up to 255 are levels that were not divided.
    """
    array = np.asarray(values)
    finite = array[np.isfinite(array)]
    low, high = (finite.min(), finite.max()) if finite.size else (0, 0)
    kinds = set(before)
    if array.dtype == np.uint8:
        kinds.add("8-bit")
    elif low < 0 or high > 1:
        whole = low >= 0 and high <= 255 and bool((finite == np.floor(finite)).all())
        kinds |= {"beyond", "levels"} if whole else {"beyond"}
    elif bool(((finite > 0) & (finite < 1)).any()):
        kinds.add("fractions")
    if {"8-bit", "beyond"} <= kinds or {"fractions", "levels"} <= kinds:
        raise ValueError(
            f"{name} spans [{low:g}, {high:g}] as {array.dtype}, but images told before were in another scale (8-bit "
            "images count as 0 to 1). Pass all images of a run as uint8, or all as floats in one scale, "
            "such as image / 255."
        )
    return frozenset(kinds)


def channels_last(shape: tuple[int, ...]) -> None:
    """An image that seems to have its channels first is refused: as (H, W, C) it would be a few pixels high."""
    if len(shape) not in (3, 4):
        return
    *frames, channels, height, width = shape
    if channels in _CHANNELS and min(height, width) >= 8:
        right, other = (*frames, height, width, channels), (*frames, height, channels, width)
        raise ValueError(
            f"Behavior of shape {shape} looks like channels first. Channels come last: make it {right}, images by "
            f"np.moveaxis(images, -3, -1). If they are meant to be {channels} high with {width} channels, exchange "
            f"height and width: {other}."
        )


def positive(**counts: int) -> None:
    """Every count is a whole number of at least one."""
    for name, value in counts.items():
        if not _whole(value, 1):
            raise ValueError(f"{name} must be a whole number of at least 1, but is {value!r}.")


def bootstrap(value: Any, shape: tuple[int, ...], default: int) -> tuple[int, np.ndarray | None]:
    """How many random solutions to start with, and the behavior brought along instead, if any."""
    if value is None:
        return default, None
    if isinstance(value, int | np.integer):
        if value < 0:
            raise ValueError(f"bootstrap is a number of random solutions, or an array of behavior, but is {value}.")
        return int(value), None
    data = as_floats(behaviors("bootstrap", value, shape))
    if not np.isfinite(data).all(axis=tuple(range(1, data.ndim))).any():
        raise ValueError(
            f"bootstrap behavior is empty: none of its {len(data)} rows is finite. "
            "Give at least one row, or a number of random solutions."
        )
    return 0, data


def _whole(value: Any, least: int) -> bool:
    """Whether it is a whole number of at least this; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and int(value) >= least


def _array(name: str, values: Any, row: tuple[int, ...] | None = None) -> np.ndarray:
    """The values as an array; if they are ragged, an error that names the first row that is not shaped like `row`.

    Without `row` the first row shows what the others should be.
    """
    try:
        return np.asarray(values)
    except ValueError:
        shapes = [_shape_of(each) for each in values] if isinstance(values, list | tuple) else []
        wanted = shapes[0] if row is None and shapes else row
        odd = next((i for i, found in enumerate(shapes) if found is None or found != wanted), None)
        if odd is None:  # something else is wrong with them
            raise
        found = "ragged rows of its own" if shapes[odd] is None else f"shape {shapes[odd]}"
        like = "have one shape" if wanted is None else f"have shape {wanted}"
        raise ValueError(f"{name} is ragged: every row must {like}, but row {odd} has {found}.") from None


def _shape_of(row: Any) -> tuple[int, ...] | None:
    """None if it has none, being ragged."""
    try:
        return np.shape(row)
    except ValueError:
        return None
