"""Events as they are recorded, as a stream of server-sent events."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import msgspec
from aiohttp import web

from kettle.bus.ports import Bus, BusError
from kettle.client import Client, ClientError
from kettle.client.events.published import Published, Wanted
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.rest.past import FollowEvents
from kettle_wire.rest.problem import ProblemCode

HEARTBEAT_S: Final = 15.0
SLOW_S: Final = 10.0
"""A reader that does not take what was sent for so long is cut off."""
_MOST: Final = 256
"""Events that wait for a reader; the bus keeps the others."""

_log: Final = logging.getLogger(__name__)


class EventFeed:
    """
    Answers with streams, each read in the name of its reader: the bus gives nobody the events of others.
    """

    def __init__(self, bus: Bus, monitor: str, people: PersonConnections, *, most: int) -> None:
        """`monitor`: the stream of published events; `most`: streams at once."""
        self._bus = bus
        self._monitor = monitor
        self._people = people
        self._most = most
        self._open = 0

    async def follow(self, asked: Asked) -> web.StreamResponse:
        """Send events until the reader leaves, is too slow, or its token is over."""
        parameters: FollowEvents = asked.parameters
        after = _place(asked, parameters)
        if self._open >= self._most:
            raise RequestRefused(
                503,
                ProblemCode.TOO_MANY,
                f"{self._most} streams are open, which is the most; try again later",
                retry_after=30,
            )
        async with self._people.of(asked.person) as client:
            return await self._followed(asked, client, after)

    async def _followed(self, asked: Asked, client: Client, after: int | None) -> web.StreamResponse:
        parameters: FollowEvents = asked.parameters
        wanted = Wanted(
            owner=asked.person.name,
            kind=parameters.kind,
            cluster=parameters.cluster,
            after=after,
            since=parameters.since.timestamp() if parameters.since and after is None else 0.0,
        )
        lost = await self._lost(after)
        response = web.StreamResponse(
            headers={
                "Cache-Control": "no-store",
                "Content-Type": "text/event-stream",
                "Vary": "Authorization",
                "X-Accel-Buffering": "no",
            }
        )
        self._open += 1
        try:
            await response.prepare(asked.request)
            if lost:
                await response.write(_event("gap", f'{{"first":{lost}}}'))
            published = client.published(wanted)
            async with aclosing(published):
                await _send(response, published, asked.person.expires)
        except (ConnectionResetError, TimeoutError):
            pass  # the reader has left, or does not read
        finally:
            self._open -= 1
        return response

    async def _lost(self, after: int | None) -> int:
        """The first place that is kept, if some behind `after` are not; else 0."""
        if after is None:
            return 0
        first = await self._bus.first_sequence(self._monitor)
        return first if first is not None and after and after + 1 < first else 0


async def _send(
    response: web.StreamResponse, published: AsyncGenerator[Published, None], over: float | None
) -> None:
    """Raises TimeoutError if the reader is too slow, ConnectionResetError if it has left."""
    waiting: asyncio.Queue[Published | Exception | None] = asyncio.Queue(_MOST)

    async def read() -> None:
        """What comes last says why nothing more comes; None: the connection was closed."""
        try:
            async for event in published:
                await waiting.put(event)
        except Exception as error:  # noqa: BLE001 - it is raised again where it is taken out
            await waiting.put(error)
        else:
            await waiting.put(None)

    reading = asyncio.create_task(read(), name="event-feed")
    try:
        reason = "the token has expired: show a new one"
        while over is None or time.time() < over:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    event = await waiting.get()
            except TimeoutError:
                data = b": heartbeat\n\n"
            else:
                if not isinstance(event, Published):
                    reason = _ended(event)
                    break
                data = b"id: %d\ndata: %b\n\n" % (event.sequence, event.data)
            async with asyncio.timeout(SLOW_S):
                await response.write(data)
        async with asyncio.timeout(SLOW_S):
            await response.write(_event("cut", msgspec.json.encode({"reason": reason}).decode()))
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


def _ended(error: Exception | None) -> str:
    """Why nothing more comes; raises what nobody expects."""
    if error is not None and not isinstance(error, BusError | ClientError):
        raise error
    why = (
        f"events cannot be read at the moment ({error})" if error else "the connection to the bus was closed"
    )
    _log.warning("a stream of events ends: %s", why)
    return f"{why}: come back with Last-Event-ID"


def _place(asked: Asked, parameters: FollowEvents) -> int | None:
    named = asked.request.headers.get("Last-Event-ID", "").strip()
    if not named:
        return parameters.after
    if not named.isdecimal() or len(named) > 18:
        raise refused_field("/header/Last-Event-ID", "the header Last-Event-ID has to be the id of an event")
    return int(named)


def _event(name: str, data: str) -> bytes:
    return f"event: {name}\ndata: {data}\n\n".encode()
