"""
Parts of pages that are sent again when something has changed.

Each reader is sent his part when it is another one, and not more often than somebody reads.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import ExitStack
from typing import Final, Protocol

import msgspec
from aiohttp import web

from kettle_services.gateway.pages.live_subject import LiveSubject
from kettle_services.gateway.pages.table_watch import TableWatch
from kettle_services.gateway.pages.watched_part import MadePart, WatchedPart, WatchedParts
from kettle_services.gateway.rest.admission import LOOK_AGAIN_S
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.streams import Streams

PAUSE_S: Final = 0.25
"""Between two parts of one reader, at least."""
HEARTBEAT_S: Final = 15.0
SLOW_S: Final = 10.0
"""A reader that does not take what was sent for so long is cut off."""

_log: Final = logging.getLogger(__name__)


class Watch(Protocol):
    """Tells when there is something new of what a part shows."""

    async def behind(self, frames: Mapping[str, int]) -> Mapping[str, int]:
        """Wait until that is at another place than this one; the place."""
        ...


class SharedSubject(msgspec.Struct, frozen=True):
    """What a part shows, and what it depends on besides: who has the same key is sent the same."""

    subject: LiveSubject
    key: Hashable


class _Following(Protocol):
    """Tells a reader when his part is another one."""

    async def changed(self) -> float:
        """Wait for that, the first time not at all; when it was, by the monotonic clock."""
        ...

    def again(self) -> None:
        """Do not wait the next time."""
        ...


class _FollowsWatch:
    """By a watch of the page's own."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._frames: Mapping[str, int] = {}

    async def changed(self) -> float:
        self._frames = await self._watch.behind(self._frames)
        return time.monotonic()

    def again(self) -> None:
        self._frames = {}


class _FollowsPart:
    """
    By what a part is told that others watch, too.  Who has it already, with the page or from the connection before, waits for the next one.
    """

    def __init__(self, part: WatchedPart, watch: TableWatch, has: str) -> None:
        """`has`: the place of the tables at which the reader has the part; empty: it has none."""
        self._part = part
        self._watch = watch
        self._has = has
        self._seen: float | None = None

    async def changed(self) -> float:
        if self._seen is None:
            now = time.monotonic()
            is_newest = self._has and self._has == await self._watch.place()
            self._has, self._seen = "", now
            if not is_newest:
                return now
        self._seen = await self._part.changed(self._seen)
        return self._seen

    def again(self) -> None:
        self._seen = None


class LiveParts:
    """Sends them."""

    def __init__(self, watch: TableWatch, streams: Streams) -> None:
        """`streams` counts those who watch."""
        self._watch = watch
        self._streams = streams
        self.parts: Final = WatchedParts(watch, time.monotonic)

    async def send(
        self,
        asked: Asked,
        make: Callable[[], Awaitable[MadePart]],
        rights: Callable[[], Hashable],
        shown: SharedSubject | Watch | None = None,
    ) -> web.StreamResponse:
        """
        Send a part whenever it is another one, until its reader leaves, has other rights than before, or may see it no more.

        `rights`: what the reader may do, by which parts differ; raises RequestRefused. `shown`: what the part is about, a watch of the
        page's own, or None: it may be another one whenever the tables of jobs have something new.
        """
        response = web.StreamResponse(
            headers={
                "Cache-Control": "no-store",
                "Content-Type": "text/event-stream",
                "Vary": "Authorization, Cookie",
                "X-Accel-Buffering": "no",
            }
        )
        with self._streams.one_more(asked.person.name), ExitStack() as stack:
            if isinstance(shown, SharedSubject):
                watched = self.parts.watched(shown.key, shown.subject, asked.person.name)
                part = stack.enter_context(watched)
                has = asked.header("Last-Event-ID")
                following: _Following = _FollowsPart(part, self._watch, has)
            else:
                part = self.parts.alone()
                following = _FollowsWatch(shown if shown is not None else self._watch)
            try:
                await response.prepare(asked.request)
                await self._sent(asked, part, following, make, rights, response)
            except (ConnectionResetError, TimeoutError):
                pass  # the reader has left, or does not read
            except RequestRefused as refusal:
                _log.info("%s is shown no more of a page: %s", asked.person.name, refusal)
        return response

    async def _sent(
        self,
        asked: Asked,
        part: WatchedPart,
        following: _Following,
        make: Callable[[], Awaitable[MadePart]],
        rights: Callable[[], Hashable],
        response: web.StreamResponse,
    ) -> None:
        """
        Raises TimeoutError if the reader is too slow, ConnectionResetError if it has left, RequestRefused if it may see no more.
        """
        assert asked.admission is not None, "a stream is of somebody who was admitted"
        over, written = asked.person.expires, time.monotonic()
        sent: MadePart | None = None
        begun_with: Hashable = None
        while over is None or time.time() < over:
            await asked.admission.require_still()
            try:
                async with asyncio.timeout(LOOK_AGAIN_S):
                    since = await following.changed()
            except TimeoutError:
                if asked.request.transport is None or asked.request.transport.is_closing():
                    return
                if time.monotonic() > written + HEARTBEAT_S - LOOK_AGAIN_S:
                    await _written(response, b": heartbeat\n\n")
                    written = time.monotonic()
                continue
            try:
                has = rights()
                begun_with = has if begun_with is None else begun_with
                if has != begun_with:
                    return  # it comes again with those of now
                made = await part.newest(asked.person.name, since, make)
            except RequestRefused as refusal:
                await _written(response, part_event(str(refusal), "trouble"))
                if refusal.status == 403:
                    return
                following.again()  # the part that is missing now comes after the pause, also if nothing else happens
                sent, written = None, time.monotonic()
            else:
                if made is not sent:
                    await _written(response, made.event)
                    sent, written = made, time.monotonic()
            await asyncio.sleep(PAUSE_S)


async def _written(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(SLOW_S):
        await response.write(data)


def part_event(text: str, name: str = "", place: str = "") -> bytes:
    """A text as a server-sent event; `place`: of the tables, by which its reader says later what he has."""
    lines = [f"event: {name}"] if name else []
    lines += [f"id: {place}"] if place else []
    return "\n".join([*lines, *(f"data: {line}" for line in text.splitlines()), "", ""]).encode()
