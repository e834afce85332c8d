"""Packages that only some tasks need: imported when they are used, and named by their extra where they are missing."""

import importlib
from types import ModuleType


class MissingExtraError(ImportError, ValueError):
    """A package is not installed that comes with an extra of this one."""


def needed(module: str, extra: str) -> ModuleType:
    """The module, or an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"{missing(extra)} (Python says: {error}.)") from error


def missing(extra: str) -> str:
    """What to do about it."""
    return f'A package of the extra `{extra}` is not installed: pip install "vqelites[{extra}]".'
