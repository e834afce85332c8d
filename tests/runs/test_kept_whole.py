"""Whole programs on a shelf: the same results without tracing, and never those of another version or task."""

import dataclasses
import os
import subprocess
import sys
import threading
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import vqelites
from vqelites.algorithms import Effort, map_elites
from vqelites.drive import Compiled
from vqelites.drive.compiled import after_bootstrap
from vqelites.drive.shelf import Program, Shelf
from vqelites.experiments.presets import settings
from vqelites.runs import kept_programs
from vqelites.runs.kept_programs import KeptWhole, kept_whole
from vqelites.tasks import PlanarArm, registry

TASK = PlanarArm(joints=3, behavior="joints")
QD = map_elites(TASK, cells=TASK.cells, effort=Effort(iterations=4, batch_size=8, bootstrap=16))


class Dictionary:
    """A store in memory."""

    def __init__(self):
        self.programs, self.new = {}, threading.Semaphore(0)

    def get(self, name):
        return self.programs.get(name)

    def put(self, name, program):
        self.programs[name] = program
        self.new.release()


def shelf(store):
    return Shelf(store, lambda: eqx.filter_eval_shape(after_bootstrap, QD)[0])


def searched(*workshop):
    runs = Compiled(QD, TASK, *([lambda elites: {"size": elites.size}, *workshop] if workshop else []))
    state, begun = runs.begin(np.array([3]))
    return jax.device_get((begun.tell, *runs.advance(state, 0, 4)[:1]))


def assert_same(one, other):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for x, y in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(x, y)


def test_programs_from_a_store_are_not_traced_again_and_compute_the_same(monkeypatch):
    store = Dictionary()
    wanted = searched(shelf(store))
    assert_same(searched(), wanted)
    for _ in range(2):  # the bootstrap and the iterations
        assert store.new.acquire(timeout=60)
    monkeypatch.setattr(Shelf, "_traced", lambda *_: pytest.fail("a program was traced again"))
    assert_same(searched(shelf(store)), wanted)


def test_what_cannot_be_loaded_is_compiled():
    store, double = Dictionary(), Program(lambda fixed, x: fixed + 2 * x)
    store.get = lambda name: b"no program"
    np.testing.assert_array_equal(shelf(store).run(double, jnp.ones(2), jnp.arange(2.0)), [1, 3])


def test_a_shelf_tells_shapes_kinds_and_numbers_apart():
    given, times = shelf(Dictionary()), Program(lambda x, n: x * n)
    assert given.run(times, jnp.arange(3), 2).tolist() == [0, 2, 4]
    assert given.run(times, jnp.arange(3), 5).tolist() == [0, 5, 10]
    assert given.run(times, jnp.arange(2.0), 5).dtype == jnp.float32


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_after_ctrl_c_or_an_error_a_program_is_made_anew(error):
    """One Ctrl-C while compiling was raised again by every later run of that task in the process."""
    given, errors = shelf(Dictionary()), [error()]

    def fragile(x):
        if errors:
            raise errors.pop()
        return 2 * x

    program = Program(fragile)
    with pytest.raises(error):
        given.run(program, jnp.arange(3))
    assert given.run(program, jnp.arange(3)).tolist() == [0, 2, 4]


def test_settings_of_jax_that_change_later_make_another_program():
    """Those of a context manager were ignored."""
    given, traced = shelf(Dictionary()), []

    def noted(x):
        traced.append(jax.config.values["jax_default_matmul_precision"])
        return 2 * x

    program = Program(noted)
    for _ in range(2):
        given.run(program, jnp.arange(3))
        with jax.default_matmul_precision("float32"):
            given.run(program, jnp.arange(3))
    assert traced == [None, "float32"]


def test_nothing_is_kept_if_the_package_has_changed_since_it_was_imported(monkeypatch):
    """What was imported would be kept as if it were what is in the files now."""
    found = kept_programs._surroundings.__wrapped__
    monkeypatch.setattr(vqelites, "IMPORTED", time.time())
    assert found() is not None
    monkeypatch.setattr(vqelites, "IMPORTED", 0.0)
    assert found() is None


