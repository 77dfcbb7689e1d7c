"""An issuer of tokens that is none of ours: what it publishes, and tokens that it signs."""

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey


class TokenIssuer:
    """Signs by ES256."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._key = ECKey.generate_key("P-256", {"kid": "k1", "use": "sig", "alg": "ES256"}, private=True)
        self.fetched = 0

    def keys(self) -> dict[str, Any]:
        return {"keys": [self._key.as_dict(private=False)]}

    def token(self, subject: str, audience: str, **more: Any) -> str:
        """A plain JWT of ten minutes, unless `more` says something else."""
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.url,
            "sub": subject,
            "aud": audience,
            "iat": now,
            "nbf": now,
            "exp": now + 600,
            "jti": f"{subject}-{time.monotonic_ns()}",
            **more,
        }
        return self.signed({name: value for name, value in claims.items() if value is not None})

    def signed(self, claims: Mapping[str, Any]) -> str:
        return str(jwt.encode({"alg": "ES256", "kid": "k1"}, dict(claims), self._key, algorithms=["ES256"]))


@asynccontextmanager
async def token_issuer() -> AsyncGenerator[TokenIssuer]:
    """One on the loopback interface."""
    made = web.Application()
    runner = web.AppRunner(made, access_log=None)
    found: list[TokenIssuer] = []

    async def metadata(_request: web.Request) -> web.Response:
        return web.json_response({"issuer": found[0].url, "jwks_uri": f"{found[0].url}/jwks"})

    async def keys(_request: web.Request) -> web.Response:
        found[0].fetched += 1
        return web.json_response(found[0].keys())

    made.router.add_get("/.well-known/openid-configuration", metadata)
    made.router.add_get("/jwks", keys)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        found.append(TokenIssuer(f"http://{host}:{port}"))
        yield found[0]
    finally:
        await runner.cleanup()
