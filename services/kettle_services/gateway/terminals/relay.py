"""Passes bytes between the WebSocket of a browser and a program beside a job."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from aiohttp import WSMessage, WSMsgType, web

from kettle.client import ClientError
from kettle.client.errors import CommandRefusedError
from kettle.client.jobs.access import SideProgram
from kettle_services.gateway.rest.admission import LOOK_AGAIN_S
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.terminals.messages import read_size
from kettle_wire.codes import RefusalCode

SLOW_S: Final = 10.0
"""A browser that does not take what was sent for so long is cut off."""
_WAITING: Final = 16
"""Messages of a browser that may wait for the program to take them; then the browser waits."""
_RUN_OVER: Final = "the run of the job is over, and everything beside it"


class TerminalRelay:
    """One of them, of one connection and one program."""

    def __init__(
        self,
        socket: web.WebSocketResponse,
        program: SideProgram,
        require_still: Callable[[], Awaitable[None]],
    ) -> None:
        """`require_still`, asked every few seconds, raises RequestRefused: the person may have it no more."""
        self._socket = socket
        self._program = program
        self._require_still = require_still
        self._typed: asyncio.Queue[WSMessage] = asyncio.Queue(_WAITING)

    async def run(self) -> str:
        """
        Until either side has ended, or the person may have it no more; why, in a sentence.

        Raises TimeoutError: the browser takes nothing.
        """
        ways = {
            asyncio.create_task(each, name=f"terminal of {self._program.name}")
            for each in (self._to_browser(), self._from_browser(), self._to_program(), self._admitted())
        }
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            return next(iter(done)).result()
        finally:
            for each in ways:
                each.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _to_browser(self) -> str:
        try:
            async for output in self._program.output():
                async with asyncio.timeout(SLOW_S):
                    await self._socket.send_bytes(output.data)
        except ConnectionResetError:
            return ""
        except ClientError as error:
            return _why(error)
        if self._program.exit_signal is not None:
            return f"the program was ended by signal {self._program.exit_signal}"
        return f"the program has ended with exit code {self._program.exit_code or 0}"

    async def _from_browser(self) -> str:
        async for message in self._socket:
            if message.type == WSMsgType.ERROR:
                # It is closed already, for what it has sent or for its silence.
                return f"the connection of the browser has failed: {message.data}"
            await self._typed.put(message)
        return ""

    async def _to_program(self) -> str:
        while True:
            message = await self._typed.get()
            try:
                if message.type == WSMsgType.BINARY:
                    await self._program.write(message.data)
                else:
                    await self._program.resize(read_size(message.data).terminal())
            except msgspec.MsgspecError as error:
                return f"the browser has sent something that is no size of a terminal: {error}"
            except ClientError as error:
                return _why(error)

    async def _admitted(self) -> str:
        while True:
            await asyncio.sleep(LOOK_AGAIN_S)
            try:
                await self._require_still()
            except RequestRefused as refusal:
                return str(refusal)


def _why(error: ClientError) -> str:
    over = isinstance(error, CommandRefusedError) and error.code == RefusalCode.NOT_RUNNING
    return _RUN_OVER if over else str(error)
