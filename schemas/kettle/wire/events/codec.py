"""Recorded bytes to events and back, with the types that were superseded lifted to their successors."""

from typing import Final, get_args

import msgspec

from kettle.wire.events.base import Event
from kettle.wire.events.claim import ClaimEvent
from kettle.wire.events.cluster import ClusterSubmitted
from kettle.wire.events.cycle import CycleNegotiated
from kettle.wire.events.job import JobEvent
from kettle.wire.events.machine import MachineJoined, MachineLeft

Recorded = ClusterSubmitted | JobEvent | ClaimEvent | CycleNegotiated | MachineJoined | MachineLeft

EVENT_TYPES: Final[tuple[type[Event], ...]] = get_args(Recorded)

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Recorded] = msgspec.msgpack.Decoder(Recorded)
_tags: Final[dict[type[Event], str]] = {t: str(t.__struct_config__.tag) for t in EVENT_TYPES}


class UnknownEventError(Exception):
    """Bytes in the log that this version cannot read: stop, never skip."""


def tag_of(event: Event) -> str:
    """The tag `noun.verb/N` of an event, which the log repeats beside its bytes for SQL readers."""
    return _tags[type(event)]


def encode(event: Event) -> bytes:
    """The bytes of an event, tag included."""
    return _encoder.encode(event)


def decode(data: bytes) -> Recorded:
    """Read an event; raises `UnknownEventError` for what is not one."""
    try:
        return _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise UnknownEventError(f"cannot read a recorded event: {error}") from error
