"""
The frames of a tunnel: nine bytes of head, then what the kind of the frame has. Pure.

    head      kind (1 byte), stream (4 bytes), length of what follows (4 bytes), all unsigned, most significant byte first
    OPEN      the name of the service; the stream is new, and the opener may send at once what the first window allows
    OPENED    nothing: the stream is connected
    REFUSED   a code, a blank, a sentence: the stream is not connected, and is over
    DATA      bytes of the stream, of any number up to what the receiver has granted
    WINDOW    4 bytes: so many bytes more may be sent
    END       nothing: this side sends no more, and still reads
    RESET     a sentence: the stream is over for both sides
    PING      8 bytes
    PONG      the same 8 bytes
    SERVICES  of the job's side, as `Announcement` in MessagePack: what it publishes now
    TICKET    of the job's side: the ticket that holds from now on
    CLOSE     a sentence: the connection is over, and why

Stream 0 is the connection itself.
"""

import struct
from enum import IntEnum
from typing import Final

import msgspec

from kettle.published.services import Service, check_services, parse_service

PROTOCOL: Final = "kettle-tunnel"
"""What stands in `Upgrade`."""
PATH: Final = "/v2/tunnels"
"""Where a gateway takes tunnels."""


class FrameKind(IntEnum):
    """What a frame is."""

    OPEN = 1
    OPENED = 2
    REFUSED = 3
    DATA = 4
    WINDOW = 5
    END = 6
    RESET = 7
    PING = 8
    PONG = 9
    SERVICES = 10
    TICKET = 11
    CLOSE = 12


HEAD: Final = struct.Struct(">BII")
HEAD_BYTES: Final = HEAD.size
LONGEST_CONTROL: Final = 16 * 1024
"""Bytes of a frame that is not DATA: it is kept until it is complete."""
LONGEST_DATA: Final = 1 << 24
"""Bytes of one DATA frame; it is passed on as it arrives."""
FIRST_WINDOW: Final = 64 * 1024
"""Bytes that may be sent on a new stream before anything is granted."""
_WINDOW: Final = struct.Struct(">I")
_LONGEST_SENTENCE: Final = 1024


class Announcement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the job's side says of its job."""

    services: tuple[Service, ...] = ()
    suspended: bool = False


_announcement: Final = msgspec.msgpack.Decoder(Announcement)


def frame(kind: FrameKind, stream: int = 0, payload: bytes = b"") -> bytes:
    """A whole frame."""
    return HEAD.pack(kind, stream, len(payload)) + payload


def window(stream: int, count: int) -> bytes:
    """A frame that grants so many bytes more."""
    return frame(FrameKind.WINDOW, stream, _WINDOW.pack(count))


def granted(payload: bytes) -> int:
    """What such a frame grants; raises ValueError."""
    if len(payload) != _WINDOW.size:
        raise ValueError("a WINDOW frame has four bytes")
    return int.from_bytes(payload)


def sentence(text: str) -> bytes:
    """A sentence, cut to what others have to read."""
    return text.encode()[:_LONGEST_SENTENCE]


def text_of(payload: bytes) -> str:
    """A sentence that came, as one line that no terminal obeys."""
    text = payload[:_LONGEST_SENTENCE].decode(errors="replace")
    return "".join(char if char.isprintable() else " " for char in text)


def refused(stream: int, code: str, why: str) -> bytes:
    """A frame that refuses a stream."""
    return frame(FrameKind.REFUSED, stream, sentence(f"{code} {why}"))


def announced(announcement: Announcement) -> bytes:
    """A frame that says what is published now."""
    return frame(FrameKind.SERVICES, 0, msgspec.msgpack.encode(announcement))


def announcement_of(payload: bytes) -> Announcement:
    """What such a frame says; raises ValueError."""
    found = _announcement.decode(payload)
    check_services([parse_service(str(each)) for each in found.services])
    return found
