"""
Parts of pages that are sent again when something has changed.

One loop looks at how far the tables are, for all who watch, and only while somebody does; what it costs does not depend on how many
that are.  Each is sent his part when it is another one, and not more often than somebody reads.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from aiohttp import web

from kettle_services.gateway.rest.admission import LOOK_AGAIN_S
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.job_tables import JobTables
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.streams import Streams

LOOK_S: Final = 0.1
PAUSE_S: Final = 0.25
"""Between two parts of one reader, at least."""
SHARE: Final = 0.25
"""Of a core, the most that all live parts together are to take: the more there are, the longer are the pauses."""
HEARTBEAT_S: Final = 15.0
SLOW_S: Final = 10.0
"""A reader that does not take what was sent for so long is cut off."""

_log: Final = logging.getLogger(__name__)


class Watch(Protocol):
    """Tells when there is something new of what a part shows."""

    async def behind(self, frames: Mapping[str, int]) -> Mapping[str, int]:
        """Wait until that is at another place than this one; the place."""
        ...


class TableWatch:
    """Tells when there is something new in the tables of jobs."""

    def __init__(self, tables: JobTables) -> None:
        self._tables = tables
        self._wanted = asyncio.Event()
        self._changed = asyncio.Condition()
        self._waiting = 0
        self._frames: Mapping[str, int] = {}

    async def run(self) -> None:
        """Look again and again, while somebody waits; never returns."""
        while True:
            await self._wanted.wait()
            try:
                async with self._tables.read() as reading:
                    frames = await reading.frames()
            except RequestRefused as refusal:
                _log.info("nobody is told of changes at the moment: %s", refusal)
            else:
                await self._tell(frames)
            await asyncio.sleep(LOOK_S)

    async def _tell(self, frames: Mapping[str, int]) -> None:
        if frames == self._frames:
            return
        async with self._changed:
            self._frames = frames
            self._changed.notify_all()

    async def behind(self, frames: Mapping[str, int]) -> Mapping[str, int]:
        """Wait until the tables are at another place than these frames; the place."""
        self._waiting += 1
        self._wanted.set()
        try:
            async with self._changed:
                await self._changed.wait_for(lambda: bool(self._frames) and self._frames != frames)
                return self._frames
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._wanted.clear()


class Costs:
    """
    How much processor time each of several things takes that are made at once: an equal part of what the process has used, so that all
    together are not more than that, however long they wait for the database or for each other.
    """

    def __init__(self, clock: Callable[[], float] = time.process_time) -> None:
        """`clock`: processor seconds of this process."""
        self._clock = clock
        self._made_now = 0
        self._at = 0.0
        self._shared = 0.0
        """Seconds that something has had that was made all the time."""

    def begin(self) -> float:
        """Something more is made; what `end` is to be given."""
        self._go_on()
        self._made_now += 1
        return self._shared

    def end(self, begun: float) -> float:
        """It is made; seconds that it took."""
        self._go_on()
        self._made_now -= 1
        return self._shared - begun

    def _go_on(self) -> None:
        now = self._clock()
        if self._made_now:
            self._shared += (now - self._at) / self._made_now
        self._at = now


class LiveParts:
    """Sends them."""

    def __init__(self, watch: Watch, streams: Streams) -> None:
        """`watch`: of pages that have none of their own; `streams` counts those who watch."""
        self._watch = watch
        self._streams = streams
        self._costs = Costs()

    async def send(
        self, asked: Asked, part: Callable[[], Awaitable[str | None]], watch: Watch | None = None
    ) -> web.StreamResponse:
        """
        Send a part whenever it is another one, until its reader leaves or may see it no more; None: it is that of the last time.
        `watch`: the page's own.
        """
        response = web.StreamResponse(
            headers={
                "Cache-Control": "no-store",
                "Content-Type": "text/event-stream",
                "Vary": "Authorization, Cookie",
                "X-Accel-Buffering": "no",
            }
        )
        with self._streams.one_more(asked.person.name):
            try:
                await response.prepare(asked.request)
                await self._sent(asked, part, response, watch or self._watch)
            except (ConnectionResetError, TimeoutError):
                pass  # the reader has left, or does not read
            except RequestRefused as refusal:
                _log.info("%s is shown no more of a page: %s", asked.person.name, refusal)
        return response

    async def _sent(
        self,
        asked: Asked,
        part: Callable[[], Awaitable[str | None]],
        response: web.StreamResponse,
        watch: Watch,
    ) -> None:
        """
        Raises TimeoutError if the reader is too slow, ConnectionResetError if it has left, RequestRefused if it may see no more.
        """
        assert asked.admission is not None, "a stream is of somebody who was admitted"
        over, written = asked.person.expires, time.monotonic()
        seen: Mapping[str, int] = {}
        while over is None or time.time() < over:
            await asked.admission.require_still()
            try:
                async with asyncio.timeout(LOOK_AGAIN_S):
                    seen = await watch.behind(seen)
            except TimeoutError:
                if asked.request.transport is None or asked.request.transport.is_closing():
                    return
                if time.monotonic() > written + HEARTBEAT_S - LOOK_AGAIN_S:
                    await _written(response, b": heartbeat\n\n")
                    written = time.monotonic()
                continue
            began, refused, text = self._costs.begin(), None, None
            try:
                text = await part()
            except RequestRefused as refusal:
                refused = refusal
            finally:
                took = self._costs.end(began)
            if refused is not None:
                await _written(response, _event(str(refused), "trouble"))
                if refused.status == 403:
                    return
                seen = {}  # the part that is missing now comes after the pause, also if nothing else happens
                written = time.monotonic()
            elif text is not None:
                await _written(response, _event(text))
                written = time.monotonic()
            await asyncio.sleep(max(PAUSE_S, took * self._streams.count / SHARE))


async def _written(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(SLOW_S):
        await response.write(data)


def _event(text: str, name: str = "") -> bytes:
    lines = [f"event: {name}"] if name else []
    return "\n".join([*lines, *(f"data: {line}" for line in text.splitlines()), "", ""]).encode()
