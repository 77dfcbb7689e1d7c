"""
Pages of jobs in browsers: a listener of its own, in no origin of the gateway's pages, and how a browser comes to it from those.
"""

import secrets
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import quote, urlencode

from aiohttp import web

from kettle.bus.ports import BusError
from kettle.http.problems import document_of, problem_response
from kettle_services.gateway.domain.published_addresses import Address, BadAddressError, read_address
from kettle_services.gateway.domain.service_origins import ServiceOrigins
from kettle_services.gateway.published.service_access import LEVEL, Granted, ServiceAccess
from kettle_services.gateway.published.service_requests import ServiceRequests, require_address
from kettle_services.gateway.published.service_sessions import SECRET_S, ServiceSessions, state_of
from kettle_services.gateway.published.waiting_page import waiting_page, waits_with_a_page
from kettle_services.gateway.rest.admission import Admission
from kettle_services.gateway.rest.application import Admitted, RequestLimits, refusal_of
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.sessions.browser_sessions import HELD
from kettle_services.gateway.sessions.leading import led
from kettle_wire.rest.problem import ProblemCode

LOGIN: Final = "/services-login"
"""Of the gateway's own pages: where a browser is led from a job's origin."""
ENTER: Final = "/services-enter"
"""Of a job's origin: where it comes back to."""
_SHOWN: Final = "kettle-services"
_SECRET: Final = "kettle-services-secret"  # noqa: S105 - the name of the cookie
_NEAR: Final = frozenset({"same-origin", "none"})
_ELSEWHERE: Final = "a page of another site cannot use what is here, it can only lead here"


