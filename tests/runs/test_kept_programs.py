"""Compiled programs are kept in the user's cache folder, unless JAX was told otherwise."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import jax
import vqelites.runs.runner
from vqelites.runs.kept_programs import keep_programs

assert jax.config.jax_compilation_cache_dir == (sys.argv[2] if len(sys.argv) > 2 else None)  # an import changes nothing
keep_programs()
print(jax.config.jax_compilation_cache_dir)
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event.endswith("/cache_hits")))
for i in range(int(sys.argv[1])):
    jax.jit(lambda x, i=i: x * i + 1)(jax.numpy.arange(3 + i))
print(sum(hits))
"""
ASK_AND_TELL = """
import jax
from vqelites import VQElites

hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event.endswith("/cache_hits")))
VQElites(solution_dim=2, behavior_shape=3, cells=4)
print(jax.config.jax_compilation_cache_dir)
print(sum(hits))
"""


def start(home, *arguments, program=PROGRAM, **environment):
    """A process that keeps programs below `home`; `PROGRAM` compiles so many."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", program, *map(str, arguments)],
        env=inherited | {"XDG_CACHE_HOME": str(home), "HOME": str(home)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process):
    """The cache folder it used, and how many of its programs it found there."""
    out, error = process.communicate(timeout=120)
    assert process.returncode == 0, error
    folder, hits = out.split()
    return folder, int(hits)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder is found through a variable of Linux desktops")
def test_processes_share_the_cache_and_what_a_killed_one_left_is_removed(tmp_path):
    together = [start(tmp_path, 4) for _ in range(2)]
    folder = {ended(process)[0] for process in together}
    assert folder == {str(tmp_path / "vqelites" / "programs")}
    programs = list((tmp_path / "vqelites" / "programs").glob("*-cache"))
    torn = programs[0]
    torn.write_bytes(torn.read_bytes()[:10])
    torn.with_name(torn.name.removesuffix("-cache") + "-atime").unlink()
    _, hits = ended(start(tmp_path, 4))
    assert hits == len(programs) - 1
    assert torn.stat().st_size > 10


def test_a_cache_folder_of_ones_own_is_left_alone(tmp_path):
    own = tmp_path / "own"
    folder, _ = ended(start(tmp_path, 1, own, JAX_COMPILATION_CACHE_DIR=str(own)))
    assert folder == str(own)
    assert not (tmp_path / "vqelites").exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder is found through a variable of Linux desktops")
def test_ask_and_tell_finds_the_programs_of_an_earlier_process(tmp_path):
    (folder, first), (again, later) = (ended(start(tmp_path, program=ASK_AND_TELL)) for _ in range(2))
    assert folder == again == str(tmp_path / "vqelites" / "programs")
    assert later > first
