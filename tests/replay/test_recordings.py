"""What any version ever recorded is read and folded by this one, and comes to what it came to."""

from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from kettle.schema_generation import documents
from kettle.schema_generation.catalogue import event_path
from kettle.userlog.projector import UserLogProjector
from kettle_services.gateway.domain import cloud_events
from kettle_services.gateway.domain.cloud_events import Publisher
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.working_set import restore
from kettle_wire import frames
from kettle_wire.events import CODEC
from kettle_wire.frames import Entry
from kettle_wire.subjects import Subjects

from .folds import expected, queue, shown, working_set
from .recording import read, versions


@pytest.fixture(params=versions(), ids=lambda path: path.name)
def recording(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def entries() -> Iterator[Entry]:
    for version in versions():
        for recorded in read(version).values():
            for frame in recorded:
                yield from frame.entries


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    return {path: jsonschema.Draft202012Validator(schema) for path, schema in documents().items()}


def test_a_recording_comes_to_what_it_came_to(recording: Path) -> None:
    """
    Queue, history, usage, user logs, negotiations and machines follow from old frames as they always did.

    If a fold was changed on purpose: `python -m tests.replay.record --refold`, and read the difference.
    """
    folded = expected(read(recording))
    assert (recording / "expected.json").read_bytes() == folded


def test_a_schedd_starts_where_the_recording_ends(recording: Path) -> None:
    """The working set of a recording restores the same queue as its events."""
    for shard, recorded in read(recording).items():
        if shard.startswith("schedd."):
            restored = Queue(shard.partition(".")[2])
            restore(restored, working_set(recorded).items())
            before, after = shown(queue(recorded)), shown(restored)
            for each in (
                before,
                after,
            ):  # counts of zero, and in which order clusters were met, are of no meaning
                each["tally"] = {o: {s: n for s, n in t.items() if n} for o, t in each["tally"].items()}
                each["requests"] = {
                    o: [r[:2] + r[3:] for r in rs] for o, rs in each["requests"].items() if rs
                }
            assert before == after


def test_user_logs_go_on_after_any_frame(recording: Path) -> None:
    """
    A projector that is stopped and restored after each frame writes the same lines as one that never was.
    """
    for shard, recorded in read(recording).items():
        if shard.startswith("schedd."):
            steady, snapshot = UserLogProjector("ap", zone=UTC), b""
            for frame in recorded:
                restored = UserLogProjector("ap", zone=UTC, snapshot=snapshot)
                assert list(steady.feed(frame)) == list(restored.feed(frame))
                snapshot = restored.snapshot()


def test_published_events_follow_their_schemas(schemas: dict[str, Any]) -> None:
    """
    What the gateway tells of recorded events is an envelope as its schema says, around an event of the schema it names.
    """
    publisher = Publisher(Subjects("main"), limit=1_000_000)
    events = {each.schema["$id"]: each for path, each in schemas.items() if path.startswith("events/")}
    for version in versions():
        for recorded in read(version).values():
            for frame in recorded:
                for told in cloud_events.read(frame):
                    envelope = msgspec.json.decode(publisher.post(frame, told, "ann").data)
                    schemas["monitoring/cloudevent.json"].validate(envelope)
                    events[envelope["dataschema"]].validate(envelope["data"])


def test_every_published_type_was_recorded() -> None:
    """No type is published of which no bytes are kept: a new one needs a recording before it is released."""
    assert set() == {*CODEC.written, *CODEC.superseded} - {entry.type for entry in entries()}


def test_recorded_events_follow_their_schemas(schemas: dict[str, Any]) -> None:
    """
    A program that reads the log with a published schema, and without our code, finds what the schema says; bytes are base64 in
    JSON.
    """
    for entry in entries():
        assert entry.type == CODEC.recorded_tag(entry.data)
        schemas[event_path(entry.type)].validate(msgspec.to_builtins(msgspec.msgpack.decode(entry.data)))


def test_a_schema_notices(schemas: dict[str, Any]) -> None:
    """Of a recorded event with one required field less, or with the tag of another, the schema says so."""
    seen: dict[str, Any] = {
        entry.type: msgspec.to_builtins(msgspec.msgpack.decode(entry.data)) for entry in entries()
    }
    for tag, event in seen.items():
        schema = schemas[event_path(tag)]
        for name in schema.schema["required"]:
            assert not schema.is_valid({key: value for key, value in event.items() if key != name})
        assert not schema.is_valid({**event, "event": "no.such/1"})


def test_frames_follow_their_schema(recording: Path, schemas: dict[str, Any]) -> None:
    """
    A frame is the array that its schema describes, and its bytes on the bus are the same from every writer.
    """
    for path in recording.glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            schemas["frames/frame.json"].validate(msgspec.json.decode(line))
    for recorded in read(recording).values():
        for frame in recorded:
            assert frame == frames.decode(frames.encode(frame))
