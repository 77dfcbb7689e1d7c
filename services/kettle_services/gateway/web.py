"""What a gateway serves over HTTP: the schemas of what is on the bus, and counts."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache

from kettle_services.gateway.metrics import Metrics


@asynccontextmanager
async def pages(host: str, port: int, tally: Metrics) -> AsyncGenerator[int]:
    """
    Answer on `port` (0: one that is free) of `host` while the context lasts; yields the port.

    `/schemas` lists the documents, `/schemas/<name>.json` and `/asyncapi.json` are they, `/metrics` is for Prometheus.
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

    async def metrics(_request: web.Request) -> web.Response:
        return web.Response(text=tally.prometheus(), content_type="text/plain", charset="utf-8")

    application = web.Application()
    application.router.add_get("/schemas", schemas)
    application.router.add_get("/schemas/{name:.+}", schema)
    application.router.add_get("/asyncapi.json", asyncapi)
    application.router.add_get("/metrics", metrics)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


@cache
def _documents() -> dict[str, bytes]:
    from kettle.schema_generation import documents, text

    return {name: text(document) for name, document in documents().items()}


@cache
def _asyncapi() -> bytes:
    from kettle.schema_generation import asyncapi, text

    return text(asyncapi())
