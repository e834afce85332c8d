"""Channels of time series in different units: on one scale the small ones would be flat lines."""

import math

import numpy as np

_APART = 20  # times as far as a channel varies, all of them reach: it then needs a scale of its own


def own_ranges(series: np.ndarray) -> np.ndarray | None:
    """The lowest and highest value of every channel (c, 2) of series (..., c); None if one scale shows them all."""
    flat = series.reshape(-1, series.shape[-1])
    low, high = flat.min(axis=0), flat.max(axis=0)
    varying = (high - low)[high > low]
    reach = max(high.max(), 0) - min(low.min(), 0)
    if len(low) < 2 or not varying.size or reach <= _APART * varying.min():
        return None
    return np.stack([low, np.where(high > low, high, low + 1)], axis=1)


def within(series: np.ndarray, ranges: np.ndarray | None) -> np.ndarray:
    """Series (..., c) as they are drawn: every channel from 0 to 1 in its range, if it has one of its own."""
    return series if ranges is None else (series - ranges[:, 0]) / (ranges[:, 1] - ranges[:, 0])


def channel_names(count: int, ranges: np.ndarray | None) -> list[str]:
    """Their numbers, with their ranges where these are their own."""
    told = [""] * count if ranges is None else [_told(low, high) for low, high in ranges.tolist()]
    return [f"{i + 1}{text}" for i, text in enumerate(told)]


def _told(low: float, high: float) -> str:
    digits = max(0, 1 - math.floor(math.log10(high - low)))  # two of the difference can be read
    return f" ({low:.{digits}f} to {high:.{digits}f})"
