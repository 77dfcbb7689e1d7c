import asyncio

import aiohttp
from aiohttp import web

from kettle.runtime import health
from kettle.runtime.http_server import serving


async def test_readiness_asks_every_check() -> None:
    """`/readyz` is 503 until all checks say yes, `/healthz` is 200 as long as the loop turns."""
    state = {"bus": False}

    async def log() -> bool:
        await asyncio.sleep(0)
        return True

    checks: dict[str, health.Check] = {"bus": lambda: state["bus"], "log": log}
    application = web.Application()
    health.add_health(application, checks)
    async with (
        serving(application, "127.0.0.1", 0) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}") as client,
    ):
        async with client.get("/healthz") as answer:
            assert answer.status == 200
        async with client.get("/readyz") as answer:
            assert (answer.status, await answer.json()) == (503, {"bus": False, "log": True})
        state["bus"] = True
        async with client.get("/readyz") as answer:
            assert (answer.status, await answer.json()) == (200, {"bus": True, "log": True})


async def test_check_that_hangs_or_cannot_connect_says_no() -> None:
    """A check is given a deadline, and a failing connection is an answer."""

    async def hangs() -> bool:
        await asyncio.Event().wait()
        return True

    async def refused() -> bool:
        raise ConnectionRefusedError

    assert {"a": False, "b": False} == await health.readiness({"a": hangs, "b": refused}, deadline=0.01)
