"""
Requests of HTTP to a service of a job, and its answers, both passed on as they come.

What the web server has understood of a request is said afresh to the job, and the other way: no byte of a head is passed on as it was
sent, so nobody can put a second request into the first.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
from aiohttp import hdrs, web
from multidict import CIMultiDict

from kettle.published.errors import StreamCode, StreamRefusedError, TunnelError
from kettle.published.tunnel_stream import TunnelStream
from kettle_services.gateway.domain.published_headers import Visit, from_job, to_job
from kettle_services.gateway.published.job_connections import JobConnections, address_in_job
from kettle_services.gateway.published.switching import Early, Passage
from kettle_services.gateway.published.uses import Use
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.problem import ProblemCode

_FORBIDDEN: Final = frozenset({"CONNECT", "TRACE"})
_NO_BODY: Final = frozenset({204, 304})
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_SLOW_BODY_S: Final = 60.0
"""Somebody who sends a body sends something of it within this."""
_GATEWAY: Final[dict[str, int]] = {
    StreamCode.NO_SUCH_SERVICE: 404,
    StreamCode.NOTHING_LISTENS: 502,
    StreamCode.NOT_OF_THIS_JOB: 502,
    StreamCode.SUSPENDED: 503,
    StreamCode.TOO_MANY: 503,
}
"""With which status a connection is refused that the job's side has not made."""


def require_plain(request: web.Request) -> None:
    """
    Raises RequestRefused: it could be understood in more than one way, or is for no server behind a gateway.
    """
    if request.method in _FORBIDDEN:
        raise RequestRefused(405, ProblemCode.METHOD, f"{request.method} is not passed on to jobs")
    if request.version not in {aiohttp.HttpVersion10, aiohttp.HttpVersion11}:
        raise _ambiguous("a request on this connection is one of HTTP/1.0 or HTTP/1.1")
    if len(request.headers.getall(hdrs.HOST, ())) != 1:
        raise _ambiguous("a request has one header Host")
    if len(request.headers.getall(hdrs.AUTHORIZATION, ())) > 1:
        raise _ambiguous("who asks is said once: there are several headers Authorization")
    lengths = request.headers.getall(hdrs.CONTENT_LENGTH, ())
    codings = request.headers.getall(hdrs.TRANSFER_ENCODING, ())
    if len(lengths) + len(codings) > 1:
        raise _ambiguous("the length of the body is said more than once")
    if lengths and not (lengths[0].isascii() and lengths[0].isdigit()):
        raise _ambiguous("Content-Length is no number")
    if codings and codings[0].strip().lower() != "chunked":
        raise _ambiguous("the only Transfer-Encoding that is passed on is chunked")
    if codings and request.version < aiohttp.HttpVersion11:
        raise _ambiguous("HTTP/1.0 has no Transfer-Encoding")


def _ambiguous(sentence: str) -> RequestRefused:
    return RequestRefused(400, ProblemCode.REQUEST_MALFORMED, sentence)


def refused_stream(error: TunnelError | ConnectionError, service: str) -> RequestRefused:
    """How a request is refused whose connection was not made, or is over."""
    if isinstance(error, StreamRefusedError):
        status = _GATEWAY.get(error.code, 502)
        return RequestRefused(
            status, f"service.{error.code}", str(error), retry_after=0 if status == 404 else 2
        )
    return RequestRefused(
        502,
        "service.lost",
        f"the connection to the service {service} is over before it has answered: try again",
        retry_after=2,
    )


