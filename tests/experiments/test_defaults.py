"""A hyperparameter has one default, wherever it can be given."""

import inspect
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import vqelites
from vqelites import algorithms, cli
from vqelites.archives import UnstructuredArchive
from vqelites.dataset import Dataset
from vqelites.descriptors import VQVAE, AutoEncoder, Training
from vqelites.descriptors.coding import Coding
from vqelites.evaluation import ClusterEvaluator, PoolEvaluator
from vqelites.experiments import config
from vqelites.runs.config import Config, Evaluating
from vqelites.tasks import Interface, registry
from vqelites.variation import IsoLine

VQ, AURORA, HAND, CVT = (
    config.VQElitesSettings(), config.AuroraSettings(), config.MapElitesSettings(), config.CVTMapElitesSettings(),
)  # fmt: skip
# What the parts call otherwise than the records.
ALIASES = {"final": "final_rate", "batch": "minibatch", "equal": "equal_cells", "threshold_rule": "threshold"}
# Of these the records say more than the parts: rows from None, which the algorithm decides.
DECIDED = {"window", "archive"}
PLACES = [
    (vqelites.QD, VQ), (algorithms.Effort, VQ), (algorithms.vq_elites, VQ), (algorithms.aurora, AURORA),
    (algorithms.map_elites, HAND), (algorithms.cvt_map_elites, CVT), (VQVAE, VQ), (AutoEncoder, AURORA),
    (Coding, VQ), (Training, VQ), (UnstructuredArchive, AURORA), (Dataset, VQ), (IsoLine, VQ),
]  # fmt: skip


def flat(record):
    """Every value by its name, those of nested records too."""
    found = {}
    for field in fields(record):
        value = getattr(record, field.name)
        found |= flat(value) if is_dataclass(value) else {field.name: value}
    return found


def defaults(place):
    """What is said in a signature; None leaves it to somebody else."""
    parameters = inspect.signature(place).parameters.values()
    return {p.name: p.default for p in parameters if p.default not in (p.empty, None)}


@pytest.mark.parametrize(("place", "record"), PLACES, ids=[place.__name__ for place, _ in PLACES])
def test_parts_and_records_have_the_same_defaults(place, record):
    known, given = flat(record), {ALIASES.get(name, name): value for name, value in defaults(place).items()}
    shared = (known.keys() & given.keys()) - DECIDED
    assert shared
    assert {name: given[name] for name in shared} == {name: known[name] for name in shared}


@pytest.mark.parametrize("place", [vqelites.AskTell, vqelites.VQElites])
def test_ask_tell_has_the_defaults_of_a_simulator(place):
    given, known = defaults(place), {f.name: f.default for f in fields(Interface)}
    assert {"low", "high", "bounded", "truth_low", "truth_high"} <= given.keys() & known.keys()
    assert all(given[name] == known[name] for name in given.keys() & known.keys())


@pytest.mark.parametrize("place", [vqelites.run, PoolEvaluator, ClusterEvaluator])
def test_evaluation_has_the_same_defaults_everywhere(place):
    given, known = defaults(place), flat(Evaluating())
    assert "retries" in given
    assert all(given[name] == known[name] for name in given.keys() & known.keys())


def test_a_run_has_the_same_defaults_from_python_and_from_the_command_line():
    python, command = defaults(vqelites.run), flat(cli._parse(["run", "planar-arm"]))
    shared = python.keys() & command.keys()
    assert {"algorithm", "preset", "seed", "overwrite", "draw", "mode", "retries"} <= shared
    assert {name: command[name] for name in shared} == {name: python[name] for name in shared}
    assert set(inspect.signature(vqelites.run).parameters) - {
        "settings", "batch", "observe", "stop", "values", "saving",
    } <= command.keys()  # fmt: skip
    assert Config.of("planar-arm", "vq-elites").settings == cli._parse(["run", "planar-arm"]).settings


def test_a_registered_simulator_has_the_same_defaults():
    @registry.simulator(name="defaults", solution_dim=2)
    def simulate(solution, seed):
        return 0.0, np.zeros(2)

    assert registry.make("defaults").interface == Interface(2)
