"""The pieces a run folder is made of, each alone."""

import errno
import itertools
import json
import os
from dataclasses import replace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from vqelites.experiments.build import build
from vqelites.experiments.config import Data
from vqelites.experiments.presets import settings
from vqelites.levels import as_floats, as_levels
from vqelites.runs import contents, files, metrics_file, plan
from vqelites.runs.config import Config
from vqelites.runs.environment import differences
from vqelites.runs.files import DamagedError, RunError
from vqelites.runs.folder import RunFolder, create, open_folder
from vqelites.runs.records import from_json, to_json
from vqelites.tasks import registry
from vqelites.tasks.mobile import picture


def test_a_failed_write_leaves_the_old_content_and_no_rest(tmp_path, monkeypatch):
    path = tmp_path / "file"
    files.write_whole(path, b"old")

    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match=r"file could not be written: No space left on device\."):
        files.write_whole(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_sealed_record_comes_back_and_every_changed_byte_is_noticed(tmp_path):
    path = tmp_path / "record.json"
    files.write_sealed(path, {"format": 1, "number": 128, "text": "ü"})
    assert files.read_sealed(path, 1)["number"] == 128
    whole = path.read_bytes()
    for place in range(len(whole)):
        changed = bytes([*whole[:place], whole[place] ^ 1, *whole[place + 1 :]])
        path.write_bytes(changed)
        try:
            record = files.read_sealed(path, 1)
        except RunError:
            continue
        assert record == json.loads(whole)  # a changed blank changes nothing


def test_a_newer_format_is_refused_as_such(tmp_path):
    files.write_sealed(tmp_path / "record.json", {"format": 2})
    with pytest.raises(RunError, match=r"formats up to 1\. Use the newer version"):
        files.read_sealed(tmp_path / "record.json", 1)


def test_an_older_format_is_refused_with_the_version_that_wrote_it(tmp_path):
    path = tmp_path / "record.json"
    files.write_sealed(path, {"format": 1, "vqelites": "0.0.7"})
    assert files.read_sealed(path, 2)["vqelites"] == "0.0.7"
    with pytest.raises(
        RunError, match=r"an earlier vqelites \(0\.0\.7\).*Use the version that wrote it, or compute"
    ) as error:
        files.read_sealed(path, 2, oldest=2)
    assert not isinstance(error.value, DamagedError)


def test_arrays_come_back_bit_for_bit_and_altered_ones_do_not(tmp_path):
    path = tmp_path / "arrays.npz"
    given_arrays = {"a": np.array([[0.1, -0.0, np.nan]], np.float32), "b": np.zeros((0, 3), np.int32)}
    files.save_arrays(path, given_arrays, {"iteration": 7})
    found, about = files.load_arrays(path)
    assert about["iteration"] == 7
    assert {name: (x.dtype, x.shape, x.tobytes()) for name, x in found.items()} == {
        name: (x.dtype, x.shape, x.tobytes()) for name, x in given_arrays.items()
    }
    with np.load(path) as plain:
        other = dict(plain) | {"a": np.ones((1, 3), np.float32)}
    np.savez_compressed(path, **other)
    with pytest.raises(DamagedError, match="was altered"):
        files.load_arrays(path)


def test_arrays_that_would_need_to_be_unpickled_are_refused(tmp_path):
    np.savez_compressed(tmp_path / "arrays.npz", about=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DamagedError, match="cannot be read"):
        files.load_arrays(tmp_path / "arrays.npz")


def test_links_are_not_followed(tmp_path):
    (tmp_path / "secret").write_text("{}")
    (tmp_path / "config.json").symlink_to(tmp_path / "secret")
    with pytest.raises(DamagedError, match="is a link"):
        open_folder(tmp_path)


@given(arrays(np.uint8, (2, 3, 3, 1)))
def test_eight_bit_images_lose_nothing(levels):
    behavior = as_floats(levels)
    assert np.array_equal(as_levels(behavior), levels)


@pytest.mark.parametrize("value", [0.5, 1 / 255 + 1e-8, -0.0, 1.5, -1.0])
def test_images_that_eight_bits_would_change_stay_as_they_are(value):
    behavior = np.full((2, 3, 3, 1), value, np.float32)
    assert as_levels(behavior) is None


@pytest.mark.slow
def test_an_archive_of_images_stays_small(tmp_path):
    """5,000 mobile robots, the largest archive of the presets: anti-aliased, so 8 bits would lose something."""
    places = jax.random.uniform(jax.random.key(0), (5000, 2), minval=0.05, maxval=0.95)
    behavior = np.asarray(jax.jit(jax.vmap(picture))(places))
    assert as_levels(behavior) is None
    rest = {"solutions": np.random.default_rng(0).normal(size=(5000, 114)).astype(np.float32)}
    files.save_arrays(tmp_path / "archive.npz", {"behavior": behavior, **rest}, {})
    assert (tmp_path / "archive.npz").stat().st_size < 16e6
    assert files.load_arrays(tmp_path / "archive.npz")[0]["behavior"].tobytes() == behavior.tobytes()


@pytest.mark.slow
def test_decoded_images_keep_their_shades_however_faint(tmp_path):
    """Bug: decoded codes of blurred images, no brighter than 0.01, were rounded to three shades of grey."""
    made = settings("mobile-free", "vq-elites", "quick")
    config = Config("mobile-free", "vq-elites", "quick", replace(made, cells=12))
    folder = create(tmp_path / "run", config, 0, {})
    qd = build(registry.make("mobile-free"), config.settings)
    state = qd.init(jnp.uint32(0))
    scale = state.descriptor.model.coder.seen.scale
    state = eqx.tree_at(lambda s: s.descriptor.model.coder.seen.scale, state, scale * 0.01)
    contents.save_snapshot(folder, contents.snapshot(qd, state, decoded=True))
    exact = np.asarray(qd.descriptor.decode(state.descriptor, qd.descriptor.cells(state.descriptor)))
    loaded = contents.load_snapshot(folder, 0).decoded
    np.testing.assert_allclose(loaded, exact, atol=np.ptp(exact) / 255)
    assert folder.snapshot(0).stat().st_size < 0.5 * exact.nbytes


def test_snapshots_hold_elites_and_codes_and_decoded_ones_only_if_asked_for(tmp_path):
    config = tiny.config("vq-elites")
    folder = create(tmp_path / "run", config, 0, {})
    qd = build(registry.make("planar-arm"), config.settings)
    state = qd.init(jnp.uint32(0))
    contents.save_snapshot(folder, contents.snapshot(qd, state, decoded=False))
    found = contents.load_snapshot(folder, 0)
    assert (found.iteration, found.decoded) == (0, None)
    assert found.ids.shape == found.fitness.shape == found.descriptors.shape[:1] == (0,)
    np.testing.assert_array_equal(found.codes, qd.descriptor.cells(state.descriptor))


def test_vectors_are_never_turned_into_bytes():
    assert contents.compact(np.zeros((4, 6), np.float32)).dtype == np.float32
    assert contents.compact(np.zeros((4, 6, 6, 1), np.float32)).dtype == np.uint8


PARTS = st.lists(st.integers(1, 400), min_size=1, max_size=3).map(lambda parts: tuple(itertools.accumulate(parts)))


@given(PARTS, st.integers(1, 30))
def test_chunks_cover_every_iteration_once_and_start_where_one_ended(ends, length):
    whole = list(plan.chunks(ends, length))
    assert [i for first, count in whole for i in range(first, first + count)] == list(range(ends[-1]))
    assert {count for first, count in whole if first + count not in ends} <= {length}
    for done in {0, *(first for first, _ in whole)}:
        assert list(plan.chunks(ends, length, done)) == [chunk for chunk in whole if chunk[0] >= done]


@given(PARTS, st.integers(1, 60))
def test_snapshots_are_kept_only_at_ends_of_chunks_and_at_every_end(ends, length):
    places = {first + count for first, count in plan.chunks(ends, length)}
    kept, decoded = plan.snapshots(ends, length), plan.decoded(ends, length)
    assert set(decoded) <= set(kept) <= places
    assert set(ends) <= set(decoded)


def test_a_run_that_was_extended_keeps_the_snapshots_it_had():
    for part in (plan.snapshots, plan.decoded):
        assert part((300, 500), 10)[: len(part((300,), 10))] == part((300,), 10)


def test_codes_of_the_presets_are_decoded_when_the_appendix_shows_them():
    assert plan.decoded((10000,), 10) == (40, 60, 80, 100, 2500, 5000, 7500, 10000)
    assert plan.decoded((3000,), 10) == (40, 60, 80, 100, 750, 1500, 2250, 3000)
    assert plan.decoded((300,), 10) == (40, 60, 80, 100, 150, 230, 300)  # quarters 75 and 225: at the next end
    assert plan.decoded((7,), 10) == (7,)


def test_twenty_snapshots_are_spread_over_a_run():
    assert plan.snapshots((10000,), 10) == (40, 60, 80, 100, *range(500, 10001, 500))
    assert plan.snapshots((7,), 10) == (7,)


def rows(count, first=0):
    table = {name: np.full(count, np.nan) for name in metrics_file.COLUMNS}
    table |= {"iteration": np.arange(first, first + count), "seconds": np.arange(count) + 0.5}
    table |= {name: np.arange(count) for name in ("evaluations", "rejected", "size", "elites_lost", "restarted")}
    table["pqd"] = np.float32(0.1) * np.arange(1, count + 1, dtype=np.float32)
    return table


def test_numbers_come_back_exactly_and_what_was_not_measured_is_empty(tmp_path):
    file = metrics_file.MetricsFile(tmp_path / "metrics.csv")
    file.append(metrics_file.lines(rows(5)))
    table = metrics_file.read(tmp_path / "metrics.csv", file.mark())
    assert tuple(table.columns) == metrics_file.COLUMNS
    assert table["pqd"].to_numpy(np.float32).tobytes() == rows(5)["pqd"].tobytes()
    assert table["loss"].isna().all()
    assert (tmp_path / "metrics.csv").read_text().splitlines()[1] == "0,0,0,0,,,,0.1,,,,,,,0,0,,0.500"


@given(st.floats(width=32, allow_nan=False))
def test_every_float_is_written_with_enough_digits(value):
    text = metrics_file._text("pqd", np.float32(value))
    assert np.float32(text) == np.float32(value)


def test_rows_past_a_mark_are_cut_even_half_ones(tmp_path):
    path = tmp_path / "metrics.csv"
    file = metrics_file.MetricsFile(path)
    file.append(metrics_file.lines(rows(3)))
    mark, before = file.mark(), path.read_bytes()
    file.append(metrics_file.lines(rows(2, first=3)))
    path.write_bytes(path.read_bytes() + b"5,80,1")  # killed in the middle of a row
    assert len(metrics_file.read(path, mark)) == 5
    again = metrics_file.MetricsFile(path, mark)
    assert path.read_bytes() == before
    again.append(metrics_file.lines(rows(2, first=3)))
    assert again.mark() == file.mark()


def test_a_changed_row_before_the_mark_is_noticed(tmp_path):
    path = tmp_path / "metrics.csv"
    file = metrics_file.MetricsFile(path)
    file.append(metrics_file.lines(rows(3)))
    mark = file.mark()
    path.write_bytes(path.read_bytes().replace(b"0.2", b"0.3"))
    assert not metrics_file.matches(path, mark)
    with pytest.raises(DamagedError, match="was altered"):
        metrics_file.read(path, mark)


@pytest.mark.parametrize("algorithm", tiny.ALGORITHMS)
@pytest.mark.parametrize("preset", ["paper", "quick", "literal"])
def test_settings_survive_json(algorithm, preset):
    made = settings("mobile-free", algorithm, preset)
    assert from_json(type(made), json.loads(json.dumps(to_json(made))), "settings") == made


def test_numpy_numbers_in_settings_are_written_as_pythons():
    made = settings("arm", "vq-elites")
    same = replace(made, cells=np.int64(made.cells), beta=np.float32(made.beta), drift=np.bool_(made.drift))
    written = json.loads(json.dumps(to_json(same)))
    assert from_json(type(made), written, "settings") == made


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cells": "many"}, "settings.cells must be int, not 'many'"),
        ({"cells": True}, "settings.cells must be int, not True"),
        ({"codebook": "tree"}, "settings.codebook must be one of kmeans, random, data"),
        ({"data": to_json(Data()) | {"window": "x"}}, "settings.data.window must be int or null"),
        ({"search": 3}, "settings.search must be a JSON object"),
        ({"surprise": 3}, "has unknown surprise"),
    ],
)
def test_settings_that_do_not_fit_are_named(change, message):
    made = settings("arm", "vq-elites")
    with pytest.raises(RunError, match=message):
        from_json(type(made), to_json(made) | change, "settings")


