"""Processes that are killed or asked to stop at any moment, in the middle of writing too; then resumed and compared."""

import random
import signal
import time

import pytest
import tiny

from vqelites.runs.run import Run

pytestmark = pytest.mark.also_shipped
ITERATIONS, CHUNK, EVERY = 60, 5, 5


def arguments(algorithm):
    return [*tiny.flags(algorithm, iterations=ITERATIONS, chunk=CHUNK, every=EVERY), "--no-draw"]


def rows(folder):
    try:
        return (folder / "metrics.csv").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def wait_for(condition, process, seconds=120):
    """Busy waiting: some moments last a millisecond."""
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.stdout.read()
        assert time.monotonic() < end
        time.sleep(0.0002)


def kill_when(process, condition):
    """Its output until then."""
    wait_for(condition, process)
    process.send_signal(signal.SIGKILL)
    return process.communicate()[0]


def half_written(folder):
    """Whether a checkpoint is being written right now."""
    return any((folder / "checkpoints").glob(".*.tmp"))


def killed_and_resumed(algorithm, cache, tmp_path, seed):
    """Kill at four kinds of moments, each time going on; the rest runs to its end."""
    dice, folder = random.Random(seed), tmp_path / "killed"
    start = tiny.command(cache, "run", *arguments(algorithm), "--out", folder)
    kill_when(start, lambda: rows(folder) > 0)  # before anything is saved
    assert "beginning from the first iteration" in interrupted(
        cache, folder, lambda: rows(folder) > dice.randint(4, 12)
    )
    interrupted(cache, folder, lambda: half_written(folder))
    assert half_written(folder)  # what the kill left, right in the middle
    reached = dice.randint(25, 40)
    interrupted(cache, folder, lambda: rows(folder) > reached and (folder / ".archive.npz.tmp").exists())
    time.sleep(dice.random())
    return folder, tiny.finish(tiny.command(cache, "resume", folder, "--no-draw"))


def interrupted(cache, folder, condition):
    return kill_when(tiny.command(cache, "resume", folder, "--no-draw"), condition)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", tiny.ALGORITHMS)
def test_a_run_killed_again_and_again_ends_as_if_it_had_never_been(algorithm, cache, tmp_path):
    tiny.finish(tiny.command(cache, "run", *arguments(algorithm), "--out", tmp_path / "whole"))
    folder, output = killed_and_resumed(algorithm, cache, tmp_path, seed=7)
    assert "Finished" in output
    tiny.assert_same(tmp_path / "whole", folder)
    assert not list(folder.rglob(".*.tmp"))


def busy(cache, folder):
    """A run that has been going for a while and has much to do."""
    process = tiny.command(cache, "run", *tiny.flags("map-elites", iterations=100000), "--out", folder, "--no-draw")
    wait_for(lambda: rows(folder) > 30, process)
    return process


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_is_asked_to_stop_saves_and_says_how_to_go_on(number, code, cache, tmp_path):
    folder = tmp_path / "run"
    process = busy(cache, folder)
    process.send_signal(number)
    output = tiny.finish(process, code=code)
    assert "Finishing this chunk, then saving." in output
    run = Run.load(folder)
    assert f"Saved after iteration {run.iteration}. Continue with: vqelites resume {folder}" in output
    assert len(run.metrics) == run.iteration + 1  # all that was computed is saved
    assert run.iteration >= 30
    assert "\x1b" not in output  # no terminal, no colours or moving bar


@pytest.mark.slow
def test_a_second_interrupt_stops_at_once(cache, tmp_path):
    folder = tmp_path / "run"
    options = tiny.flags("map-elites", iterations=3000000, chunk=1000000)
    process = tiny.command(cache, "run", *options, "--out", folder, "--no-draw")
    wait_for(lambda: rows(folder) == 2, process)  # after the bootstrap; the first chunk takes minutes
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None  # the chunk goes on
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    output = tiny.finish(process, code=130)
    assert time.monotonic() - began < 5
    assert output.index("Finishing this chunk") < output.index("Stopped at once.")
