"""
Which streams a collector has made for access points that have joined: that of its own events, and those that the pool has of one
kind, where no access point of its own has made them.
"""

from typing import Annotated, Final, Literal

import msgspec

from kettle_services.collector.domain.reader_requests import ReaderError, access_point_shard
from kettle_wire.subjects import Subjects

LARGEST: Final = 1 << 30
"""Bytes; as the pool's own services have them made."""
MOST: Final = 1 << 24
"""Messages."""
_DAY_NS: Final = 86_400 * 10**9
_encode: Final = msgspec.json.Encoder().encode
_Number = Annotated[int, msgspec.Meta(ge=-1, le=2**63 - 1)]
"""As large as the server's."""


class _Stream(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """
    What there is to say about such a stream.  Nothing else is taken: JetStream would copy to other subjects, or from others,
    whatever it is told to.
    """

    name: str
    subjects: list[str]
    retention: Literal["limits"] = "limits"
    discard: Literal["", "old", "new"] = ""
    storage: Literal["", "file", "memory"] = ""
    max_bytes: _Number = -1
    max_msgs: _Number = -1
    max_msgs_per_subject: _Number = 0
    max_age: _Number = 0
    num_replicas: _Number = 1
    allow_direct: bool = False
    allow_msg_ttl: bool = False
    duplicate_window: _Number = 0
    first_seq: _Number = 0


def accepted_stream(subjects: Subjects, name: str, body: bytes) -> bytes:
    """What JetStream is asked for the stream `name`; raises ReaderError."""
    try:
        asked = msgspec.json.decode(body, type=_Stream)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ReaderError(f"these are no settings of a stream: {error}") from error
    stored = asked.subjects[0] if len(asked.subjects) == 1 else ""
    if not asked.name == name == _stream_of(subjects, stored):
        raise ReaderError(
            "a stream has the events of one access point, or all that the pool has of one kind, and the name for that"
        )
    if not (0 < asked.max_bytes <= LARGEST or 0 < asked.max_msgs <= MOST):
        raise ReaderError(f"a stream has {LARGEST} bytes or {MOST} messages at most")
    if stored in _of_all(subjects) and not _keeps_for_others(asked):
        raise ReaderError("what all access points use is kept on disk, for a day at least")
    return _encode(asked)


def _of_all(subjects: Subjects) -> dict[str, str]:
    """What is on these subjects is of all access points; each with its stream."""
    return {subjects.work_all: subjects.work_stream, subjects.objects_all: subjects.object_stream}


def _keeps_for_others(asked: _Stream) -> bool:
    """
    Whether who makes a stream for all leaves to the others what they put there: it cannot be made again by them with other settings.
    """
    return asked.storage == "file" and (asked.max_age == 0 or asked.max_age >= _DAY_NS)


def _stream_of(subjects: Subjects, stored: str) -> str:
    """The stream that has what is on a subject, if it is made for access points; else empty."""
    if stream := _of_all(subjects).get(stored, ""):
        return stream
    shard = access_point_shard(subjects, stored)
    return subjects.event_stream(shard) if shard and stored == subjects.events(shard) else ""
