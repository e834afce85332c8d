"""Checks of what is said of a task in words and numbers."""

from collections.abc import Iterable, Sequence
from typing import Any, get_args

from vqelites.words import did_you_mean


def check_choice(what: str, name: object, choices: Any) -> None:
    """Raise unless it is one of a Literal."""
    known = get_args(choices)
    if name not in known:
        near = did_you_mean(repr(name), map(repr, known))
        raise ValueError(f"There is no {what} {name!r}.{near} Known: {', '.join(map(repr, known))}.")


def check_names(what: str, given: Iterable[str], known: Sequence[str], hint: str = "") -> None:
    """Raise unless all keywords are options; the hint says what else they could have been."""
    for name in given:
        if name not in known:
            said = f"{what} has no option {name!r}.{did_you_mean(name, known)} It has {', '.join(known)}."
            raise TypeError(f"{said} {hint}".rstrip())


def check_counts(**values: object) -> None:
    """Raise unless all are whole numbers of at least 1."""
    for name, value in values.items():
        if not _counts(value):
            raise ValueError(f"{name} must be a whole number of at least 1, but is {value!r}.")


def check_layers(hidden: Any) -> tuple[int, ...]:
    """The units of hidden layers; a single number is one layer."""
    layers = (hidden,) if isinstance(hidden, int) else hidden
    if not isinstance(layers, tuple | list) or not all(_counts(units) for units in layers):
        raise ValueError(f"hidden are the units of each layer, such as (32, 32), but is {hidden!r}.")
    return tuple(layers)


def _counts(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
