"""Typed records to JSON and back; what does not fit its type is refused with its name."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from vqelites.inputs import plain
from vqelites.runs.files import RunError

T = TypeVar("T")


def to_json(record: Any) -> dict[str, Any]:
    """The record's fields, nested ones too, as JSON values."""
    return dataclasses.asdict(record, dict_factory=lambda fields: {name: plain(value) for name, value in fields})


def from_json(kind: type[T], values: Any, where: str) -> T:
    """A record of this kind; `where` names it in messages. Every field must be there, and no other."""
    if not isinstance(values, Mapping):
        raise RunError(f"{where} must be a JSON object, not {values!r}.")
    hints = typing.get_type_hints(kind)
    unknown, missing = sorted(values.keys() - hints.keys()), sorted(hints.keys() - values.keys())
    if unknown or missing:
        named = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has unknown {', '.join(unknown)}"] * bool(unknown)
        raise RunError(f"{where} {' and '.join(named)}; it was written by another version of vqelites.")
    return kind(**{name: _value(hint, values[name], f"{where}.{name}") for name, hint in hints.items()})


def _value(hint: Any, value: Any, where: str) -> Any:
    """The value as this type; an int is a float too, but a bool is neither."""
    if dataclasses.is_dataclass(hint):
        return from_json(typing.cast(type, hint), value, where)
    choices = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    for choice in choices:
        if typing.get_origin(choice) is typing.Literal:
            if isinstance(value, str) and value in typing.get_args(choice):
                return value
        elif typing.get_origin(choice) is tuple:
            if isinstance(value, list):
                return tuple(_value(typing.get_args(choice)[0], item, f"{where}[{i}]") for i, item in enumerate(value))
        elif choice is float and isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        elif isinstance(value, choice) and isinstance(value, bool) == (choice is bool):
            return value
    expected = " or ".join(_name(choice) for choice in choices)
    raise RunError(f"{where} must be {expected}, not {value!r}.")


def _name(choice: Any) -> str:
    if typing.get_origin(choice) is typing.Literal:
        return "one of " + ", ".join(typing.get_args(choice))
    if typing.get_origin(choice) is tuple:
        return f"a list of {_name(typing.get_args(choice)[0])}"
    return "null" if choice is type(None) else choice.__name__
