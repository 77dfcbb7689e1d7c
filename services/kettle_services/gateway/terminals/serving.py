"""The connections of terminals, as a path of the web application."""

import asyncio
import logging
import time
from typing import Final

import msgspec
from aiohttp import WSMsgType, web

from kettle.auth.mapping.levels import Level
from kettle.bus.ports import BusError
from kettle.client import ClientError
from kettle.client.jobs.side_program import SHELL
from kettle_services.gateway.rest.application import Admitted, Front
from kettle_services.gateway.rest.connections import LastingConnections
from kettle_services.gateway.rest.past import PastQuestions
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.streams import Streams
from kettle_services.gateway.sessions.browser_sessions import HELD
from kettle_services.gateway.sessions.origins import Origins
from kettle_services.gateway.terminals.messages import LARGEST, Begun, Ended, Size, read_size
from kettle_services.gateway.terminals.relay import TerminalRelay
from kettle_wire.rest.problem import ProblemCode

PATH: Final = "/live/terminals/{id}"
_FIRST_S: Final = 10.0
"""How long a browser may take to say how large its terminal is."""
ALIVE_S: Final = 30.0
"""
Seconds of silence after which a browser is asked whether it is there, which it has half as long to say: one whose machine was taken off
the net says nothing, and a shell, a stream and a connection to the bus would be kept for it.
"""
_EXPIRED: Final = "the token has expired: show a new one"

_log: Final = logging.getLogger(__name__)


class Terminals:
    """Answers with terminals."""

    def __init__(
        self,
        front: Front,
        people: LastingConnections,
        past: PastQuestions,
        origins: Origins,
        streams: Streams,
    ) -> None:
        """`streams`: how many there may be, of all answers that go on."""
        self._front = front
        self._people = people
        self._past = past
        self._origins = origins
        self._streams = streams

    def add_to(self, application: web.Application) -> None:
        """Serve them."""
        application.router.add_get(PATH, self.answer)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """
        Be a terminal until it ends.  What is refused before that is an answer of HTTP, everything later a last message.

        Raises RequestRefused.
        """
        admitted = await self._front.admit(request, Level.WRITE)
        if HELD in request:
            self._origins.require_own_page(request)  # a cookie is shown also with what others' pages send
        socket = web.WebSocketResponse(max_msg_size=LARGEST, compress=False, heartbeat=ALIVE_S)
        if not socket.can_prepare(request).ok:
            raise RequestRefused(
                426,
                ProblemCode.REQUEST_MALFORMED,
                "this path is the connection of a terminal: open a WebSocket",
                headers={"Upgrade": "websocket", "Connection": "Upgrade"},
            )
        with self._streams.one_more(admitted.person.name):
            await socket.prepare(request)
            try:
                why = await self._terminal(request.match_info["id"], socket, admitted)
            except (RequestRefused, ClientError, BusError) as error:
                why = str(error)
            except TimeoutError:
                why = "the browser takes, or sends, nothing"
            await _end(socket, why)
        return socket

    async def _terminal(self, name: str, socket: web.WebSocketResponse, admitted: Admitted) -> str:
        """Why it has ended; empty: the browser has left."""
        size = await _first(socket)
        person = admitted.person
        job, schedd = await self._past.named(name)

        async def require_still() -> None:
            if person.expires is not None and time.time() >= person.expires:
                raise RequestRefused(401, ProblemCode.TOKEN_ABSENT, _EXPIRED)
            await admitted.admission.require_still()

        async with self._people.for_long(person) as client:
            visit = await client.at(schedd).visit(job)
            async with visit.running(["sh", "-c", SHELL], terminal=size.terminal()) as program:
                _log.info("a terminal begins", extra={"job": f"{job}@{schedd}", "by": person.name})
                await socket.send_str(msgspec.json.encode(Begun(slot=visit.slot)).decode())
                why = await TerminalRelay(socket, program, require_still).run()
        _log.info("a terminal has ended", extra={"job": f"{job}@{schedd}", "by": person.name, "why": why})
        return why


async def _first(socket: web.WebSocketResponse) -> Size:
    """What a browser says first; raises RequestRefused: something else, TimeoutError: nothing."""
    message = await socket.receive(_FIRST_S)
    try:
        return read_size(message.data if message.type == WSMsgType.TEXT else "")
    except msgspec.MsgspecError as error:
        raise RequestRefused(
            422, ProblemCode.BODY_INVALID, f"the first message has to be the size of the terminal: {error}"
        ) from error


async def _end(socket: web.WebSocketResponse, why: str) -> None:
    """Say why, if somebody listens, and close."""
    try:
        async with asyncio.timeout(_FIRST_S):
            if why and not socket.closed:
                await socket.send_str(msgspec.json.encode(Ended(ended=why)).decode())
            await socket.close()
    except (ConnectionResetError, TimeoutError) as error:
        _log.info("the browser of a terminal is gone: %s", str(error) or "it takes nothing")
