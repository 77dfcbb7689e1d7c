"""Sends a stream of server-sent events to one reader, for as long as that one may have it."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

import msgspec
from aiohttp import web

from kettle.bus.ports import BusError
from kettle.client import ClientError
from kettle_services.gateway.rest.admission import LOOK_AGAIN_S
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field

HEARTBEAT_S: Final = 15.0
SLOW_S: Final = 10.0
"""A reader that does not take what was sent for so long is cut off."""
AGAIN: Final = "come back with Last-Event-ID"
_HEARTBEAT: Final = b": heartbeat\n\n"
_EXPIRED: Final = "the token has expired: show a new one"

_log: Final = logging.getLogger(__name__)


class StreamCut(Exception):  # noqa: N818 - the end of a stream
    """A stream ends, and the reader is told why."""


class EventSender:
    """Sends a stream to one reader."""

    def __init__(self, asked: Asked, response: web.StreamResponse, heartbeat: float) -> None:
        assert asked.admission is not None, "a stream is of somebody who was admitted"
        self._admission = asked.admission
        self._over = asked.person.expires
        self._request = asked.request
        self._written = time.monotonic()
        self._response = response
        self._heartbeat = heartbeat

    @classmethod
    async def begun(cls, asked: Asked, *, heartbeat: float = HEARTBEAT_S) -> "EventSender":
        """The answer has begun; `heartbeat`: seconds of silence after which something is sent."""
        response = web.StreamResponse(
            headers={
                "Cache-Control": "no-store",
                "Content-Type": "text/event-stream",
                "Vary": "Authorization",
                "X-Accel-Buffering": "no",
            }
        )
        await response.prepare(asked.request)
        return cls(asked, response, heartbeat)

    async def send_all(self, events: AsyncGenerator[bytes]) -> web.StreamResponse:
        """Send what comes until the reader leaves, reads too slowly, or there is a reason to end."""
        coming: asyncio.Task[bytes] | None = None
        try:
            async with aclosing(events):
                try:
                    while self._over is None or time.time() < self._over:
                        await self._require_admitted()
                        if coming is None:
                            coming = asyncio.ensure_future(anext(events))
                        done, _ = await asyncio.wait((coming,), timeout=LOOK_AGAIN_S)
                        if done:
                            data, coming = coming.result(), None
                            await self._write(data)
                        elif time.monotonic() > self._written + self._heartbeat - LOOK_AGAIN_S:
                            await self._write(_HEARTBEAT)
                        elif self._request.transport is None or self._request.transport.is_closing():
                            raise ConnectionResetError("it has left")
                    reason = _EXPIRED
                except StreamCut as cut:
                    reason = str(cut)
                except (BusError, ClientError, RequestRefused) as error:
                    reason = why_cut(str(error))
                finally:
                    if coming is not None:
                        coming.cancel()
                        await asyncio.wait((coming,))
                await self._write(server_sent("cut", {"reason": reason}))
        except (ConnectionResetError, TimeoutError) as error:
            _log.info("a reader of events is gone: %s", str(error) or f"it takes nothing for {SLOW_S:g} s")
        return self._response

    async def _require_admitted(self) -> None:
        """Raises StreamCut: the reader may follow no more."""
        try:
            await self._admission.require_still()
        except RequestRefused as refusal:
            raise StreamCut(str(refusal)) from refusal

    async def _write(self, data: bytes) -> None:
        async with asyncio.timeout(SLOW_S):
            await self._response.write(data)
        self._written = time.monotonic()


def why_cut(trouble: str) -> str:
    """Why a stream ends that could not be read on; empty trouble: it was made again."""
    why = (
        f"events cannot be read at the moment ({trouble})"
        if trouble
        else "the stream of events was made again"
    )
    _log.warning("a stream of events ends: %s", why)
    return f"{why}: {AGAIN}"


def place_of_reader(asked: Asked, after: int | None) -> int | None:
    """
    Behind which event somebody wants to go on: as the header says it, else `after`. Raises RequestRefused.
    """
    named = asked.request.headers.get("Last-Event-ID", "").strip()
    if not named:
        return after
    if not named.isdecimal() or len(named) > 18:
        raise refused_field("/header/Last-Event-ID", "the header Last-Event-ID has to be the id of an event")
    return int(named)


def server_sent(name: str, data: dict[str, object]) -> bytes:
    """An event with a name."""
    return b"event: %b\ndata: %b\n\n" % (name.encode(), msgspec.json.encode(data))
