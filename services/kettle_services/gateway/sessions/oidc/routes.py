"""
The addresses between which a browser goes to sign in at an issuer: `/login/start`, `/login/return`; and where the issuer says that
its own session has ended, `/login/backchannel`.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from aiohttp import web

from kettle.auth.tokens.checking.issuers import Issuer
from kettle.auth.tokens.keys.key_cache import KeyCache
from kettle_services.gateway.rest.application import RequestLimits
from kettle_services.gateway.rest.persons import Persons
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.sessions.browser_sessions import BrowserSessions
from kettle_services.gateway.sessions.cookies import Cookie
from kettle_services.gateway.sessions.leading import NO_STORE, leading_on, led
from kettle_services.gateway.sessions.oidc import logout_tokens
from kettle_services.gateway.sessions.oidc.flow import LoginFailed, Returned, begun, code_of
from kettle_services.gateway.sessions.oidc.provider import Provider
from kettle_services.gateway.sessions.oidc.tokens import IssuerCredential
from kettle_services.gateway.sessions.session_table import Session
from kettle_services.gateway.sessions.targets import own_target
from kettle_wire.rest.problem import ProblemCode

_LIFE_S: Final = 600
"""How long somebody may take to sign in at the issuer."""
_REVOKE_S: Final = 2.0
_PENDING: Final = Cookie("kettle-login", "Lax")
"""The issuer's page leads here, so a strict cookie would not be shown."""

_log: Final = logging.getLogger(__name__)


class IssuerLogin:
    """Answers there."""

    def __init__(
        self,
        providers: Mapping[str, Provider],
        keys: KeyCache,
        sessions: BrowserSessions,
        persons: Persons,
        limits: RequestLimits,
        url: str,
    ) -> None:
        """`providers`: by their issuers; `url`: where browsers find us, as the issuers know it."""
        self.providers: Final = providers
        self._keys = keys
        self._sessions = sessions
        self._persons = persons
        self._limits = limits
        self._url = url

    def add_to(self, application: web.Application) -> None:
        """Have an application answer there."""
        application.router.add_get("/login/start", self.start, allow_head=False)
        application.router.add_get("/login/return", self.back, allow_head=False)
        application.router.add_post("/login/backchannel", self.ended_there)

    async def start(self, request: web.Request) -> web.Response:
        """Send a browser to an issuer; a page of others sends nobody there."""
        provider = self.providers.get(request.query.get("issuer", ""))
        if provider is None or request.headers.get("Sec-Fetch-Site", "none") not in {"none", "same-origin"}:
            return led("../login")
        origin = self._sessions.origins.own(request)
        if not self._url.startswith(f"{origin}/") and self._url != origin:
            return led(
                f"{self._url}/login"
            )  # under another name the browser would not show its cookie at the end
        try:
            place, pending = await provider.begin(request.query.get("next", ""))
        except LoginFailed as error:
            self._limits.failed(self._limits.address(request))
            raise _failed(str(error)) from error
        response = led(place)
        _PENDING.give(response, origin, pending.cookie(), max_age=_LIFE_S)
        return response

    async def back(self, request: web.Request) -> web.Response:
        """
        Begin the session of who has signed in.

        The issuer's page has led here, so the browser would not show a strict cookie at what we lead to at once; a page of ours leads
        on.
        """
        address, origin = self._limits.address(request), self._sessions.origins.own(request)
        returned = Returned.of_query(request.query)
        try:
            pending = begun(returned, _PENDING.shown(request, origin))
            provider = self._provider(pending.issuer)
            code = code_of(returned, await provider.metadata())
            credential = await provider.finish(code, pending)
        except LoginFailed as error:
            self._limits.failed(address)
            raise _failed(str(error)) from error
        person = await self._persons.holding(credential, address)
        response = leading_on(own_target(pending.target, above=".."))
        self._sessions.begin(request, response, person, credential, "issuer", address=address)
        _PENDING.take(response, origin)
        return response

    async def ended_there(self, request: web.Request) -> web.Response:
        """End the sessions of which an issuer says that they have ended there."""
        address = self._limits.address(request)
        token = (await request.post()).get("logout_token", "")
        try:
            logout = await logout_tokens.read(str(token), self._clients(), self._keys)
        except LoginFailed as error:
            self._limits.failed(address)
            raise RequestRefused(400, ProblemCode.LOGIN_FAILED, str(error)) from error
        for session in self._sessions.table:
            held = session.credential
            if not isinstance(held, IssuerCredential) or held.issuer != logout.issuer:
                continue
            one = not logout.session or logout.session == held.given.session
            if one and (not logout.subject or logout.subject == held.given.subject):
                self._sessions.table.end(session)
                _log.info("%s has signed out at the issuer", session.person, extra={"session": session.id})
        return web.Response(headers=NO_STORE)

    def _provider(self, issuer: str) -> Provider:
        found = self.providers.get(issuer)
        if found is None:
            raise LoginFailed("nobody signs in at this issuer any more: begin again")
        return found

    def _clients(self) -> Mapping[str, Issuer]:
        return {
            url: Issuer(url=url, audiences=(each.settings.client,)) for url, each in self.providers.items()
        }

    async def signed_out(self, session: Session) -> None:
        """
        Have the issuer of an ended session renew its tokens no more; one that does not answer is not waited for.
        """
        held = session.credential
        if isinstance(held, IssuerCredential):
            with suppress(TimeoutError):
                async with asyncio.timeout(_REVOKE_S):
                    await self.providers[held.issuer].revoke(held.given)


def _failed(sentence: str) -> RequestRefused:
    return RequestRefused(403, ProblemCode.LOGIN_FAILED, sentence)
