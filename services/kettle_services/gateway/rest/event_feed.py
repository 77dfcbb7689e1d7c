"""
Streams of server-sent events: those of one's own jobs as they are recorded, and which things have changed.

A reader who is up to date is served from what this process has read for all (`event_hub`).  Who comes back to an older place reads up to
there over a connection of his own, on which the bus gives nobody the events of others.
"""

import logging
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from fnmatch import fnmatchcase
from typing import Final

import msgspec
from aiohttp import web

from kettle.bus.ports import Bus
from kettle.client.events.published import Published, Wanted
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.changes import Changes
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.event_hub import EventHub, Happening, sent
from kettle_services.gateway.rest.event_sender import (
    AGAIN,
    HEARTBEAT_S,
    EventSender,
    StreamCut,
    place_of_reader,
    server_sent,
    why_cut,
)
from kettle_services.gateway.rest.past import PastQuestions
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.streams import Streams
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.streams import Follow, FollowChanges, FollowCluster, FollowEvents, FollowJob

_TOGETHER: Final = 256 << 10
"""Bytes that are sent at once."""

_log: Final = logging.getLogger(__name__)


class _Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Which events somebody follows."""

    owner: str
    kind: str
    schedd: str = ""
    cluster: int | None = None
    proc: int | None = None

    def has(self, happening: Happening) -> bool:
        """Whether this is one of them; events of a cluster are about its job 0 and all others."""
        return (
            happening.owner == self.owner
            and self.schedd in {"", happening.schedd}
            and self.cluster in {None, happening.cluster}
            and (self.proc is None or happening.proc in {None, self.proc})
            and (self.kind == "*" or fnmatchcase(happening.kind, self.kind))
        )


class _Gathered(msgspec.Struct, frozen=True):
    """What is sent together."""

    data: bytes
    after: int
    """The place up to which this is all."""
    oldest: float
    """When the oldest of what came meanwhile was recorded, seconds since the epoch; 0: nothing did."""


class EventFeed:
    """Answers with streams."""

    def __init__(
        self,
        bus: Bus,
        monitor: str,
        people: PersonConnections,
        past: PastQuestions,
        hub: EventHub,
        streams: Streams,
        *,
        heartbeat: float = HEARTBEAT_S,
        delay: Callable[[float], None] = lambda _seconds: None,
    ) -> None:
        """
        `monitor`: the stream of published events; `streams`: how many there may be; `heartbeat`: seconds of silence after which
        something is sent; `delay` is told how old events are when they have been sent.
        """
        self._delay = delay
        self._bus = bus
        self._monitor = monitor
        self._people = people
        self._past = past
        self._hub = hub
        self._streams = streams
        self._heartbeat = heartbeat
        self._changes = Changes()
        hub.hear(self._changes.heard)

    async def run(self) -> None:
        """Tell of changes, without end."""
        await self._changes.run()

    async def follow(self, asked: Asked) -> web.StreamResponse:
        """
        Send the events of one's own jobs until the reader leaves, is too slow, or would not be admitted any more.
        """
        parameters: FollowEvents = asked.parameters
        choice = _Choice(owner=asked.person.name, kind=parameters.kind, cluster=parameters.cluster)
        return await self._followed(asked, choice)

    async def follow_job(self, asked: Asked) -> web.StreamResponse:
        """Send the events of one job."""
        parameters: FollowJob = asked.parameters
        job, schedd = await self._past.named(parameters.id)
        owner = await self._past.owner(job.cluster, schedd)
        return await self._of_object(asked, owner, schedd, job.cluster, job.proc)

    async def follow_cluster(self, asked: Asked) -> web.StreamResponse:
        """Send the events of one cluster."""
        parameters: FollowCluster = asked.parameters
        cluster, schedd = await self._past.named_cluster(parameters.id)
        owner = await self._past.owner(cluster, schedd)
        return await self._of_object(asked, owner, schedd, cluster)

    async def _of_object(
        self, asked: Asked, owner: str, schedd: str, cluster: int, proc: int | None = None
    ) -> web.StreamResponse:
        parameters: Follow = asked.parameters
        if owner != asked.person.name:
            raise RequestRefused(
                403,
                ProblemCode.NOT_PERMITTED,
                f"these are jobs of {owner}, and events are for the owner of a job alone: /v2/changes says of everybody's which have changed",
            )
        choice = _Choice(owner=owner, kind=parameters.kind, schedd=schedd, cluster=cluster, proc=proc)
        return await self._followed(asked, choice)

    async def follow_changes(self, asked: Asked) -> web.StreamResponse:
        """Send which things have changed."""
        parameters: FollowChanges = asked.parameters
        with self._streams.one_more(asked.person.name), self._changes.reader(parameters) as reader:
            sender = await EventSender.begun(asked, heartbeat=self._heartbeat)

            async def told() -> AsyncGenerator[bytes]:
                while True:
                    yield await reader.next()

            return await sender.send_all(told())

    async def _followed(self, asked: Asked, choice: _Choice) -> web.StreamResponse:
        parameters: Follow = asked.parameters
        after = place_of_reader(asked, parameters.after)
        if not self._hub.began:
            raise RequestRefused(
                503,
                ProblemCode.UNAVAILABLE,
                "the events of the pool are not read yet: try again",
                retry_after=1,
            )
        with self._streams.one_more(asked.person.name):
            lost = await self._lost(choice.owner, after)
            since = parameters.since.timestamp() if parameters.since and after is None else 0.0
            begins = self._hub.recent.last if after is None else after
            if self._is_old(
                choice, begins, since
            ):  # a refusal cannot be told any more when the answer has begun
                async with self._people.of(asked.person):
                    pass
            sender = await EventSender.begun(asked, heartbeat=self._heartbeat)
            return await sender.send_all(self._all(asked, choice, begins, since, lost))

    async def _all(
        self, asked: Asked, choice: _Choice, after: int, since: float, lost: int
    ) -> AsyncGenerator[bytes]:
        """Everything from a place, or a time, on; raises StreamCut."""
        if lost:
            yield server_sent("gap", {"first": lost})
        recent = self._hub.recent
        if self._is_old(choice, after, since):
            older = self._older(asked, choice, None if since else after, since)
            async with aclosing(older):
                async for published in older:
                    yield sent(published.sequence, published.data)
                    after = published.sequence
                    if after >= recent.forgotten_of(choice.owner):
                        break
        newer = self._newer(choice, after)
        async with aclosing(newer):
            async for data in newer:
                yield data

    def _is_old(self, choice: _Choice, after: int, since: float) -> bool:
        """Whether some that are wanted are not here."""
        return bool(since) or after < self._hub.recent.forgotten_of(choice.owner)

    async def _older(
        self, asked: Asked, choice: _Choice, after: int | None, since: float
    ) -> AsyncGenerator[Published]:
        """What the stream has, read in the name of the person."""
        wanted = Wanted(
            owner=choice.owner,
            kind=choice.kind,
            cluster=choice.cluster,
            proc=choice.proc,
            after=after,
            since=since,
        )
        async with self._people.of(asked.person) as client, aclosing(client.published(wanted)) as published:
            async for event in published:
                if choice.schedd in {"", event.envelope.schedd}:
                    yield event
        raise StreamCut(f"the connection to the bus was closed: {AGAIN}")

    async def _newer(self, choice: _Choice, after: int) -> AsyncGenerator[bytes]:
        """What this process has read for all, and what comes."""
        hub, era, came_to = self._hub, self._hub.era, self._hub.recent.last
        woken = hub.woken(choice.owner)
        try:
            while True:
                woken.clear()
                if hub.trouble or hub.era != era:
                    raise StreamCut(why_cut(hub.trouble))
                if after < hub.recent.forgotten_of(choice.owner):
                    raise StreamCut(f"more has come than is kept for slow readers: {AGAIN}")
                gathered = self._gathered(choice, after, came_to)
                after = gathered.after
                if gathered.data:
                    yield gathered.data
                if gathered.oldest:
                    self._delay(max(0.0, time.time() - gathered.oldest))
                if after >= hub.recent.last:
                    await woken.wait()
        finally:
            hub.asleep(choice.owner, woken)

    def _gathered(self, choice: _Choice, after: int, came_to: int) -> _Gathered:
        """What is sent together, behind a place; `came_to`: the last that was there when its reader came."""
        waiting, oldest = b"", 0.0
        for happening in self._hub.recent.of_owner(choice.owner, after):
            after = happening.sequence
            if choice.has(happening):
                waiting += happening.data
                if not oldest and after > came_to:  # older ones have waited for their reader, not for us
                    oldest = happening.at
                if len(waiting) >= _TOGETHER:
                    return _Gathered(waiting, after, oldest)
        return _Gathered(waiting, max(after, self._hub.recent.last), oldest)

    async def _lost(self, owner: str, after: int | None) -> int:
        """The first place that is kept, if some behind `after` are not; else 0."""
        if not after or after >= self._hub.recent.forgotten_of(owner):
            return 0
        first = await self._bus.first_sequence(self._monitor)
        return first if first is not None and after + 1 < first else 0
