"""How simulators get to worker processes that cannot import them by name."""

import importlib.util
import pickletools
import subprocess
import sys

import numpy as np
import pytest
import simulators

from vqelites.evaluation import PoolEvaluator, Simulator
from vqelites.evaluation.packing import packed
from vqelites.runs.taskfiles import load_task_file

FILE = """
from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

SCALE = 2.0


class Way(enum.Enum):
    UP = 1.0
    DOWN = -1.0


class Landing(NamedTuple):
    place: float


def helped(value):
    return SCALE * value


def function(solution, seed):
    return helped(solution.sum()), solution


def raises(solution, seed):
    raise ValueError("as it must")


class Plain:
    def __init__(self, factor):
        self.factor = factor

    def simulate(self, solution, seed):
        return helped(self.factor * solution.sum()), solution


@dataclass(frozen=True)
class Record:
    factor: float
    way: Way = Way.UP
    seen: list[float] = field(default_factory=list)

    def __call__(self, solution, seed):
        assert [each.name for each in dataclasses.fields(self)] == ["factor", "way", "seen"]
        doubled = dataclasses.replace(self, factor=2 * self.factor, way=Way.DOWN)
        assert doubled.way is Way.DOWN
        return helped(doubled.factor * solution.sum() / 2), Landing(solution).place


def closure():
    return lambda solution, seed: function(solution, seed)


SIMULATORS = {
    "function": function,
    "method": Plain(1.0).simulate,
    "record": Record(1.0),
    "closure": closure(),
}
"""
WAYS = ["function", "method", "record", "closure"]


@pytest.fixture
def loaded(tmp_path):
    """The file above as a module that no other process can import; its name is given back afterwards."""
    before = set(sys.modules)
    path = tmp_path / "my_sim.py"
    path.write_text(FILE)
    load_task_file(path)
    [name] = [name for name in set(sys.modules) - before if name.startswith("vqelites_task_file_")]
    yield sys.modules[name]
    del sys.modules[name]


def results_of(simulate):
    with PoolEvaluator(Simulator(simulate), workers=1) as evaluator:
        return evaluator.evaluate([0, 1], np.array([[1.0, 2.0], [3.0, 4.0]]), [0, 1])


@pytest.mark.parametrize("way", WAYS)
def test_simulators_of_a_task_file_reach_the_workers(loaded, way):
    assert [result.outcome.fitness for result in results_of(loaded.SIMULATORS[way])] == [6.0, 14.0]


def test_a_module_that_nobody_registered_reaches_the_workers_as_well(tmp_path):
    path = tmp_path / "my_sim.py"
    path.write_text(FILE.replace("from __future__ import annotations", ""))
    spec = importlib.util.spec_from_file_location("not_in_sys_modules", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for way in WAYS:
        assert [result.outcome.fitness for result in results_of(module.SIMULATORS[way])] == [6.0, 14.0]


def test_errors_name_the_line_of_the_file(loaded):
    line = FILE.splitlines().index('    raise ValueError("as it must")') + 1
    assert results_of(loaded.raises)[0].outcome.reason == f"ValueError: as it must (my_sim.py, line {line})"


def test_what_workers_can_import_is_sent_by_name(monkeypatch):
    """Modules that were imported stay what they are there: nothing of them travels."""
    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)  # tests in parallel have none
    for simulate in (simulators.noisy, simulators.SecondTime(".", 0).simulate):
        names = [value for _, value, _ in pickletools.genops(packed(Simulator(simulate)).pickled)]
        assert "simulators" in names
        assert not any(isinstance(name, str) and name.startswith("cloudpickle") for name in names)


SCRIPT = """
import importlib.util, sys
import numpy as np
from dataclasses import dataclass
from vqelites.evaluation import PoolEvaluator, Simulator

@dataclass
class Wrapped:
    simulate: object

    def __call__(self, solution, seed):
        return self.simulate(solution, seed)

if __name__ == "__main__":
    spec = importlib.util.spec_from_file_location("my_own_sim", {path!r})
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    {forget}
    found = []
    for simulate in module.SIMULATORS.values():
        for each in (simulate, Wrapped(simulate)):
            with PoolEvaluator(Simulator(each), workers=1) as evaluator:
                [result] = evaluator.evaluate([0], np.ones((1, 2)), [0])
            found.append(result.outcome.fitness)
    print(found)
"""


@pytest.mark.parametrize("forget", ["", "del sys.modules[spec.name]"])
def test_a_script_that_loads_a_file_can_send_what_is_in_it(tmp_path, forget):
    path = tmp_path / "my_sim.py"
    path.write_text(FILE)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(path=str(path), forget=forget))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, cwd=tmp_path.parent)
    assert (done.stdout, done.stderr) == (f"{[4.0] * 8}\n", "")
