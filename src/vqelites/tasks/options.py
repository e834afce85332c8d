"""Checks of what is said of a task in words and numbers."""

import difflib
from typing import Any, get_args


def check_choice(what: str, name: object, choices: Any) -> None:
    """Raise unless it is one of a Literal."""
    known = get_args(choices)
    if name not in known:
        near = difflib.get_close_matches(str(name), known, n=2)
        hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"There is no {what} {name!r}.{hint} Known: {', '.join(map(repr, known))}.")


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
