"""Counts requests over HTTP and how long they take, by route and status."""

import time
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from kettle.runtime import Telemetry
from kettle_wire.telemetry.gateway_metrics import HTTP_DURATION

_NOT_FOUND: Final = "none"
"""The route of an address that there is not: what people make up must not become a series."""
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def measured(telemetry: Telemetry) -> Middleware:
    """The middleware around all others."""
    durations = telemetry.histogram(HTTP_DURATION)

    @web.middleware
    async def measure(request: web.Request, handler: Handler) -> web.StreamResponse:
        began, status = time.monotonic(), 500
        try:
            response = await handler(request)
            status = response.status
            return response
        except web.HTTPException as answer:
            status = answer.status
            raise
        finally:
            resource = request.match_info.route.resource
            route = resource.canonical if resource is not None else _NOT_FOUND
            method = request.method if request.method in _METHODS else "_OTHER"
            durations.record(time.monotonic() - began, method, route, str(status))

    return measure
