"""
Asking from within a running job, which has no way to the bus: through its starter, as its owner.

The starter listens where `.chirp.config` says, and knows the job by the cookie there. Beside HTCondor's protocol it takes

    kettle <role> <name> <verb> <length of the request>

and the request as it travels on the bus; the answer is a length and a `Commanded`. See docs/decisions/0067.
"""

import asyncio
import socket
from pathlib import Path
from typing import Final

import msgspec

from kettle.bus.ports import (
    FROM_JOB,
    BusError,
    BusUnavailableError,
    RefusedError,
    Rep,
    ReplyTimeoutError,
    Req,
)
from kettle.retry.deadline import Deadline
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.chirp import Trouble
from kettle_wire.commands.questions import COMMAND, Commanded
from kettle_wire.endpoint import Endpoint

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Commanded).decode
_HUNG_UP: Final = "the job's starter has hung up"
_NOT_NOW: Final = frozenset({Trouble.TRY_AGAIN, Trouble.OFFLINE, Trouble.BUSY})


class FromJob:
    """The pool as a job reaches it; each question has a connection of its own."""

    def __init__(self, url: str) -> None:
        """`url`: FROM_JOB, and the path of the job's `.chirp.config`."""
        self._config = url.removeprefix(FROM_JOB)

    @property
    def payload_limit(self) -> int:
        """See `Bus.payload_limit`."""
        return COMMAND

    async def call(
        self, endpoint: Endpoint[Req, Rep], name: str, request: Req, *, deadline: float = 5.0
    ) -> Rep:
        """See `Bus.call`; who gives up leaves nothing behind."""
        body, line = _said(endpoint, name, request)
        try:
            async with asyncio.timeout(deadline):
                said = await self._talked(line, body)
        except (OSError, ValueError) as error:
            raise _failed(endpoint, error, deadline) from error
        return _answer(endpoint, said)

    def ask(self, endpoint: Endpoint[Req, Rep], name: str, request: Req, deadline: float) -> Rep:
        """Send a request from code without an event loop."""
        body, line = _said(endpoint, name, request)
        try:
            said = self._exchanged(line, body, Deadline(deadline))
        except (OSError, ValueError) as error:
            raise _failed(endpoint, error, deadline) from error
        return _answer(endpoint, said)

    async def _talked(self, line: str, body: bytes) -> Commanded:
        host, port, cookie = (await asyncio.to_thread(Path(self._config).read_text)).split()
        heard, plug = await asyncio.open_connection(host, int(port))
        try:
            plug.write(f"cookie {cookie}\n{line}\n".encode() + body)
            _number(await heard.readline())
            data = await heard.readexactly(_number(await heard.readline()))
        except asyncio.IncompleteReadError as error:
            raise BusUnavailableError(_HUNG_UP) from error
        finally:
            plug.close()
        return _decode(data)

    def _exchanged(self, line: str, body: bytes, until: Deadline) -> Commanded:
        host, port, cookie = Path(self._config).read_text().split()
        with socket.create_connection((host, int(port)), timeout=_left(until)) as plug:
            plug.sendall(f"cookie {cookie}\n{line}\n".encode() + body)
            heard = plug.makefile("rb")
            plug.settimeout(_left(until))
            _number(heard.readline())
            plug.settimeout(_left(until))
            length = _number(heard.readline())
            data = heard.read(length)
        if len(data) != length:
            raise BusUnavailableError(_HUNG_UP)
        return _decode(data)


def _said(endpoint: Endpoint[Req, Rep], name: str, request: Req) -> tuple[bytes, str]:
    """The request, and the line before it."""
    body = _encode(request)
    if len(body) > COMMAND:
        raise RefusedError(
            RefusalCode.TOO_LARGE, f"a request of {len(body):,} bytes; a job may send at most {COMMAND:,}"
        )
    return body, f"kettle {endpoint.role} {_word(name)} {endpoint.verb} {len(body)}"


def _failed(endpoint: Endpoint[Req, Rep], error: Exception, deadline: float) -> BusError:
    if isinstance(error, TimeoutError):
        return ReplyTimeoutError(f"the {endpoint.role} did not answer within {deadline:g} s")
    return BusUnavailableError(f"the job's starter cannot be asked: {error}")


def _answer(endpoint: Endpoint[Req, Rep], said: Commanded) -> Rep:
    if said.code:
        raise RefusedError(said.code, said.reason, retry_after_ms=said.retry_after)
    return endpoint.decode_reply(said.body)


def _left(until: Deadline) -> float:
    return max(until.left(), 0.001)


def _number(line: bytes) -> int:
    """What the protocol answers, if it is no error."""
    if not line:
        raise BusUnavailableError(_HUNG_UP)
    number = int(line)
    if number in _NOT_NOW:
        raise BusUnavailableError("the job's machine does not reach the pool at the moment")
    if number < 0:
        raise RefusedError(
            RefusalCode.DENIED,
            f"the job's starter says {number}: a job may ask its pool if it was submitted with want_pool_access = true, "
            "and its machine lets it",
        )
    return number


def _word(name: str) -> str:
    """Encode a word as the protocol requires."""
    return "".join("\\" + char if char in "\\ \n\t\r" else char for char in name)
