"""
Which streams a collector has made for access points that have joined: that of its own events, and those that the pool has of one
kind, where no access point of its own has made them.
"""

from typing import Final

import msgspec

from kettle_services.collector.domain.reader_requests import ReaderError
from kettle_wire.subjects import Subjects, token

LARGEST: Final = 1 << 30
"""Bytes; as the pool's own services have them made."""
MOST: Final = 1 << 24
"""Messages."""
_encode: Final = msgspec.json.Encoder().encode


class _Stream(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """
    What there is to say about such a stream.  Nothing else is taken: JetStream would copy to other subjects, or from others,
    whatever it is told to.
    """

    name: str
    subjects: list[str]
    retention: str = ""
    discard: str = ""
    storage: str = ""
    max_bytes: int = -1
    max_msgs: int = -1
    max_msgs_per_subject: int = 0
    max_age: int = 0
    num_replicas: int = 1
    allow_direct: bool = False
    allow_msg_ttl: bool = False
    duplicate_window: int = 0
    first_seq: int = 0


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
    return _encode(asked)


def _stream_of(subjects: Subjects, stored: str) -> str:
    """The stream that has what is on a subject, if it is made for access points; else empty."""
    of_all = {subjects.work_all: subjects.work_stream, subjects.objects_all: subjects.object_stream}
    if stored in of_all:
        return of_all[stored]
    if not stored.rpartition(".")[2].startswith(token("schedd.")):
        return ""
    shard = subjects.shard_of(stored)
    return subjects.event_stream(shard) if stored == subjects.events(shard) else ""
