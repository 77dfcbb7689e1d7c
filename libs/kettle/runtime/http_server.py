"""
The web server of services.

What is no HTTP is refused with one sentence.  aiohttp would repeat and log the line that it does not understand, in which a token
may be.
"""

import logging
from typing import Any, Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

_log: Final = logging.getLogger(__name__)
_SENTENCE: Final = "This is no request of HTTP/1.1, or a line of it is longer than it may be.\n"


class Runner(web.AppRunner):
    """Runs an application; requests are not logged one by one."""

    def __init__(self, app: web.Application, **settings: Any) -> None:
        self._settings: Final[dict[str, Any]] = {"access_log": None, **settings}
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
        refusal = web.Response(status=400, text=_SENTENCE)
        refusal.force_close()
        return refusal
