"""What the REST interface asks the pool's own iam, over real HTTP."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.integration.iam.issuer import TokenIssuer, signing_key

from kettle.auth.tokens.checking.parsing import ParsedToken, parse
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


async def test_an_iam_is_not_asked_about_what_it_has_not_signed(tmp_path: Path) -> None:
    """
    However many tokens strangers invent in its name, it hears of none of them; before its keys can be had nobody is believed.
    """
    asked: list[str] = []
    published: list[dict[str, Any]] = []

    async def whoami(request: web.Request) -> web.Response:
        asked.append(request.headers["Authorization"])
        return web.json_response({"subject": "ada", "levels": [{"level": "READ"}]})

    async def metadata(request: web.Request) -> web.Response:
        url = str(request.url.origin())
        return web.json_response({"issuer": url, "jwks_uri": f"{url}/jwks.json"})

    async def keys(_request: web.Request) -> web.Response:
        return web.json_response(published[0]) if published else web.Response(status=503)

    application = web.Application()
    application.router.add_get("/v1/whoami", whoami)
    application.router.add_get("/.well-known/openid-configuration", metadata)
    application.router.add_get("/jwks.json", keys)
    async with TestServer(application) as server:
        url = str(server.make_url("")).rstrip("/")
        pool = PoolFile(nats_url="nats://127.0.0.1:1", iam_url=url)
        issuer, stranger = TokenIssuer(url, signing_key()), TokenIssuer(url, signing_key())
        good = issuer.token("ada", url)
        early = await refusal(OwnIam(tmp_path), pool, good, parse(good))
        assert (503, "unavailable") == (early.status, early.code)
        published.append(issuer.keys())
        iam = OwnIam(tmp_path)
        assert "ada" == (await iam.holder(pool, good, parse(good))).subject
        for _ in range(20):
            invented = stranger.token("ada", url)
            refused = await refusal(iam, pool, invented, parse(invented))
            assert (401, "token.signature") == (refused.status, refused.code)
        assert 1 == len(asked)


async def refusal(iam: OwnIam, pool: PoolFile, token: str, own: ParsedToken | None = None) -> RequestRefused:
    with pytest.raises(RequestRefused) as caught:
        await iam.holder(pool, token, own)
    return caught.value
