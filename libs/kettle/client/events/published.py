"""
Reading what the gateway publishes: events of the whole pool, as they happen or from a moment on.

It is read from the stream MONITOR and not from the live subjects, so a lost connection loses nothing.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from fnmatch import fnmatchcase
from typing import Final

import msgspec

from kettle.bus.ports import Bus, Message, RefusedError
from kettle.client.errors import ClientError, CommandRefusedError
from kettle_wire import cloud_events
from kettle_wire.cloud_events import CloudEvent
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects

_EVERYTHING: Final = ">"


class Published(msgspec.Struct, frozen=True):
    """One event."""

    sequence: int
    """Its place in the stream: `after` of a later reading."""
    envelope: CloudEvent
    data: bytes
    """The message as it was published."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Which events, and from where on."""

    owner: str = ""
    """Only those of this person's jobs; empty: of everybody's, and of the pool."""
    kind: str = "*"
    """A pattern of `noun.verb`, as in `job.*`."""
    cluster: int | None = None
    """Only of this cluster, or of its job `proc`."""
    proc: int | None = None
    after: int | None = None
    """The events after this place in the stream."""
    since: float = 0.0
    """The events since this time, seconds since the epoch. With neither of both: those from now on."""

    def has(self, event: CloudEvent) -> bool:
        """Whether this is one of them, as far as the subject does not say it."""
        return fnmatchcase(cloud_events.kind_of_type(event.type), self.kind) and self._of_jobs(event)

    def _of_jobs(self, event: CloudEvent) -> bool:
        if self.cluster is None:
            return True
        noun, _, name = event.stream.partition("/")
        if noun in {"cluster", "factory"}:
            return name == str(self.cluster)
        if noun != "job":
            return False
        job = JobId.parse(name)
        return job.cluster == self.cluster and self.proc in {None, job.proc}


async def read(
    bus: Bus, subjects: Subjects, wanted: Wanted, *, follow: bool
) -> AsyncGenerator[Published, None]:
    """
    Events in the order in which they were stored; with `follow` also future ones, without end.

    Raises:
        ClientError: nothing was ever published here.
        CommandRefusedError: `not_permitted`, the caller may not read these events.
    """
    stream, subject = subjects.monitor_stream, _subject(subjects, wanted)
    last = await bus.last_sequence(stream)
    if last is None and not follow:
        raise ClientError("nothing is published in this pool: no gateway has run in it")
    after = last or 0 if wanted.after is None and not wanted.since else wanted.after or 0
    try:
        if follow:
            messages = _followed(bus, stream, subject, after, wanted.since)
        else:
            messages = bus.read(stream, subject=subject, after=after, since=wanted.since)
        async with aclosing(messages):
            async for message in messages:
                envelope = cloud_events.decode(message.data)
                if wanted.has(envelope):
                    yield Published(message.sequence, envelope, message.data)
    except RefusedError as error:
        raise CommandRefusedError(
            error.code, "you may read the events of your own jobs, and not those of others"
        ) from error


async def _followed(
    bus: Bus, stream: str, subject: str, after: int, since: float
) -> AsyncGenerator[Message, None]:
    reading = bus.consume(stream, "", subject=subject, after=after, since=since, ephemeral=True)
    async with aclosing(reading) as batches:
        async for batch in batches:
            for message in batch.messages:
                yield message


def _subject(subjects: Subjects, wanted: Wanted) -> str:
    """
    The narrowest filter that has all that is wanted; one filter cannot have both jobs' events and the pool's.
    """
    noun, _, verb = wanted.kind.partition(".")
    exact = noun.isalpha()
    event = f"{noun if exact else '*'}.{verb if verb.replace('_', '').isalpha() else '*'}"
    if exact and noun not in cloud_events.OVER_JOBS:
        return subjects.tail_pool(event)
    if exact or wanted.owner or wanted.cluster is not None:
        return subjects.monitor(wanted.owner or None, event)
    return _EVERYTHING