def test_settings_that_are_missing_are_named():
    values = to_json(settings("arm", "vq-elites"))
    del values["cells"]
    with pytest.raises(RunError, match="settings lacks cells"):
        from_json(type(settings("arm", "vq-elites")), values, "settings")


@pytest.mark.parametrize("name", ["../other", "/etc", "..", "a/b", "", ".hidden", 3, None])
def test_a_group_cannot_name_a_folder_elsewhere(tmp_path, name):
    folder = create(tmp_path / "run", tiny.config("map-elites"), 0, {})
    record = json.loads((folder.path / "config.json").read_text())
    record["group"] = [{"seed": 0, "folder": name}, {"seed": 1, "folder": "b"}]
    del record["checksum"]
    files.write_sealed(folder.path / "config.json", record)
    with pytest.raises(RunError, match="names no folder beside this one"):
        open_folder(folder.path)


def test_a_configuration_comes_back_from_its_folder(tmp_path):
    config = tiny.config("vq-elites")
    folder = create(tmp_path / "run", config, 5, {5: "run", 6: "other"})
    group = {5: "run", 6: "other"}
    assert open_folder(folder.path) == RunFolder(folder.path, config, 5, group, folder.identity, (40,))
    again = create(tmp_path / "again", replace(config, chunk=7), 5, {})
    assert again.identity != folder.identity


def test_impossible_configurations_are_refused():
    for change in ({"chunk": 0}, {"keep": 0}, {"minutes": 0.0}, {"every": 0}, {"iterations": 0}):
        with pytest.raises(ValueError, match=r"Expected chunk|iterations must be a whole number of at least 1"):
            tiny.config("map-elites", **change)


def test_what_changed_in_the_environment_is_named():
    before = {"python": "3.11", "packages": {"jax": "0.10", "numpy": "2"}}
    now = {"python": "3.11", "packages": {"jax": "0.11", "numpy": "2"}}
    assert differences(before, now) == ["packages jax '0.10' -> '0.11'"]
    assert differences(now, now) == []
