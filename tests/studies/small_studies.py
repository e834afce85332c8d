"""Studies small enough for tests."""

from dataclasses import replace

_SMALL = {
    "search": {"iterations": 60, "batch_size": 16, "bootstrap": 64},
    "model": {"minibatch": 32, "bootstrap_epochs": 2},
    "data": {"window": 32, "archive": 32},  # together as many as the bootstrap: then all trainings are one program
    "cells": 32,
    "target": 32,
    "capacity": 64,
    "epochs": 2,
}


def shrunk(settings, **changes):
    """Settings of any algorithm, as small as they get."""
    values = {}
    for name, value in {**_SMALL, **changes}.items():
        if hasattr(settings, name):
            values[name] = replace(getattr(settings, name), **value) if isinstance(value, dict) else value
    return replace(settings, **values)


def small(study, chunk=5, **changes):
    """The same study with tiny runs."""
    groups = [
        replace(group, config=replace(group.config, settings=shrunk(group.config.settings, **changes), chunk=chunk))
        for group in study.groups
    ]
    return replace(study, groups=tuple(groups))
