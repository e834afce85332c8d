"""Every file of a run folder damaged in turn: it is noticed and named, and what goes on ends right."""

import json
import shutil

import pytest
import tiny

from vqelites.runs import commands, files, runner
from vqelites.runs.events import Note
from vqelites.runs.files import RunError

WAYS = ("truncate", "flip", "remove", "garbage", "empty", "link")


def damage(path, way):
    data = path.read_bytes()
    if way == "truncate":
        path.write_bytes(data[: len(data) // 2])
    elif way == "flip":
        middle = len(data) // 2
        path.write_bytes(data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :])
    elif way == "remove":
        path.unlink()
    elif way == "garbage":
        path.write_bytes(bytes(range(256)) * 4)
    elif way == "empty":
        path.write_bytes(b"")
    else:  # the same bytes, but somewhere else
        shutil.copy(path, path.parent.parent / "outside")
        path.unlink()
        path.symlink_to(path.parent.parent / "outside")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished run."""
    folder = tmp_path_factory.mktemp("damage") / "whole"
    runner.execute(tiny.config("map-elites"), {0: folder}, draw=False)
    return folder


@pytest.fixture(scope="module")
def half(whole):
    """The same run, interrupted at iteration 20, with checkpoints of 10 and 20."""
    calls = iter(range(4))
    folder = whole.parent / "half"
    runner.execute(tiny.config("map-elites"), {0: folder}, draw=False, stop=lambda: next(calls, None) is None)
    return folder


CHECKPOINT = [
    "state/manifest.ocdbt", "state/_METADATA", "state/_CHECKPOINT_METADATA", "state/commit_success.txt",
    "state/ocdbt.process_0/manifest.ocdbt", "state/d/*", "state/ocdbt.process_0/d/*",
]  # fmt: skip
CASES = [(name, way) for name in ("config.json", "environment.json", "metrics.csv", "archive.npz") for way in WAYS]
CASES += [("checkpoints/000020/manifest.json", way) for way in WAYS]
CASES += [("checkpoints/000020/state/ocdbt.process_0/d/*", way) for way in ("truncate", "remove", "link")]
CASES += [(f"checkpoints/000020/{name}", "flip") for name in CHECKPOINT]
CASES += [("log.txt", "remove"), ("log.txt", "garbage"), (".lock", "remove")]
QUICK = ("flip", "remove")  # of every file; the metrics in every way
CASES = [
    pytest.param(name, way, marks=() if way in QUICK or name == "metrics.csv" else pytest.mark.slow)
    for name, way in CASES
]


def attempt(call):
    """What a call returns and no message, or None and the message of its error."""
    try:
        return call(), ""
    except RunError as error:
        return None, str(error)


def hurt(folder, name, way):
    paths = sorted(folder.glob(name))
    assert paths, f"a run has no {name}"
    damage(paths[0], way)
    return paths[0]


def resumed(folder, **options):
    events = []
    outcome = runner.resume(folder, draw=False, observe=events.append, **options)
    return outcome, " ".join(event.text for event in events if isinstance(event, Note))


@pytest.mark.parametrize(("name", "way"), CASES)
def test_resume_names_what_is_damaged_and_ends_right(whole, half, tmp_path, name, way):
    folder = tmp_path / "run"
    shutil.copytree(half, folder)
    hurt(folder, name, way)
    part = name.rsplit("/state")[0].removesuffix("/manifest.json")
    result, message = attempt(lambda: resumed(folder))
    if result is None:
        # Only where going on would mean to guess, or to throw away what is there.
        assert part in ("config.json", "metrics.csv")
        assert name in message
        if part == "metrics.csv" and way != "link":
            result = resumed(folder, restart=True)
    if result is not None:
        assert result[0].finished
        tiny.assert_same(whole, folder)
        assert message or part in result[1] or part in ("archive.npz", "log.txt", ".lock")


@pytest.mark.parametrize(("name", "way"), [case for case in CASES if "000020" not in case.values[0]])
def test_show_and_verify_name_what_is_damaged(whole, tmp_path, capsys, name, way):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    path = hurt(folder, name, way)
    code, message = attempt(lambda: commands.verify(folder))
    harmless = name in ("log.txt", ".lock")
    assert code == (0 if harmless else 1) or name == "config.json"
    assert harmless or path.name in message + capsys.readouterr().out.replace("\n", "")
    code, message = attempt(lambda: commands.show(folder))
    if name in ("config.json", "archive.npz", "metrics.csv"):
        assert name in message
    else:
        assert code == 0


def test_verify_checks_checkpoints_too(whole, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    hurt(folder, "checkpoints/000040/state/ocdbt.process_0/d/*", "flip")
    assert commands.verify(folder) == 1
    output = capsys.readouterr().out
    assert "checkpoints/000040 was altered: the checksum of state/ocdbt.process_0/d/" in output
    assert "NOT as it was written" in output


def test_a_stray_file_in_a_checkpoint_is_noticed(half, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(half, folder)
    (folder / "checkpoints" / "000020" / "state" / "extra").write_text("x")
    assert "state/extra does not belong to it" in resumed(folder)[1]


def test_a_checkpoint_of_another_run_is_foreign(half, tmp_path):
    other = tmp_path / "other"
    calls = iter(range(4))
    config = tiny.config("map-elites")
    runner.execute(config, {1: other}, draw=False, stop=lambda: next(calls, None) is None)
    folder = tmp_path / "run"
    shutil.copytree(half, folder)
    shutil.rmtree(folder / "checkpoints" / "000020")
    shutil.copytree(other / "checkpoints" / "000020", folder / "checkpoints" / "000020")
    assert "is foreign" in resumed(folder)[1]
    shutil.copy(other / "archive.npz", folder / "archive.npz")
    with pytest.raises(RunError, match=r"archive\.npz is foreign"):
        commands.show(folder)


def test_without_any_good_checkpoint_nothing_is_thrown_away_unasked(whole, half, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(half, folder)
    for place in ("000010", "000020"):
        hurt(folder, f"checkpoints/{place}/manifest.json", "garbage")
    before = (folder / "metrics.csv").read_bytes()
    with pytest.raises(RunError, match=r"nothing good to resume from.*000010.*000020.*--restart"):
        resumed(folder)
    assert (folder / "metrics.csv").read_bytes() == before
    assert resumed(folder, restart=True)[0].finished
    tiny.assert_same(whole, folder)


def test_checkpoints_that_were_removed_are_missed(half, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(half, folder)
    shutil.rmtree(folder / "checkpoints")
    with pytest.raises(RunError, match=r"holds no checkpoint.*--restart"):
        resumed(folder)


def test_what_a_killed_process_left_half_written_is_swept_away(whole, half, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(half, folder)
    shutil.copytree(folder / "checkpoints" / "000020", folder / "checkpoints" / ".000030.tmp")
    (folder / ".archive.npz.tmp").write_text("half")
    with (folder / "metrics.csv").open("a") as file:
        file.write("21,400,3")
    assert resumed(folder)[0].finished
    tiny.assert_same(whole, folder)
    assert not list(folder.rglob(".*.tmp"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "../../evil"}, "There is no task named '../../evil'.*--task-file"),
        ({"task": 3}, "task is missing or not of type str"),
        ({"algorithm": "/bin/sh"}, "knows no '/bin/sh'"),
        ({"settings": {}}, "settings lacks drift, search"),
        ({"chunk": "ten"}, "chunk is missing or not of type int"),
        ({"chunk": 0}, "Expected chunk"),
        ({"saving": None}, "saving must be a JSON object"),
        ({"format": 99}, "Use the newer version"),
        ({"format": 1, "settings": {"ema": None}}, "written by an earlier vqelites .* compute the run anew"),
    ],
)
def test_a_configuration_made_to_deceive_is_refused(half, tmp_path, change, message):
    folder = tmp_path / "run"
    shutil.copytree(half, folder)
    record = json.loads((folder / "config.json").read_text()) | change
    del record["checksum"]
    files.write_sealed(folder / "config.json", record)
    with pytest.raises(RunError, match=message):
        resumed(folder)
