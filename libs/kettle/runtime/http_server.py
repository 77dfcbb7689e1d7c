"""
The web server of services.

What is no HTTP is refused with one sentence.  aiohttp would repeat and log the line that it does not understand, in which a token
may be.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from kettle.auth.private_socket import listening
from kettle.http.idle_connections import KEPT_S, IdleConnections
from kettle.http.problems import document_of, problem_response
from kettle.runtime.settings_problems import SettingsError
from kettle_wire.rest.problem import ProblemCode

_log: Final = logging.getLogger(__name__)
_SENTENCE: Final = "this is no request of HTTP/1.1, or a line of it is longer than it may be"


@asynccontextmanager
async def serving(
    application: web.Application,
    host: str,
    port: int,
    encryption: ssl.SSLContext | None = None,
    *,
    private: Path | None = None,
    **limits: Any,
) -> AsyncGenerator[int]:
    """
    Answer on `port` (0: one that is free) of `host` while the context lasts; yields the port.  `private`: a socket of this name at
    which the own account asks besides, without encryption.  `limits` are those of aiohttp's web server.

    Bodies stay as they came, also packed ones: who passes them on says of them what was said to him.

    Raises:
        SettingsError: the port is taken.
    """
    idle = IdleConnections(time.monotonic)

    @web.middleware
    async def counted(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        idle.asked(request.protocol)
        return await handler(request)

    application.middlewares.insert(0, counted)
    runner = _Runner(application, keepalive_timeout=KEPT_S, **limits)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port, ssl_context=encryption).start()
        except OSError as error:
            raise SettingsError(f"http_port: {host}:{port} cannot be had: {error.strerror}") from error
        if private is not None:
            await web.SockSite(runner, listening(private)).start()
        server = runner.server
        assert server is not None, "it was set up"
        watching = asyncio.create_task(idle.watch(lambda: server.connections), name="idle connections")
        try:
            yield int(runner.addresses[0][1])
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
    finally:
        await runner.cleanup()


class _Runner(web.AppRunner):
    """Runs an application; requests are not logged one by one."""

    def __init__(self, app: web.Application, **settings: Any) -> None:
        self._settings: Final[dict[str, Any]] = {
            "access_log": None,
            "auto_decompress": False,
            **settings,
        }
        super().__init__(app, **self._settings)

    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return _Server(made.request_handler, request_factory=made.request_factory, **self._settings)


class _Server(web.Server):
    def __call__(self) -> web.RequestHandler:
        return _Handler(self, loop=self._loop, **self._kwargs)


class _Handler(web.RequestHandler):
    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        _log.info("%s sent what is no request: %s", request.remote, type(exc).__name__)
        refusal = problem_response(document_of(400, ProblemCode.REQUEST_MALFORMED, _SENTENCE))
        refusal.force_close()
        return refusal
