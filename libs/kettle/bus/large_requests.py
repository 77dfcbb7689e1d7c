"""
Messages larger than the server takes, in parts: the caller's side. `kettle.bus.large_messages` is the other side.

It needs no event loop, so that a caller with a single request need not load one.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from kettle.bus.ports import BusError, RefusedError
from kettle_wire.codes import RefusalCode

LARGEST: Final = 64 * 1024 * 1024
"""The most bytes of one request or reply."""
PART: Final = 1024 * 1024
"""
Bytes of a part, where the server takes as much: on a slow line a larger one would not arrive within a deadline.
"""
HEADERS: Final = 4096
"""Bytes of a message that are kept for its headers."""

SIZE: Final = "Kettle-Size"
"""Header: how many bytes the whole has which this announces (a request) or begins (a reply)."""
PLACE: Final = "Kettle-Place"
"""Header: the place where the other parts go, or are, and the number of the whole there."""
PART_OF: Final = "Kettle-Part"
"""Header: number of the whole, and offset of the part that this message brings."""
FETCH: Final = "Kettle-Fetch"
"""Header: number of the whole, and offset of the part that is wanted."""


class Parcel(msgspec.Struct, frozen=True):
    """One message: a request or a reply, or a part of one."""

    data: bytes
    headers: Mapping[str, str] = {}


Carry = Callable[[str, bytes, Mapping[str, str]], Awaitable[Parcel]]
"""Takes a message to a place (or to the name of a service) and brings the answer; raises what it refuses."""


async def call_in_parts(
    carry: Carry, name: str, data: bytes, headers: Mapping[str, str], *, limit: int
) -> bytes:
    """Ask the service `name` and return its whole answer; no message has more than `limit` bytes."""
    if len(data) <= limit:
        reply = await carry(name, data, headers)
    else:
        reply = await _send(carry, name, data, headers, min(limit, PART))
    if SIZE not in reply.headers:
        return reply.data
    return await _fetch(carry, reply)


async def _send(carry: Carry, name: str, data: bytes, headers: Mapping[str, str], part: int) -> Parcel:
    if len(data) > LARGEST:
        raise RefusedError(
            RefusalCode.TOO_LARGE, f"a request of {len(data):,} bytes; the bus carries at most {LARGEST:,}"
        )
    reply = await carry(name, b"", {**headers, SIZE: str(len(data))})
    place, number = _place(reply)
    for offset in range(0, len(data), part):
        reply = await carry(place, data[offset : offset + part], {**headers, PART_OF: f"{number} {offset}"})
    return reply


async def _fetch(carry: Carry, first: Parcel) -> bytes:
    size = whole_number(first.headers[SIZE])
    if size > LARGEST:
        raise BusError(f"an answer of {size:,} bytes was announced; the bus carries at most {LARGEST:,}")
    place, number = _place(first)
    whole = bytearray(first.data)
    while len(whole) < size:
        part = (await carry(place, b"", {FETCH: f"{number} {len(whole)}"})).data
        if not part or len(whole) + len(part) > size:
            raise BusError("the parts of an answer do not fit together")
        whole += part
    return bytes(whole)


def _place(reply: Parcel) -> tuple[str, str]:
    place, _, number = reply.headers.get(PLACE, "").rpartition(" ")
    if not place or not number:
        raise BusError("a service answered that does not take messages in parts")
    return place, number


def whole_number(text: str) -> int:
    """A number in a header; raises RefusedError."""
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise RefusedError(RefusalCode.MALFORMED, f"{text[:40]!r} is no number of bytes")
    return int(text)
