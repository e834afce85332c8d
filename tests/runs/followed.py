"""What trackers wrote, read back."""

import json
import struct
import time

_BLOCK = 32768  # of W&B's files, in which no record's header is split
_HEAD, _WHOLE, _LAST = 7, 1, 4


def scalars(folder):
    """Of TensorBoard: {metric: {iteration: value}}, and the names of its images."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"scalars": 0, "images": 0})
    events.Reload()
    tags = events.Tags()
    curves = {name: [(point.step, point.value) for point in events.Scalars(name)] for name in tags["scalars"]}
    assert all(len(dict(points)) == len(points) for points in curves.values()), "a step came twice"
    return {name: dict(points) for name, points in curves.items()}, set(tags["images"])


def history(folder, sessions=1):
    """Of W&B offline: rows of all sessions in order, files of artifacts, and the ids of the runs they belong to."""
    rows, files, ids = [], [], set()
    for record in _complete(folder, sessions):
        if record.HasField("history"):
            items = record.history.item
            rows.append({item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in items})
        if record.HasField("run"):
            ids.add(record.run.run_id)
        request = record.request.log_artifact.artifact if record.HasField("request") else record.artifact
        files += [entry.path for entry in request.manifest.contents]
    return sorted(rows, key=lambda row: row["_timestamp"]), files, ids


def _complete(folder, sessions):
    """The records of all sessions once their last ones are there: a process of W&B's own writes them when it likes."""
    from wandb.proto.wandb_internal_pb2 import Record

    until = time.monotonic() + 30
    while time.monotonic() < until:
        paths = folder.glob("wandb/offline-run-*/*.wandb")
        records = [Record.FromString(data) for path in paths for data in _records(path.read_bytes())]
        if sum(record.HasField("exit") for record in records) == sessions:
            return records
        time.sleep(0.1)
    raise TimeoutError(f"{folder} does not have {sessions} finished sessions")


def _records(data):
    """The records of a file, which are chained in pieces as in a log of LevelDB."""
    place, whole = _HEAD, b""
    while place + _HEAD <= len(data):
        left = _BLOCK - place % _BLOCK
        if left < _HEAD:
            place += left
            continue
        _, length, kind = struct.unpack("<IHB", data[place : place + _HEAD])
        if place + _HEAD + length > len(data):
            return  # not all of it is written yet
        whole += data[place + _HEAD : place + _HEAD + length]
        place += _HEAD + length
        if kind in (_WHOLE, _LAST):
            yield whole
            whole = b""
