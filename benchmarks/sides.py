"""Several ways to do the same, side by side: their turns alternate, so that other work hits all alike."""

import time
from collections.abc import Callable

import jax


def milliseconds(calls: dict[str, Callable[[], object]], turns: int = 25) -> dict[str, float]:
    """Milliseconds of the fastest of each call's turns; the first call of each compiles and is not counted."""
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        jax.block_until_ready(call())
    for _ in range(turns):
        for name, call in calls.items():
            start = time.perf_counter()
            jax.block_until_ready(call())
            spent[name].append(1e3 * (time.perf_counter() - start))
    return {name: min(times) for name, times in spent.items()}


def fastest(call: Callable[[], object], seconds: float = 1.0) -> float:
    """Milliseconds of the fastest of as many turns as fit into so many seconds; it is compiled already."""
    spent: list[float] = []
    while sum(spent) < 1e3 * seconds:
        start = time.perf_counter()
        jax.block_until_ready(call())
        spent.append(1e3 * (time.perf_counter() - start))
    return min(spent)


def row(what: str, calls: dict[str, Callable[[], object]], per: int = 1, turns: int = 25) -> dict[str, float]:
    """Measure and print one row: the time of each, and how many times as long the others take as the first."""
    times = {name: value / per for name, value in milliseconds(calls, turns).items()}
    told(what, times)
    return times


def told(what: str, values: dict[str, float], unit: str = "ms") -> None:
    """Print one row."""
    mine, *others = values
    ratios = "".join(f"  {name}/{mine} {values[name] / values[mine]:.2f}" for name in others)
    print(
        f"{what:<52}" + "".join(f"  {name} {value:.3f} {unit}" for name, value in values.items()) + ratios, flush=True
    )
