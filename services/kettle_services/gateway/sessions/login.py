"""Where browsers sign in and out: `/login` and `/logout`."""

import time
from typing import Final

from aiohttp import web

from kettle_services.gateway.rest.application import RequestLimits
from kettle_services.gateway.rest.persons import Persons
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.sessions.browser_sessions import BrowserSessions
from kettle_services.gateway.sessions.links import Links
from kettle_services.gateway.sessions.oidc.routes import IssuerLogin
from kettle_services.gateway.sessions.targets import own_target
from kettle_wire.rest.problem import ProblemCode

_MEANT: Final = frozenset({"none", "same-origin"})
"""What a browser says of an address that a person has opened, or a page of ours: no other site leads there."""


class Login:
    """Answers them."""

    def __init__(
        self,
        sessions: BrowserSessions,
        links: Links,
        persons: Persons,
        limits: RequestLimits,
        issuers: IssuerLogin | None = None,
    ) -> None:
        """`issuers`: where people can sign in besides; None: nowhere."""
        self._issuers: Final = issuers
        self._sessions: Final = sessions
        self._links: Final = links
        self._persons: Final = persons
        self._limits: Final = limits

    def add_to(self, application: web.Application) -> None:
        """Have an application answer them."""
        application.router.add_get("/login", self.page)
        application.router.add_post("/login", self.sign_in)
        application.router.add_post("/logout", self.sign_out)
        if self._issuers is not None:
            self._issuers.add_to(application)

    async def page(self, request: web.Request) -> web.Response:
        """
        Sign in by a link that a person has opened.

        A link that another site leads to, or that a program looks at beforehand, is not used: it waits for the button.
        """
        code = request.query.get("link", "")
        opened = request.method == "GET" and request.headers.get("Sec-Fetch-Site") in _MEANT
        if code and opened and "Sec-Purpose" not in request.headers:
            return await self._by_link(request, code, request.query.get("next", ""))
        raise RequestRefused(401, ProblemCode.TOKEN_ABSENT, "sign in: kettle web makes a link")

    async def sign_in(self, request: web.Request) -> web.Response:
        """Sign in by what a form of this page says."""
        self._sessions.origins.require_own_page(request)
        form = await request.post()
        return await self._by_link(request, str(form.get("link", "")), str(form.get("next", "")))

    async def _by_link(self, request: web.Request, code: str, target: str) -> web.Response:
        address = self._limits.address(request)
        credential = self._links.redeem(code, time.time())
        if credential is None:
            self._limits.failed(address)
            raise RequestRefused(
                403,
                ProblemCode.LINK_UNKNOWN,
                "this login link was used already, or is older than a minute: make another one with kettle web",
            )
        person = await self._persons.holding(credential, address)
        response = _led(own_target(target))
        self._sessions.begin(request, response, person, credential, "link", address=address)
        return response

    async def sign_out(self, request: web.Request) -> web.Response:
        """End the session."""
        session = await self._sessions.held(request)
        response = _led(own_target("/login"))
        self._sessions.leave(request, response)
        if session is not None and self._issuers is not None:
            await self._issuers.signed_out(session)
        return response


def _led(target: str) -> web.Response:
    return web.Response(
        status=303,
        headers={"Location": target, "Cache-Control": "no-store", "Referrer-Policy": "no-referrer"},
    )
