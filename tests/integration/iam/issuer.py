"""An issuer of tokens that is none of ours: what it publishes, and tokens that it signs."""

import hashlib
import socket
import ssl
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey


class TokenIssuer:
    """Signs by ES256."""

    def __init__(self, url: str, key: ECKey) -> None:
        self.url = url
        self.audience = ""
        """For whom the tokens of who signs in are, which that one has said."""
        self._key = key
        self.expires_in = 600
        """How many seconds the tokens of who signs in here live, by what is said to that person."""
        self.refreshed = 0
        """How often somebody has exchanged a refresh token."""
        self._refresh = 0
        self.person = "ada"
        """Who sits at a browser that is sent here, and has signed in already."""
        self.changed: dict[str, Any] = {}
        """Claims of ID tokens that are to be others than they should; None: they are to be missing."""
        self.revoked: list[str] = []
        self.clients: list[str] = []
        """How each client has shown who it is that asked for tokens."""
        self._codes: dict[str, dict[str, str]] = {}
        self._holders: dict[str, dict[str, str]] = {}

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

    def authorized(self, query: Mapping[str, str]) -> str:
        """Where a browser is led back to that was sent here to sign in."""
        assert ("code", "S256") == (query["response_type"], query["code_challenge_method"])
        code = f"code-{len(self._codes)}"
        self._codes[code] = {**query, "sub": self.person}
        back = {"code": code, "state": query["state"], "iss": self.url}
        return f"{query['redirect_uri']}?{urlencode(back)}"

    def exchanged(self, form: Mapping[str, str], client: str) -> dict[str, Any] | None:
        """
        What a client of ours gets for a code, once, if it knows what its challenge was made of; or for a refresh token.
        """
        self.clients.append(client)
        if form["grant_type"] == "refresh_token":
            asked = self._holders.pop(form["refresh_token"], None)
            self.refreshed += 1
        else:
            asked = self._codes.pop(form["code"], None)
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            proof = urlsafe_b64encode(digest).decode().rstrip("=")
            if asked and (asked["code_challenge"], asked["redirect_uri"]) != (proof, form["redirect_uri"]):
                return None
        if asked is None:
            return None
        refresh = f"refresh-of-{asked['sub']}-{self.refreshed}"
        self._holders[refresh] = asked
        ends = int(time.time()) + self.expires_in
        identity = {"nonce": asked.get("nonce"), "exp": ends, "sid": "session-1", **self.changed}
        answer = {
            "id_token": self.token(asked["sub"], asked["client_id"], **identity),
            "access_token": "opaque",
            "refresh_token": refresh,
            "token_type": "Bearer",
        }
        if audience := asked.get("resource"):
            answer["access_token"] = self.token(asked["sub"], audience, exp=ends)
        return answer

    def forget(self) -> None:
        """Give nobody more for a refresh token that there is."""
        self._holders.clear()

    def logout_token(self, client: str, **more: Any) -> str:
        """What is said to a client when a session of its has ended here."""
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.url,
            "aud": client,
            "iat": now,
            "exp": now + 120,
            "jti": f"logout-{time.monotonic_ns()}",
            "events": {"http://schemas.openid.net/event/backchannel-logout": {}},
            **more,
        }
        return self.signed({name: value for name, value in claims.items() if value is not None})

    def signed(self, claims: Mapping[str, Any]) -> str:
        return str(jwt.encode({"alg": "ES256", "kid": "k1"}, dict(claims), self._key, algorithms=["ES256"]))


def signing_key() -> ECKey:
    """One for an issuer."""
    return ECKey.generate_key("P-256", {"kid": "k1", "use": "sig", "alg": "ES256"}, private=True)


@asynccontextmanager
async def token_issuer(
    url: str = "",
    listener: socket.socket | None = None,
    tls: ssl.SSLContext | None = None,
    *,
    key: ECKey | None = None,
) -> AsyncGenerator[TokenIssuer]:
    """One at this address, else on the loopback interface; `key`: of an issuer that was there before."""
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
                "authorization_endpoint": f"{url}/authorize",
                "revocation_endpoint": f"{url}/revoke",
                "authorization_response_iss_parameter_supported": True,
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
        client = request.headers.get("Authorization", "") or form.get("client_id", "")
        if "code_verifier" in form or form.get("refresh_token", "").startswith("refresh-of-"):
            given = found[0].exchanged(form, client)
        else:
            given = found[0].signed_in(form)
        return web.json_response(given or {"error": "invalid_grant"}, status=200 if given else 400)

    async def authorize(request: web.Request) -> web.Response:
        raise web.HTTPFound(found[0].authorized(request.query))

    async def revoke(request: web.Request) -> web.Response:
        found[0].revoked.append(str((await request.post())["token"]))
        return web.Response()

    async def keys(_request: web.Request) -> web.Response:
        return web.json_response(found[0].keys())

    made.router.add_get("/.well-known/openid-configuration", metadata)
    made.router.add_get("/jwks", keys)
    made.router.add_post("/device", device)
    made.router.add_post("/token", token)
    made.router.add_get("/authorize", authorize)
    made.router.add_post("/revoke", revoke)
    await runner.setup()
    try:
        await web.SockSite(
            runner, listener or socket.create_server(("127.0.0.1", 0)), ssl_context=tls
        ).start()
        host, port = runner.addresses[0][:2]
        found.append(TokenIssuer(url or f"http://{host}:{port}", key or signing_key()))
        yield found[0]
    finally:
        await runner.cleanup()
