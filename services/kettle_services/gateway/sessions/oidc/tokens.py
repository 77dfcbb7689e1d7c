"""What an issuer gives for a code, and the credential that is made of it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from kettle_services.gateway.rest.credential import Credential
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.sessions.oidc.flow import LoginFailed

EARLY_S: Final = 30.0
"""So long before its end a token is renewed, because a request takes a while."""
_AGAIN_S: Final = 5.0
"""After so long an issuer is asked again that could not be asked."""


class TokenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a token endpoint."""

    id_token: str = ""
    access_token: str = ""
    refresh_token: str = ""


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of it."""

    token: str
    """The one by which the person is known, here and on the bus."""
    ends: float
    """Seconds since the epoch."""
    refresh_token: str = ""
    subject: str
    session: str = ""
    """What the issuer calls its own session; empty: nothing."""


Renew = Callable[[Given], Awaitable[Given]]
"""Raises LoginFailed: the issuer gives no more tokens; UnreachableError: it cannot be asked now."""


class UnreachableError(Exception):
    """An issuer does not answer."""


class IssuerCredential(Credential):
    """A token of an issuer, which is renewed shortly before it ends, as long as the issuer does so."""

    __slots__ = ("_asked", "_given", "_lock", "_renew", "client", "issuer")

    def __init__(self, given: Given, renew: Renew, *, issuer: str, client: str) -> None:
        super().__init__(token=given.token)
        self._given = given
        self._renew = renew
        self._lock = asyncio.Lock()
        self._asked = 0.0
        self.issuer: Final = issuer
        self.client: Final = client

    @property
    def given(self) -> Given:
        """What the issuer has given last."""
        return self._given

    async def renew(self, now: float) -> None:
        """See `Credential.renew`; while the issuer is away, the token that there is counts until it ends."""
        if not self._is_due(now):
            return
        async with self._lock:
            if not self._is_due(now):
                return
            self._asked = now
            try:
                self._given = await self._renew(self._given)
            except UnreachableError:
                return
            except LoginFailed as error:
                raise RequestRefused(401, "token.expired", f"{error}; sign in again") from error
            self._token = self._given.token

    def _is_due(self, now: float) -> bool:
        due = bool(self._given.refresh_token) and now >= self._given.ends - EARLY_S
        return due and now >= self._asked + _AGAIN_S
