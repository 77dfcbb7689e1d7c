"""
Access tokens for refresh tokens, at the services that the settings name. The client's secret goes nowhere else.
"""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import aiohttp
import msgspec

from kettle_services.iam.settings import OAuthService
from kettle_wire.job_tokens import NeededToken

_TIMEOUT_S: Final = 10.0
_LONGEST: Final = 64 * 1024
"""Bytes of an answer."""
_USUAL_S: Final = 600.0
"""The life of an access token of which the service does not say it."""


class ExchangeError(Exception):
    """There is no access token; the sentence has nothing of any token. `passing`: another try may help."""

    def __init__(self, sentence: str, *, passing: bool) -> None:
        super().__init__(sentence)
        self.passing: Final = passing


class AccessToken(msgspec.Struct, frozen=True):
    """What a service has given."""

    text: str
    ends: float
    """On `time.monotonic`."""
    refresh: str
    """The refresh token for the next time; empty: the same."""

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"AccessToken({self.ends})"


class TokenExchange:
    """Asks the services."""

    def __init__(self, services: Mapping[str, OAuthService]) -> None:
        self._services = services

    async def access_token(self, needed: NeededToken, refresh: str) -> AccessToken:
        """Exchange a refresh token.  Raises ExchangeError."""
        service, name = self._services.get(needed.service), needed.service
        if service is None:
            raise ExchangeError(f"[iam] oauth_services does not name {name} any more", passing=False)
        form = {"grant_type": "refresh_token", "refresh_token": refresh}
        if needed.scopes:
            form["scope"] = " ".join(needed.scopes)
        if needed.audiences:
            form["audience"] = " ".join(needed.audiences)
        status, found = await self._posted(name, service, form)
        text = found.get("access_token")
        if status != 200 or not isinstance(text, str) or not text:
            code = found.get("error")
            word = (
                code
                if isinstance(code, str) and code.isascii() and code.isidentifier()
                else f"status {status}"
            )
            again = f": store a new credential: condor_store_cred add-oauth -s {name} -i FILE"
            passing = status >= 500 or status == 429
            raise ExchangeError(
                f"{name} gives no access token ({word}){'' if passing else again}", passing=passing
            )
        life, renewed = found.get("expires_in"), found.get("refresh_token")
        return AccessToken(
            text=text,
            ends=time.monotonic() + (float(life) if isinstance(life, int | float) else _USUAL_S),
            refresh=renewed if isinstance(renewed, str) and renewed != refresh else "",
        )

    async def _posted(
        self, name: str, service: OAuthService, form: Mapping[str, str]
    ) -> tuple[int, Mapping[str, Any]]:
        try:
            headers = await asyncio.to_thread(_authorization, service)
            limit = aiohttp.ClientTimeout(total=_TIMEOUT_S)
            async with (
                aiohttp.ClientSession(timeout=limit, headers=headers) as http,
                http.post(
                    service.token_url, data={**form, "client_id": service.client_id}, allow_redirects=False
                ) as answer,
            ):
                body = await answer.content.read(_LONGEST)
                return answer.status, msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.MsgspecError:
            raise ExchangeError(f"{name} answers with no JSON", passing=True) from None
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ExchangeError(f"{name} does not answer ({type(error).__name__})", passing=True) from None
        except OSError as error:
            raise ExchangeError(
                f"the client secret of {name} cannot be read: {error.strerror}", passing=True
            ) from None


def _authorization(service: OAuthService) -> Mapping[str, str]:
    if not service.client_secret_file:
        return {}
    secret = Path(service.client_secret_file).read_text(encoding="utf-8").strip()
    # Both are form-encoded first (RFC 6749 section 2.3.1).
    return {
        "Authorization": aiohttp.encode_basic_auth(quote(service.client_id, safe=""), quote(secret, safe=""))
    }
