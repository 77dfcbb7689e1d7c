"""Where browsers sign in and out: `/login` and `/logout`."""

import time
from typing import Final
from urllib.parse import quote

from aiohttp import web

from kettle_services.gateway.rest.application import RequestLimits
from kettle_services.gateway.rest.credential import Credential
from kettle_services.gateway.rest.persons import Persons
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.sessions.browser_sessions import BrowserSessions
from kettle_services.gateway.sessions.leading import leading_on, led
from kettle_services.gateway.sessions.links import Links
from kettle_services.gateway.sessions.login_view import LoginView, ShowLogin, WayIn
from kettle_services.gateway.sessions.oidc.routes import IssuerLogin
from kettle_services.gateway.sessions.targets import own_target
from kettle_wire.rest.browser_sessions import Way
from kettle_wire.rest.problem import Problem, ProblemCode

_OPENED: Final = "none"
"""What a browser says of an address that a person has opened; pages of ours have no login links, and another site may have led there."""


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

    def add_to(self, application: web.Application, show: ShowLogin) -> None:
        """Have an application answer them."""

        async def shown(request: web.Request) -> web.Response:
            try:
                if request.method == "POST":
                    return await self._by_form(request)
                return await self._by_link(request, show)
            except RequestRefused as refusal:
                if not _is_browser(request):
                    raise
                return show(request, self._view("/", why=str(refusal)), refusal.status)

        application.router.add_get("/login", shown)
        application.router.add_post("/login", shown)
        application.router.add_post("/logout", self.sign_out)
        if self._issuers is not None:
            self._issuers.add_to(application)

    async def _by_link(self, request: web.Request, show: ShowLogin) -> web.Response:
        """
        Sign in by a link that a person has opened; else the ways in.

        A link that a page leads to, or that a program looks at beforehand, or that would sign in somebody else than is signed in
        already, is not used: it waits for the button.
        """
        link, target = request.query.get("link", ""), request.query.get("next", "/")
        opened = request.method == "GET" and request.headers.get("Sec-Fetch-Site") == _OPENED
        if (
            link
            and opened
            and "Sec-Purpose" not in request.headers
            and not await self._of_another(request, link)
        ):
            return await self._signed_in(request, self._redeemed(request, link), "link", target)
        return show(request, self._view(target, link=link), 200)

    async def _of_another(self, request: web.Request, link: str) -> bool:
        """Whether a link is of somebody else than the session that this browser has."""
        session = await self._sessions.held(request)
        credential = self._links.shown(link, time.time())
        if session is None or credential is None:
            return False
        person = await self._persons.holding(credential, self._limits.address(request))
        return person.name != session.person

    def instead(self, request: web.Request, problem: Problem, show: ShowLogin) -> web.Response | None:
        """
        What a browser gets that asks for a page without a session; None: it is no browser, or asks for no page.

        Where another site has led here, the cookie may just not have been shown: a page of ours leads here once more.
        """
        if request.method != "GET" or not _is_browser(request):
            return None
        if request.headers.get("Sec-Fetch-Site") in {"cross-site", "same-site"}:
            return leading_on("")
        why = "" if problem.code == ProblemCode.TOKEN_ABSENT else problem.detail
        return show(request, self._view(quote(request.path) + _query(request), why=why), problem.status)

    def _view(self, target: str, *, link: str = "", why: str = "") -> LoginView:
        ways: list[WayIn] = []
        if self._issuers is not None:
            ways = [WayIn(each.name, issuer) for issuer, each in self._issuers.providers.items()]
        return LoginView(ways=ways, link=link, target=target, why=why)

    async def _by_form(self, request: web.Request) -> web.Response:
        """
        Sign in by what a form of this page says; another site sends none, or somebody would be signed in as somebody else.
        """
        self._sessions.origins.require_own_page(request)
        form = await request.post()
        link, token = str(form.get("link", "")), str(form.get("token", "")).strip()
        way: Way = "link" if link else "token"
        credential = self._redeemed(request, link) if link else Credential(token=token)
        return await self._signed_in(request, credential, way, str(form.get("next", "/")))

    def _redeemed(self, request: web.Request, link: str) -> Credential:
        credential = self._links.redeem(link, time.time())
        if credential is None:
            self._limits.failed(self._limits.address(request))
            raise RequestRefused(
                403,
                ProblemCode.LINK_UNKNOWN,
                "this login link was used already, or is older than a minute: make another one with kettle web",
            )
        return credential

    async def _signed_in(
        self, request: web.Request, credential: Credential, way: Way, target: str
    ) -> web.Response:
        address = self._limits.address(request)
        try:
            person = await self._persons.holding(credential, address)
        except RequestRefused:
            self._limits.failed(address)
            raise
        response = led(own_target(target))
        self._sessions.begin(request, response, person, credential, way, address=address)
        return response

    async def sign_out(self, request: web.Request) -> web.Response:
        """
        End the session; another site, for which the browser shows no cookie, cannot have it forget one either.
        """
        self._sessions.origins.require_own_page(request)
        session = await self._sessions.held(request)
        response = led("./login")
        self._sessions.leave(request, response)
        if session is not None and self._issuers is not None:
            await self._issuers.signed_out(session)
        return response


def _is_browser(request: web.Request) -> bool:
    return "text/html" in request.headers.get("Accept", "")


def _query(request: web.Request) -> str:
    return f"?{request.query_string}" if request.query_string else ""
