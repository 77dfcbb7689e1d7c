"""Which streams a collector has made for access points that have joined."""

from typing import Any

import msgspec
import pytest

from kettle.bus.jetstream import stream_config
from kettle.bus.ports import StreamSpec
from kettle_services.collector.domain.reader_requests import ReaderError
from kettle_services.collector.domain.stream_requests import LARGEST, accepted_stream
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("pool")
OWN = StreamSpec(
    name=SUBJECTS.event_stream("schedd.ap1"), subjects=[SUBJECTS.events("schedd.ap1")], max_bytes=LARGEST
)
WORK = StreamSpec(
    name=SUBJECTS.work_stream, subjects=[SUBJECTS.work_all], max_bytes=LARGEST, max_age=7 * 86_400.0
)


def asked(spec: StreamSpec, **other: object) -> dict[str, Any]:
    """What JetStream is asked."""
    body = msgspec.json.encode(stream_config(spec) | other)
    return dict(msgspec.json.decode(accepted_stream(SUBJECTS, spec.name, body)))


@pytest.mark.parametrize("spec", [OWN, WORK], ids=["own", "of all"])
def test_a_stream_as_services_want_it_is_made(spec: StreamSpec) -> None:
    """With the name, the subject and the bounds that were asked for."""
    made = asked(spec)
    assert (spec.name, spec.subjects, LARGEST) == (made["name"], made["subjects"], made["max_bytes"])


@pytest.mark.parametrize(
    "other",
    [
        {"subjects": ["kettle.pool.evt.schedd=2E=ZZ"]},
        {"subjects": ["kettle.pool.evt.schedd=2E=FF"]},
        {"first_seq": 2**80},
        {"max_msgs": 2**64},
        {"retention": "interest"},
        {"mirror": {"name": SUBJECTS.event_stream("schedd.ap2")}},
    ],
    ids=lambda other: next(iter(other)) + str(next(iter(other.values()))),
)
def test_anything_else_is_refused(other: dict[str, object]) -> None:
    """In words, whatever it is: what nobody foresaw would end the collector."""
    with pytest.raises(ReaderError):
        asked(OWN, **other)


@pytest.mark.parametrize(
    "other",
    [{"max_age": 1}, {"storage": "memory"}, {"retention": "workqueue"}],
    ids=["age", "storage", "retention"],
)
def test_what_all_use_is_not_made_useless(other: dict[str, object]) -> None:
    """The first access point of a pool has the stream made in which all others find their reports."""
    with pytest.raises(ReaderError):
        asked(WORK, **other)
