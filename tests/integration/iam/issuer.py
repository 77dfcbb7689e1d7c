"""An issuer of tokens that is none of ours: what it publishes, and tokens that it signs."""

import socket
import ssl
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
        self.audience = ""
        """For whom the tokens of who signs in are, which that one has said."""
        self._key = ECKey.generate_key("P-256", {"kid": "k1", "use": "sig", "alg": "ES256"}, private=True)
        self.expires_in = 600
        """How many seconds the tokens of who signs in here live, by what is said to that person."""
        self.refreshed = 0
        """How often somebody has exchanged a refresh token."""
        self._refresh = 0

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

    def signed_in(self, form: Mapping[str, str]) -> dict[str, Any] | None:
        """What ada gets for a code, or once for each refresh token; None: nothing."""
        if form.get("grant_type") == "refresh_token":
            if form.get("refresh_token") != f"refresh-{self._refresh}":
                return None
            self.refreshed += 1
        self._refresh += 1
        now = int(time.time())
        return {
            "access_token": self.token("ada", self.audience, exp=now + 600),
            "refresh_token": f"refresh-{self._refresh}",
            "token_type": "Bearer",
            "expires_in": self.expires_in,
        }

    def signed(self, claims: Mapping[str, Any]) -> str:
        return str(jwt.encode({"alg": "ES256", "kid": "k1"}, dict(claims), self._key, algorithms=["ES256"]))


@asynccontextmanager
async def token_issuer(
    url: str = "", listener: socket.socket | None = None, tls: ssl.SSLContext | None = None
) -> AsyncGenerator[TokenIssuer]:
    """One at this address, else on the loopback interface."""
    made = web.Application()
    runner = web.AppRunner(made, access_log=None)
    found: list[TokenIssuer] = []

    async def metadata(_request: web.Request) -> web.Response:
        url = found[0].url
        return web.json_response(
            {
                "issuer": url,
                "jwks_uri": f"{url}/jwks",
                "device_authorization_endpoint": f"{url}/device",
                "token_endpoint": f"{url}/token",
            }
        )

    async def device(request: web.Request) -> web.Response:
        found[0].audience = str((await request.post()).get("audience", ""))
        url = f"{found[0].url}/confirm"
        return web.json_response(
            {
                "device_code": "code",
                "user_code": "ABCD",
                "verification_uri": url,
                "expires_in": 60,
                "interval": 0.05,
            }
        )

    async def token(request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        given = found[0].signed_in(form)
        return web.json_response(given or {"error": "invalid_grant"}, status=200 if given else 400)

    async def keys(_request: web.Request) -> web.Response:
        return web.json_response(found[0].keys())

    made.router.add_get("/.well-known/openid-configuration", metadata)
    made.router.add_get("/jwks", keys)
    made.router.add_post("/device", device)
    made.router.add_post("/token", token)
    await runner.setup()
    try:
        await web.SockSite(
            runner, listener or socket.create_server(("127.0.0.1", 0)), ssl_context=tls
        ).start()
        host, port = runner.addresses[0][:2]
        found.append(TokenIssuer(url or f"http://{host}:{port}"))
        yield found[0]
    finally:
        await runner.cleanup()