class ServicePages:
    """Shows them."""

    def __init__(
        self,
        access: ServiceAccess,
        requests: ServiceRequests,
        sessions: ServiceSessions,
        origins: ServiceOrigins,
        limits: RequestLimits,
        url: str,
    ) -> None:
        """`url`: where browsers find the gateway's own pages."""
        self._access: Final = access
        self._requests: Final = requests
        self._sessions: Final = sessions
        self._origins: Final = origins
        self._limits: Final = limits
        self._url: Final = url.rstrip("/")
        self._hosts: Final = origins.encrypted and not origins.shared

    def application(self) -> web.Application:
        """What the listener of the jobs' origins serves."""
        made = web.Application(client_max_size=0, middlewares=[self._in_words])
        made.router.add_get(ENTER, self.enter)
        made.router.add_route("*", "/{path:.*}", self.show, expect_handler=_unheard)
        return made

    def add_to(self, application: web.Application) -> None:
        """Have the gateway's own pages lead browsers on."""
        application.router.add_get(LOGIN, self.lead_back)

    async def lead_on(self, request: web.Request, address: Address) -> web.StreamResponse:
        """
        From the gateway's own pages to the origin of the job, for who is signed in and may go there.

        Raises RequestRefused.
        """
        granted = await self._by_session(request, address)
        if request.method != "GET" or request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate":
            raise RequestRefused(
                403,
                ProblemCode.NOT_PERMITTED,
                "pages of jobs have an origin of their own; programs show a token in the header Authorization",
            )
        return led(self._origin(granted) + address.whole)

    async def lead_back(self, request: web.Request) -> web.StreamResponse:
        """To the origin of the job, with a code; raises RequestRefused: nobody is signed in who may."""
        state = request.query.get("state", "")
        try:
            address = read_address(request.query.get("to", ""))
        except BadAddressError as error:
            raise RequestRefused(400, ProblemCode.PARAMETER_INVALID, str(error)) from error
        granted = await self._by_session(request, address)
        session = request.get(HELD)
        if session is None:
            raise RequestRefused(
                403, ProblemCode.NOT_PERMITTED, "only browsers that have signed in here come to pages of jobs"
            )
        code = self._sessions.make_code(session, (granted.job.schedd, granted.job.job), state)
        return led(self._origin(granted) + f"{ENTER}?{urlencode({'code': code, 'to': address.whole})}")

    async def _by_session(self, request: web.Request, address: Address) -> Granted:
        admitted = await self._access.front.admit_to_job(request, LEVEL)
        queued = await self._access.job(address.job, address.schedd)
        return await self._access.granted_to(admitted, queued, address.service)

    def _origin(self, granted: Granted) -> str:
        """Where the job's pages are; raises RequestRefused: not in this browser."""
        if self._origins.shared and granted.because != "owner":
            raise RequestRefused(
                403,
                ProblemCode.NOT_PERMITTED,
                f"pages of {granted.job.owner}'s jobs are not shown to others in a browser here, because all jobs have one origin (services_url of "
                f"[gateway]): kettle connect {granted.job.job}",
            )
        return self._origins.of(granted.job.schedd, granted.job.job)

    async def enter(self, request: web.Request) -> web.StreamResponse:
        """The browser comes back with its code; raises RequestRefused: it is none."""
        try:
            address = read_address(request.query.get("to", ""))
        except BadAddressError as error:
            raise RequestRefused(400, ProblemCode.PARAMETER_INVALID, str(error)) from error
        code = request.query.get("code", "")
        if not self._sessions.knows(code):
            self._limits.failed(self._limits.address(request))  # who guesses codes guesses only so many
        self._require_host(request, address)
        secret = next(iter(_cookies(request, self._name(_SECRET))), "")
        shown, job = self._sessions.redeem(code, secret, address.job, address.schedd)
        self._require_host(request, address, job[0])
        answer = led(address.whole)
        self._give(answer, _SHOWN, shown, f"/jobs/{address.id}/", None)
        self._give(answer, _SECRET, "", ENTER, 0)
        return answer

    async def show(self, request: web.Request) -> web.StreamResponse:
        """
        What a job's service answers to a browser that is signed in for it, or the way to be. For who is not nobody is asked about the job.
        """
        address = require_address(request)
        self._require_host(request, address)
        session = self._sessions.find(_cookies(request, self._name(_SHOWN)), address.job, address.schedd)
        if session is None:
            return self._sign_in(request, address)
        schedd = session.job[0]
        self._require_host(request, address, schedd)
        self._require_own_page(request, self._origins.of(schedd, address.job))
        where = self._limits.address(request)
        person = await self._sessions.holder(session, where)
        self._access.front.require(person, LEVEL)

        async def look() -> None:
            self._access.front.require(await self._sessions.holder(session, where), LEVEL)

        admitted = Admitted(person, {}, Admission(look))
        queued = await self._access.job(address.job, schedd)
        granted = await self._access.granted_to(admitted, queued, address.service)
        origin = self._origin(granted)
        return await self._requests.answer(request, address, granted, bearer=False, origin=origin)

    def _sign_in(self, request: web.Request, address: Address) -> web.StreamResponse:
        """Lead a browser to the gateway's own pages; raises RequestRefused: it asks for no page."""
        if request.method != "GET" or request.headers.get("Sec-Fetch-Mode", "navigate") != "navigate":
            raise RequestRefused(
                401,
                ProblemCode.TOKEN_ABSENT,
                "the browser is not signed in for this job: load the page again",
            )
        secret = secrets.token_urlsafe(32)
        query = urlencode({"to": address.whole, "state": state_of(secret)}, quote_via=quote)
        answer = led(f"{self._url}{LOGIN}?{query}")
        self._give(answer, _SECRET, secret, ENTER, SECRET_S)
        return answer

    def _give(self, answer: web.Response, name: str, value: str, path: str, max_age: int | None) -> None:
        """
        No script sees it.  Shown also where another site leads here, as the gateway's own pages do; `_require_own_page` refuses the rest.
        """
        answer.set_cookie(
            self._name(name),
            value,
            path="/" if self._hosts else path,
            max_age=max_age,
            httponly=True,
            samesite="Lax",
            secure=self._origins.encrypted,
        )

    def _name(self, cookie: str) -> str:
        """
        Of a cookie that no page of another job can set, where each has a host of its own and browsers know of it.
        """
        return f"__Host-{cookie}" if self._hosts else cookie

    def _require_host(self, request: web.Request, address: Address, schedd: str | None = None) -> None:
        """
        Raises RequestRefused: the request came by the name of another host than the job's; `schedd`: None: it is not known yet.
        """
        host = request.headers.get("Host", "").lower()
        if schedd is None and self._origins.may_be(host, address.job):
            return
        if schedd is None or host != self._origins.of(schedd, address.job).partition("://")[2]:
            raise RequestRefused(
                421,
                ProblemCode.REQUEST_MALFORMED,
                f"the pages of job {address.id} are at another host: {self._url}{address.prefix}/ leads there",
            )

    def _require_own_page(self, request: web.Request, own: str) -> None:
        """
        Raises RequestRefused: a page of another origin has sent a request that does more than lead here.
        """
        origin = request.headers.get("Origin")
        if origin is not None and origin.lower() != own:
            raise RequestRefused(403, ProblemCode.CSRF, _ELSEWHERE)
        site = request.headers.get("Sec-Fetch-Site", "none" if origin is None else "same-origin")
        leads = request.method == "GET" and request.headers.get("Sec-Fetch-Mode") == "navigate"
        if site not in _NEAR and not leads:
            raise RequestRefused(403, ProblemCode.CSRF, _ELSEWHERE)

    @web.middleware
    async def _in_words(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Every refusal is a problem document, but for a person who has only to wait."""
        try:
            return await handler(request)
        except (RequestRefused, BusError, web.HTTPException) as error:
            refusal = refusal_of(request, error)
            if refusal is None:
                raise
            if waits_with_a_page(request, refusal):
                return waiting_page(refusal)
            document = document_of(refusal.status, refusal.code, str(refusal), instance=request.path)
            return problem_response(document, headers=refusal.headers, retry_after=refusal.retry_after)


def _cookies(request: web.Request, name: str) -> list[str]:
    """The values of all cookies of a name: pages of other hosts may have set some for this one, too."""
    found: list[str] = []
    for line in request.headers.getall("Cookie", ()):
        for part in line.split(";"):
            key, _, value = part.strip().partition("=")
            if key == name and value:
                found.append(value)
    return found


async def _unheard(_request: web.Request) -> None:
    """A person who waits for 100 Continue gets it when the body is wanted."""