def test_a_damaged_file_is_as_good_as_none(tmp_path):
    kept = KeptWhole(tmp_path / "whole", "us")
    assert kept.get("learn") is None
    kept.put("learn", b"program" * 100)
    assert kept.get("learn") == b"program" * 100
    assert KeptWhole(tmp_path / "whole", "others").get("learn") is None
    (file,) = (tmp_path / "whole").iterdir()
    whole = file.read_bytes()
    for damaged in (b"", whole[:20], whole[:-3], whole[:40] + b"?" + whole[41:]):
        file.write_bytes(damaged)
        assert kept.get("learn") is None


def test_the_programs_used_least_recently_give_way(tmp_path, monkeypatch):
    kept = KeptWhole(tmp_path, "us")
    noise = np.random.default_rng(0).bytes(1000)
    monkeypatch.setattr(kept_programs, "_WHOLE_BYTES", 3500)
    for i, name in enumerate("abc"):
        kept.put(name, noise)
        os.utime(tmp_path / f"us-{name}", (i, i))
    assert kept.get("a") == noise  # which makes `b` the one used least recently
    kept.put("d", noise)
    assert {file.name for file in tmp_path.iterdir()} == {"us-a", "us-c", "us-d"}


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path):
    (tmp_path / "file").touch()
    kept = KeptWhole(tmp_path / "file" / "whole", "us")
    kept.put("learn", b"program")
    assert kept.get("learn") is None


def test_only_built_in_tasks_are_kept_and_each_configuration_for_itself(tmp_path, monkeypatch):
    known = settings("arm", "vq-elites", "quick")
    monkeypatch.setattr(kept_programs, "_folder", lambda: tmp_path / "programs")
    with monkeypatch.context() as patch:
        patch.setattr(kept_programs, "_folder", lambda: tmp_path / "elsewhere")
        assert kept_whole("arm", known) is None  # JAX was told to keep its programs in another place, or none
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "programs"))
    monkeypatch.setitem(registry._ENTRIES, "own", registry.Entry(lambda: TASK, "", None))
    try:
        first = kept_whole("arm", known)
        more = dataclasses.replace(known, cells=known.cells + 1)
        others = [kept_whole("arm", more), kept_whole("arm-constrained", known)]
        monkeypatch.setattr(kept_programs, "_surroundings", lambda: ("other code",))
        others.append(kept_whole("arm", known))
        assert len({first.identity, *(other.identity for other in others)}) == 4
        assert kept_whole("own", known) is None
        assert kept_whole("brax:ant-omni", known) is None
    finally:
        jax.config.update("jax_compilation_cache_dir", before)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder is found through a variable of Linux desktops")
def test_a_second_process_runs_the_same_programs_without_compiling_them(tmp_path):
    asked = ["run", "planar-arm", "--preset", "quick", "--iterations", "6", "--quiet", "--no-draw", "--cells", "64"]
    program = (
        "import jax, sys; jax.config.update('jax_log_compiles', True);from vqelites.cli import main; main(sys.argv[1:])"
    )
    logs, inherited = [], {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    for name in ("first", "second"):
        process = subprocess.run(
            [sys.executable, "-c", program, *asked, "--out", str(tmp_path / name)],
            env=inherited | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert process.returncode == 0, process.stderr
        logs.append(process.stderr.splitlines())
    names = ("begin", "learn", "iterate", "assign")
    kept = [path.name for path in (tmp_path / "cache" / "vqelites" / "whole").iterdir()]
    assert all(any(f"-{name}-" in path for path in kept) for name in names)
    assert any("jit(_learn_" in line for line in logs[0])
    assert not any(f"jit(_{name}_" in line for line in logs[1] for name in names)
    first, second = (np.load(tmp_path / name / "archive.npz") for name in ("first", "second"))
    for part in ("solutions", "fitness", "descriptors"):
        np.testing.assert_array_equal(first[part], second[part])
