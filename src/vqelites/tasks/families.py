"""Tasks by a name with a colon, `gym:LunarLander-v3,behavior=frame,steps=300`: a family, which one of it, and options.

The name says all that the task is made of, so a run folder that stores the name can be resumed and replayed anywhere.
"""

import importlib
import json
import re
from dataclasses import MISSING, dataclass, fields
from typing import Any

from vqelites.words import did_you_mean


@dataclass(frozen=True)
class Family:
    """Tasks of one kind. Its module is imported when one is made; it may need an extra.

    The module has a record of options, whose fields all have defaults, and a function `make(subject, options)`.
    """

    summary: str
    such_as: str  # an example of what stands behind the colon
    module: str
    record: str  # the name of the options there

    def options(self) -> Any:
        """The class of the options."""
        return getattr(importlib.import_module(self.module), self.record)

    def make(self, text: str) -> Any:
        """The task, or simulator, of what stands behind the colon."""
        return importlib.import_module(self.module).make(*self.read(text))

    def read(self, text: str) -> tuple[str, Any]:
        """What stands behind the colon: the subject and its options."""
        subject, *given = text.split(",")
        kind, values = self.options(), {}
        known = [field.name for field in fields(kind)]
        for item in given:
            name, is_given, value = item.partition("=")
            if not is_given or name not in known:
                near = did_you_mean(name, known)
                said = f"Options of a task are NAME=VALUE with {', '.join(known)}; got {item!r} in {text!r}.{near}"
                raise ValueError(said)
            values[name] = _value(value)
        return subject, kind(**values)


def spelled(subject: str, options: Any) -> str:
    """What stands behind the colon; options that are as always are left out."""
    parts = [subject]
    for field in fields(options):
        value = getattr(options, field.name)
        default = field.default if field.default is not MISSING else None
        if value != default:
            parts.append(f"{field.name}={_text(value)}")
    return ",".join(parts)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return "x".join(map(str, value)) + "x" * (len(value) == 1)
    return value if isinstance(value, str) else json.dumps(value)


def _value(text: str) -> Any:
    """A tuple such as 64x64, a number, true, false or null, or else a word."""
    if re.fullmatch(r"(\d+x)+\d*", text):
        return tuple(int(part) for part in text.split("x") if part)
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
