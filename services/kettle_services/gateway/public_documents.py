"""What a gateway serves over HTTP: the schemas of what is on the bus, and counts."""

import asyncio
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle.runtime.measurements import Measurements
from kettle.runtime.telemetry_settings import LOOPBACK

if TYPE_CHECKING:
    from aiohttp import web


LONGEST_LINE: Final = 128 * 1024
"""Bytes of an address, in which the longest filter may stand with every character escaped, and of a header, in which a token may."""
_PUBLIC: Final = "kettle.gateway."
"""How the names of metrics begin that are about what was published."""


def add_documents(application: "web.Application", ca: str = "") -> None:
    """
    Serve what is for everybody.

    `/schemas` lists the documents, `/schemas/<name>.json` and `/asyncapi.json` are they.
    `/ca.pem` is the certificate of the pool's authority, whose path is `ca`, for machines that know its pin.
    """
    from aiohttp import web  # 0.1 s to import, and most gateways have no port

    async def schemas(_request: web.Request) -> web.Response:
        return web.json_response(sorted(_documents()))

    async def schema(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in _documents():
            raise web.HTTPNotFound(text=f"there is no schema {name}; /schemas lists all\n")
        return web.Response(body=_documents()[name], content_type="application/schema+json")

    async def asyncapi(_request: web.Request) -> web.Response:
        return web.Response(body=_asyncapi(), content_type="application/json")

    async def authority(_request: web.Request) -> web.Response:
        try:
            data = await asyncio.to_thread(Path(ca).read_bytes)
        except OSError as error:
            raise web.HTTPNotFound(
                text=f"this pool's authority cannot be read: {error.strerror}\n"
            ) from error
        return web.Response(body=data, content_type="application/x-pem-file")

    if ca:
        application.router.add_get("/ca.pem", authority)
    application.router.add_get("/schemas", schemas)
    application.router.add_get("/schemas/{name:.+}", schema)
    application.router.add_get("/asyncapi.json", asyncapi)


def add_counts(application: "web.Application", measurements: Measurements, key: str, host: str) -> None:
    """
    Serve the counts of what was published at `/metrics`, to who shows the key; without a key only where nobody but this machine
    reaches the `host`.
    """
    from kettle.runtime.metrics_port import add_metrics

    if key or host in LOOPBACK:
        add_metrics(application, measurements, {}, key=key, shown=lambda name: name.startswith(_PUBLIC))


@cache
def _documents() -> dict[str, bytes]:
    from kettle.schema_generation import documents, text

    return {name: text(document) for name, document in documents().items()}


@cache
def _asyncapi() -> bytes:
    from kettle.schema_generation import asyncapi, text

    return text(asyncapi())
