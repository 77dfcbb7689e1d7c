"""What the REST interface asks the pool's own iam, over real HTTP."""

import asyncio
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from kettle.client.connections.pool_file import PoolFile
from kettle_services.gateway.rest.own_iam import OwnIam
from kettle_services.gateway.rest.refusals import RequestRefused


async def test_an_iam_is_asked_once_at_a_time_and_decides_alone(tmp_path: Path) -> None:
    """
    One answer serves requests that come together; what it refuses is refused with its words; while it is away nobody is believed.
    """
    shown: list[str] = []

    async def whoami(request: web.Request) -> web.Response:
        token = request.headers["Authorization"].removeprefix("Bearer ")
        shown.append(token)
        if token == "busy":
            return web.json_response({"code": "rate_limited", "detail": "too many requests"}, status=429)
        if token != "good":
            return web.json_response(
                {"code": "token.revoked", "detail": "the token was withdrawn"}, status=401
            )
        return web.json_response({"subject": "ada", "levels": [{"level": "READ"}]})

    application = web.Application()
    application.router.add_get("/v1/whoami", whoami)
    iam = OwnIam(tmp_path)
    assert await iam.pool() is None
    async with TestServer(application) as server:
        url = str(server.make_url("")).rstrip("/")
        PoolFile(nats_url="nats://127.0.0.1:1", iam_url=url).save(tmp_path)
        pool = await iam.pool()
        assert pool is not None
        holders = await asyncio.gather(iam.holder(pool, "good"), iam.holder(pool, "good"))
        assert ["ada", "ada"] == [each.subject for each in holders]
        refused = await refusal(iam, pool, "withdrawn")
        assert (401, "token.revoked") == (refused.status, refused.code)
        assert 503 == (await refusal(iam, pool, "busy")).status
        assert ["good", "withdrawn", "busy"] == shown
    away = await refusal(iam, pool, "other")
    assert (503, "unavailable", True) == (away.status, away.code, "cannot be asked" in str(away))


async def refusal(iam: OwnIam, pool: PoolFile, token: str) -> RequestRefused:
    with pytest.raises(RequestRefused) as caught:
        await iam.holder(pool, token)
    return caught.value
