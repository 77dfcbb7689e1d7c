"""
The issuer of tokens of a demonstration: people sign in there by OpenID Connect, as at the IAM of a laboratory.

Who is sent here has signed in already, and is always the same person.
"""

import hashlib
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey

_LIFE_S: Final = 600
_ALGORITHM: Final = "ES256"
_KEY: Final = "demonstration"


class DemonstrationIssuer:
    """Signs the tokens of one person."""

    def __init__(self, port: int, person: str) -> None:
        self.url: Final = f"http://127.0.0.1:{port}"
        self._person: Final = person
        self._key: Final = ECKey.generate_key(
            "P-256", {"kid": _KEY, "use": "sig", "alg": _ALGORITHM}, private=True
        )
        self._asked: Final[dict[str, dict[str, str]]] = {}
        """What was asked for with a code, or goes on by a refresh token."""

    def application(self) -> web.Application:
        """What it answers."""
        made = web.Application()
        made.router.add_get("/.well-known/openid-configuration", self._metadata)
        made.router.add_get("/jwks", self._keys)
        made.router.add_get("/authorize", self._authorize)
        made.router.add_post("/token", self._token)
        return made

    async def _metadata(self, _request: web.Request) -> web.Response:
        return web.json_response(
            {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/jwks",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "id_token_signing_alg_values_supported": [_ALGORITHM],
                "subject_types_supported": ["public"],
            }
        )

    async def _keys(self, _request: web.Request) -> web.Response:
        return web.json_response({"keys": [self._key.as_dict(private=False)]})

    async def _authorize(self, request: web.Request) -> web.Response:
        query = request.query
        if query.get("response_type") != "code" or query.get("code_challenge_method") != "S256":
            raise web.HTTPBadRequest(text="people sign in here by a code, with PKCE (S256)")
        code = secrets.token_urlsafe()
        self._asked[code] = dict(query)
        raise web.HTTPFound(
            f"{query['redirect_uri']}?{urlencode({'code': code, 'state': query.get('state', '')})}"
        )

    async def _token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        given = self._given(form)
        return web.json_response(given or {"error": "invalid_grant"}, status=200 if given else 400)

    def _given(self, form: Mapping[str, str]) -> dict[str, Any] | None:
        """Tokens for a code or a refresh token, each of which is good once."""
        again = form.get("grant_type") == "refresh_token"
        asked = self._asked.pop(form.get("refresh_token" if again else "code", ""), None)
        if asked is None or not (again or self._proven(asked, form)):
            return None
        refresh = secrets.token_urlsafe()
        self._asked[refresh] = asked
        return {
            "access_token": self._signed(asked.get("resource", self.url)),
            "id_token": self._signed(asked.get("client_id", ""), nonce=asked.get("nonce")),
            "refresh_token": refresh,
            "token_type": "Bearer",
            "expires_in": _LIFE_S,
        }

    @staticmethod
    def _proven(asked: Mapping[str, str], form: Mapping[str, str]) -> bool:
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        proof = urlsafe_b64encode(digest).decode().rstrip("=")
        return secrets.compare_digest(asked.get("code_challenge", "").encode(), proof.encode())

    def _signed(self, audience: str, **more: object) -> str:
        now = int(time.time())
        claims: dict[str, Any] = {
            "iss": self.url,
            "sub": self._person,
            "aud": audience,
            "iat": now,
            "nbf": now,
            "exp": now + _LIFE_S,
            "jti": secrets.token_urlsafe(),
            **{name: value for name, value in more.items() if value is not None},
        }
        return str(jwt.encode({"alg": _ALGORITHM, "kid": _KEY}, claims, self._key, algorithms=[_ALGORITHM]))


@asynccontextmanager
async def issuing(port: int, person: str) -> AsyncGenerator[DemonstrationIssuer]:
    """An issuer at a port of the loopback device, as long as the context lasts."""
    issuer = DemonstrationIssuer(port, person)
    runner = web.AppRunner(issuer.application(), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield issuer
    finally:
        await runner.cleanup()
