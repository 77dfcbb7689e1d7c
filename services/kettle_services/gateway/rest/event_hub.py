"""
The events of the pool as one reader of this process has them, for everybody who follows some.

It remembers the last ones, so that who comes back finds them here, however many come back at once.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from datetime import datetime
from itertools import islice
from typing import Final

import msgspec

from kettle.bus.ports import Bus, BusError, Message
from kettle.retry.loop import Waits
from kettle_wire import cloud_events
from kettle_wire.jobs import JobId

KEPT: Final = 20_000
KEPT_BYTES: Final = 64 << 20
_EVERYTHING: Final = ">"

_log: Final = logging.getLogger(__name__)


class Happening(msgspec.Struct, frozen=True):
    """An event as it is passed on."""

    sequence: int
    owner: str
    """Empty: it is the pool's."""
    kind: str
    schedd: str
    stream: str
    cluster: int | None
    proc: int | None
    frame: int
    """The number of the frame of its queue that has it."""
    data: bytes
    """As a server-sent event."""
    at: float
    """When it was recorded, seconds since the epoch."""

    @classmethod
    def of(cls, message: Message) -> "Happening":
        """What a published message says; raises ValueError, also as `msgspec.MsgspecError`."""
        event = cloud_events.decode(message.data)
        noun, _, name = event.stream.partition("/")
        job = JobId.parse(name) if noun == "job" else None
        cluster = job.cluster if job else int(name) if noun in {"cluster", "factory"} else None
        return cls(
            sequence=message.sequence,
            owner=event.owner,
            kind=cloud_events.kind_of_type(event.type),
            schedd=event.schedd,
            stream=event.stream,
            cluster=cluster,
            proc=job.proc if job else None,
            frame=int(event.frame),
            data=sent(message.sequence, message.data),
            at=datetime.fromisoformat(event.time).timestamp(),
        )


def sent(sequence: int, data: bytes) -> bytes:
    """A published message as a server-sent event."""
    return b"id: %d\ndata: %b\n\n" % (sequence, data)


class Recent:
    """The last events, in order, also of each owner."""

    def __init__(self, *, most: int = KEPT, most_bytes: int = KEPT_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._all: deque[Happening] = deque()
        self._bytes = 0
        self._owners: dict[str, deque[Happening]] = {}
        self._begins = 0
        self._forgotten: dict[str, int] = {}
        """By owner the place of the last one that is not here any more."""
        self.last = 0

    def begin(self, place: int) -> None:
        """Nothing is remembered, and what comes next stands behind a place."""
        self._all.clear()
        self._owners.clear()
        self._forgotten.clear()
        self._bytes = 0
        self._begins = self.last = place

    def add(self, happening: Happening) -> None:
        """The next one."""
        self._all.append(happening)
        self._owners.setdefault(happening.owner, deque()).append(happening)
        self._bytes += len(happening.data)
        self.last = happening.sequence
        while len(self._all) > self._most or (self._bytes > self._most_bytes and len(self._all) > 1):
            oldest = self._all.popleft()
            own = self._owners[oldest.owner]
            own.popleft()
            if not own:
                del self._owners[oldest.owner]
            self._bytes -= len(oldest.data)
            self._forgotten[oldest.owner] = oldest.sequence

    def forgotten_of(self, owner: str) -> int:
        """The place behind which all events of an owner are here."""
        return self._forgotten.get(owner, self._begins)

    def last_of(self, owner: str) -> int:
        """The place behind which there is no event of an owner."""
        own = self._owners.get(owner)
        return own[-1].sequence if own else self.forgotten_of(owner)

    def of_owner(self, owner: str, after: int) -> Iterator[Happening]:
        """The events of one owner behind a place."""
        own: Sequence[Happening] = self._owners.get(owner, ())
        behind = 0
        for happening in reversed(own):
            if happening.sequence <= after:
                break
            behind += 1
        return islice(own, len(own) - behind, None)


class EventHub:
    """Reads the stream of published events once, and wakes those who follow."""

    def __init__(self, bus: Bus, stream: str) -> None:
        self._bus = bus
        self._stream = stream
        self.recent: Final = Recent()
        self.trouble = ""
        """Why nothing comes at the moment."""
        self.began = False
        """Whether it is known from where on events are here."""
        self.era = 0
        """Changes when places in the stream have another meaning: it was made again."""
        self.passed_over = 0
        """Messages that nobody could read."""
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._heard: list[Callable[[Sequence[Happening]], None]] = []

    def hear(self, heard: Callable[[Sequence[Happening]], None]) -> None:
        """Have something called with events as they come."""
        self._heard.append(heard)

    def woken(self, owner: str) -> asyncio.Event:
        """What is set when there is something of an owner, or nothing more comes; `asleep` forgets it."""
        event = asyncio.Event()
        self._waiting.setdefault(owner, set()).add(event)
        return event

    def asleep(self, owner: str, event: asyncio.Event) -> None:
        """Nobody waits for this any more."""
        waiting = self._waiting[owner]
        waiting.discard(event)
        if not waiting:
            del self._waiting[owner]

    async def run(self) -> None:
        """Read without end."""
        waits = Waits()
        while True:
            try:
                await self._read(waits)
            except BusError as error:
                _log.warning("events cannot be read at the moment: %s", error)
                self.trouble = str(error)
                self._wake(self._waiting)
            await waits.wait()

    async def _read(self, waits: Waits) -> None:
        last = await self._bus.last_sequence(self._stream) or 0
        if not self.began or last < self.recent.last:
            self._begin(last)
        self.trouble = ""
        reading = self._bus.consume(
            self._stream, "", subject=_EVERYTHING, after=self.recent.last, ephemeral=True
        )
        async with aclosing(reading) as batches:
            async for batch in batches:
                waits.reset()
                self._take(batch.messages)

    def _take(self, messages: Sequence[Message]) -> None:
        come: list[Happening] = []
        for message in messages:
            if message.sequence <= self.recent.last:
                if message.sequence > 1:
                    continue  # messages may come twice
                self._begin(0)
            try:
                happening = Happening.of(message)
            except (
                ValueError
            ):  # as it is for every reader: who is sent what comes next has missed nothing that could be told
                _log.exception(
                    "message %d of %s is no event, and passed over", message.sequence, self._stream
                )
                self.recent.last = message.sequence
                self.passed_over += 1
                continue
            self.recent.add(happening)
            come.append(happening)
        for heard in self._heard:
            heard(come)
        self._wake({happening.owner for happening in come} & self._waiting.keys())

    def _begin(self, place: int) -> None:
        self.era += 1
        self.began = True
        self.recent.begin(place)
        self._wake(self._waiting)

    def _wake(self, owners: "set[str] | dict[str, set[asyncio.Event]]") -> None:
        for owner in owners:
            for event in self._waiting[owner]:
                event.set()