class _Patience:
    """How long a job may take to begin its answer; it may do so before it has all of the request."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._waiting: asyncio.Timeout | None = None

    @asynccontextmanager
    async def limit(self) -> AsyncGenerator[None]:
        """Until the answer begins; raises TimeoutError: it does not."""
        async with asyncio.timeout(self._seconds) as waiting:
            self._waiting = waiting
            try:
                yield
            finally:
                self._waiting = None

    def begin_again(self) -> None:
        """More of the request has come."""
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(asyncio.get_running_loop().time() + self._seconds)


class HttpProxy:
    """Passes them on."""

    def __init__(self, patience: float, passage: Passage) -> None:
        """`patience`: seconds in which a job begins its answer, from the last byte of the request on."""
        self._patience: Final = patience
        self._passage: Final = passage

    async def answer(
        self,
        request: web.Request,
        visit: Visit,
        use: Use,
        connections: JobConnections,
        target: str,
        *,
        bearer: bool,
    ) -> web.StreamResponse:
        """
        What the job answers.

        Raises RequestRefused: it does not answer, or with what is no answer.
        """
        headers = to_job(request.headers.items(), visit, bearer=bearer)
        if use.via == "websocket":
            return await self._switched(request, visit, use, connections, target, headers)
        has_body = request.can_read_body
        if has_body and (length := request.headers.get(hdrs.CONTENT_LENGTH)) is not None:
            headers.append((hdrs.CONTENT_LENGTH, length))
        deadline = _Patience(self._patience)
        body = self._body(request, use, deadline) if has_body else None
        session = connections.session(again=not has_body)
        response = await self._begun(session, request.method, use.service, target, headers, body, deadline)
        try:
            return await _passed_on(request, response, visit, use)
        finally:
            response.close() if not response.content.is_eof() else response.release()

    async def _body(self, request: web.Request, use: Use, deadline: "_Patience") -> AsyncIterator[bytes]:
        if hdrs.EXPECT in request.headers:
            await request.writer.write(_CONTINUE)
            request.writer.output_size = 0
        while True:
            async with asyncio.timeout(_SLOW_BODY_S):
                data = await request.content.readany()
            deadline.begin_again()
            if not data:
                return
            use.count_sent(len(data))
            yield data

    async def _begun(
        self,
        session: aiohttp.ClientSession,
        method: str,
        service: str,
        target: str,
        headers: list[tuple[str, str]],
        body: AsyncIterator[bytes] | None,
        deadline: "_Patience",
    ) -> aiohttp.ClientResponse:
        try:
            async with deadline.limit():
                return await session.request(
                    method,
                    address_in_job(service, target),
                    headers=CIMultiDict(headers),
                    data=body,
                    allow_redirects=False,
                )
        except TimeoutError as error:
            raise RequestRefused(
                504,
                "service.slow",
                f"the service {service} has not begun to answer within {self._patience:g} s",
            ) from error
        except aiohttp.ClientResponseError as error:
            raise _no_http(service) from error
        except (TunnelError, ConnectionError) as error:
            raise refused_stream(error, service) from error
        except aiohttp.ClientError as error:
            raise RequestRefused(
                502,
                "service.lost",
                f"the service {service} has closed the connection, and not answered as a server of HTTP does",
                retry_after=2,
            ) from error

    async def _switched(
        self,
        request: web.Request,
        visit: Visit,
        use: Use,
        connections: JobConnections,
        target: str,
        headers: list[tuple[str, str]],
    ) -> web.StreamResponse:
        """A WebSocket, from the job's agreement on as bytes."""
        wanted = [*headers, ("Connection", "Upgrade"), ("Upgrade", "websocket")]
        session, deadline = connections.session(again=False), _Patience(self._patience)
        response = await self._begun(session, "GET", use.service, target, wanted, None, deadline)
        connection = response.connection
        if response.status != 101 or connection is None or connection.transport is None:
            try:
                return await _passed_on(request, response, visit, use)
            finally:
                response.close()
        stream, protocol = connection.transport, connection.protocol
        assert isinstance(stream, TunnelStream), "the connector has no others"
        assert protocol is not None, "its transport is there"
        stream.pause_reading()
        early = Early()
        protocol.set_parser(early, None)
        answered = {**dict(from_job(response.headers.items(), visit)), "Upgrade": "websocket"}
        try:
            return await self._passage.answer(request, use, stream, answered, early.data)
        finally:
            response.close()


async def _passed_on(
    request: web.Request, response: aiohttp.ClientResponse, visit: Visit, use: Use
) -> web.StreamResponse:
    """The answer of a job, to who has asked."""
    if not 200 <= response.status <= 599:
        raise _no_http(use.service)
    try:
        made = web.StreamResponse(status=response.status, reason=_reason(response.reason))
        for name, value in from_job(response.headers.items(), visit):
            made.headers.add(name, value)
        length = response.headers.get(hdrs.CONTENT_LENGTH)
        if length is not None and hdrs.TRANSFER_ENCODING not in response.headers:
            made.content_length = int(length)
        elif request.version >= aiohttp.HttpVersion11 and response.status not in _NO_BODY:
            if request.method != "HEAD":
                made.enable_chunked_encoding()
        else:
            made.force_close()
        await made.prepare(request)
    except ValueError as error:
        raise _no_http(use.service) from error
    try:
        async for data in response.content.iter_any():
            use.count_received(len(data))
            await made.write(data)
        await made.write_eof()
    except aiohttp.ClientError:
        # The head is sent: that the rest is missing can only be said by ending the connection.
        if request.transport is not None:
            request.transport.abort()
    return made


def _reason(said: str | None) -> str | None:
    return said if said and said.isascii() and said.isprintable() else None


def _no_http(service: str) -> RequestRefused:
    return RequestRefused(
        502, "service.no_http", f"what the service {service} has answered is no answer of HTTP/1.1"
    )
