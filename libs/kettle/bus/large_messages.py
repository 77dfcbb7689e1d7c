"""
Messages larger than the server takes, in parts: what both sides of a command do, whatever carries the parts.

A request that is too large is announced; whoever serves it answers with a place of its own, where the parts then go one
by one, each answered before the next is sent. A reply that is too large stays with its service; its first part comes
with the place at which the others are fetched. So parts are in order, nobody is sent more than he has asked for, and
a service holds only what it has agreed to hold, for a time that it sets.

A place is part of a command's subject, and so is who asks: nobody adds to another's request or fetches another's reply.
"""

import asyncio
import uuid
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from kettle.bus.large_requests import FETCH, LARGEST, PART, PART_OF, PLACE, SIZE, Parcel, whole_number
from kettle.bus.ports import RefusedError, Served
from kettle_wire.codes import RefusalCode


class CompleteRequest(msgspec.Struct, frozen=True):
    """A request that is complete, and what it asks."""

    served: Served[Any, Any]
    data: bytes
    number: str = ""
    """If it came in parts: what `Depot.answered` is to forget."""


class PartLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one service holds of requests that are incomplete and of replies that are being fetched."""

    in_all: int = 4 * LARGEST
    """Bytes."""
    each: int = 2 * LARGEST
    """Bytes, for one caller."""
    count: int = 16
    """How many, for one caller."""
    idle: float = 15.0
    """Seconds within which the next part has to be sent or fetched."""
    slowest: int = 256 * 1024
    """Bytes per second that a caller has to manage on the whole."""
    retry_ms: int = 500
    """When to try again if there is no room."""


class _Held(msgspec.Struct):
    caller: str
    size: int
    until: float
    served: Served[Any, Any] | None = None
    """What an incomplete request asks."""
    request: bytearray = msgspec.field(default_factory=bytearray)
    complete: bool = False
    """Somebody works on it: its room is taken until `Depot.answered`, whatever its caller sends meanwhile."""
    reply: bytes = b""
    expiry: asyncio.TimerHandle | None = None


def too_large(served: Served[Any, Any], size: int) -> RefusedError:
    """The refusal of a request that is larger than those of its endpoint are."""
    endpoint = served.endpoint
    return RefusedError(
        RefusalCode.TOO_LARGE,
        f"a {endpoint.verb} of {size:,} bytes; at most {endpoint.largest:,} are taken",
    )


class PartStore:
    """
    What one service has of messages in parts, and does with each part. `limit`: the most bytes of a message.
    """

    def __init__(self, limit: Callable[[], int], limits: PartLimits | None = None) -> None:
        self.place = uuid.uuid4().hex
        """Where the parts go: a name that no other service has."""
        self._limit = limit
        self._limits = limits or PartLimits()
        self._held: dict[str, _Held] = {}
        self._bytes: Counter[str] = Counter()
        self._count: Counter[str] = Counter()
        self._made = 0

    @property
    def held(self) -> int:
        """Bytes that are promised to callers at present."""
        return self._bytes.total()

    def receive(
        self, caller: str, parcel: Parcel, served: Served[Any, Any] | None
    ) -> CompleteRequest | Parcel:
        """
        Take a message in: a complete request, or what to answer to a part. `served`: what its subject asks, if anything.

        Raises RefusedError.
        """
        headers = parcel.headers
        if PART_OF in headers:
            return self._add(caller, parcel)
        if FETCH in headers:
            return self._part(caller, headers[FETCH])
        if served is None:
            raise RefusedError(
                RefusalCode.MALFORMED, "this is the place for parts of messages, and it is none"
            )
        if SIZE not in headers:
            return CompleteRequest(served, parcel.data)
        size = whole_number(headers[SIZE])
        if size > served.endpoint.largest:
            raise too_large(served, size)
        number, held = self._keep(caller, size)
        held.served = served
        return Parcel(b"", {PLACE: f"{self.place} {number}"})

    def answered(self, whole: CompleteRequest) -> None:
        """Nobody works on this request any more: its room is free."""
        if whole.number in self._held:
            self._drop(whole.number)

    def reply(self, caller: str, data: bytes) -> Parcel:
        """
        The answer, or its first part. Raises RefusedError if it is too large, or if there is no room for it.
        """
        if len(data) <= self._limit():
            return Parcel(data)
        number, held = self._keep(caller, len(data))
        held.reply = data
        first = data[: min(self._limit(), PART)]
        return Parcel(first, {SIZE: str(len(data)), PLACE: f"{self.place} {number}"})

    def close(self) -> None:
        """Forget everything."""
        for number in list(self._held):
            self._drop(number)

    def _add(self, caller: str, parcel: Parcel) -> CompleteRequest | Parcel:
        number, offset = self._named(caller, parcel.headers[PART_OF])
        held = self._held[number]
        if held.served is None or offset != len(held.request) or offset + len(parcel.data) > held.size:
            self._drop(number)
            raise RefusedError(
                RefusalCode.MALFORMED, f"a part of {len(parcel.data)} bytes does not belong at {offset}"
            )
        held.request += parcel.data
        if len(held.request) < held.size:
            self._wait(number, held)
            return Parcel(b"")
        if held.expiry is not None:
            held.expiry.cancel()
        whole, held.request, held.complete = bytes(held.request), bytearray(), True
        return CompleteRequest(held.served, whole, number)

    def _part(self, caller: str, wanted: str) -> Parcel:
        number, offset = self._named(caller, wanted)
        held = self._held[number]
        part = held.reply[offset : offset + min(self._limit(), PART)]
        if offset + len(part) >= held.size:
            self._drop(number)
        else:
            self._wait(number, held)
        return Parcel(part)

    def _named(self, caller: str, text: str) -> tuple[str, int]:
        number, _, offset = text.partition(" ")
        held = self._held.get(number)
        if held is None or held.caller != caller or held.complete:
            raise RefusedError(
                RefusalCode.UNAVAILABLE, "the rest of this message was given up; repeat the command"
            )
        return number, whole_number(offset)

    def _keep(self, caller: str, size: int) -> tuple[str, _Held]:
        limits = self._limits
        if size > LARGEST:
            raise RefusedError(
                RefusalCode.TOO_LARGE, f"a message of {size:,} bytes; at most {LARGEST:,} are carried"
            )
        if (
            self._count[caller] >= limits.count
            or self._bytes[caller] + size > limits.each
            or self.held + size > limits.in_all
        ):
            raise RefusedError(
                RefusalCode.BUSY, "too many large messages are under way here", retry_after_ms=limits.retry_ms
            )
        self._made += 1
        number = str(self._made)
        now = asyncio.get_running_loop().time()
        held = self._held[number] = _Held(caller, size, now + limits.idle + size / limits.slowest)
        self._bytes[caller] += size
        self._count[caller] += 1
        self._wait(number, held)
        return number, held

    def _wait(self, number: str, held: _Held) -> None:
        loop = asyncio.get_running_loop()
        if held.expiry is not None:
            held.expiry.cancel()
        held.expiry = loop.call_at(min(loop.time() + self._limits.idle, held.until), self._drop, number)

    def _drop(self, number: str) -> None:
        held = self._held.pop(number)
        if held.expiry is not None:
            held.expiry.cancel()
        self._bytes[held.caller] -= held.size
        self._count[held.caller] -= 1
        if not self._count[held.caller]:
            del self._count[held.caller], self._bytes[held.caller]
