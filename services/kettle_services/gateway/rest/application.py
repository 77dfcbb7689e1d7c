"""
The routes as a web application: what happens around each request, the same for all of them.

A request is admitted, somebody is believed to have sent it, that person has the level of the route, and what it asks is
what the route declares; only then does its handler see it.
"""

import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol

import msgspec
from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle.bus.ports import BusError, RefusedError
from kettle.client import ClientError, CommandRefusedError
from kettle.http.problems import document_of, problem_response
from kettle.http.rate_limits import Buckets, network
from kettle.http.requests import bearer_token, client_address, has_secret_in_address
from kettle.schema_generation.openapi import openapi
from kettle_services.gateway.rest.admission import Admission
from kettle_services.gateway.rest.parameters import LARGEST, body_of, parameters_of, require_unpacked
from kettle_services.gateway.rest.path_patterns import pattern
from kettle_services.gateway.rest.persons import Person, Persons
from kettle_services.gateway.rest.refusals import NotModified, RequestRefused
from kettle_wire.codes import RefusalCode
from kettle_wire.rest.catalogue import ROUTES
from kettle_wire.rest.problem import Problem, ProblemCode
from kettle_wire.rest.route import CE_PREFIX, PREFIX, Route

_TRACE: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_INTERFACES: Final = (f"{PREFIX}/", f"{CE_PREFIX}/")
_STATUSES: Final[Mapping[str, int]] = {
    RefusalCode.NOT_FOUND: 404,
    RefusalCode.NOT_PERMITTED: 403,
    RefusalCode.DENIED: 403,
    RefusalCode.CE_VO_NOT_ALLOWED: 403,
    RefusalCode.CE_VO_FULL: 429,
    RefusalCode.CE_VO_SPOOL_FULL: 429,
    RefusalCode.CE_DRAINING: 503,
    RefusalCode.MALFORMED: 422,
    RefusalCode.UNACCEPTABLE: 422,
    RefusalCode.TOO_LARGE: 413,
    RefusalCode.ELSEWHERE: 409,
    RefusalCode.CHANGED: 409,
    RefusalCode.GONE: 410,
    RefusalCode.NOT_RUNNING: 409,
    RefusalCode.SESSION_EXISTS: 409,
    RefusalCode.SESSION_OVER: 409,
    RefusalCode.BEHIND: 503,
    RefusalCode.UNAVAILABLE: 503,
    RefusalCode.TOO_SLOW: 503,
    RefusalCode.LIMIT: 429,
}
"""Of refused commands; of all others 422."""

VARY: Final = "Authorization, Cookie"
"""Answers are of the person who asks."""

_log: Final = logging.getLogger(__name__)


class Asked(msgspec.Struct, frozen=True):
    """A request that has been admitted."""

    person: Person
    parameters: Any
    """Of the type that the route declares."""
    body: Any
    request: web.Request
    headers: Mapping[str, str] | None = None
    """What is said besides; None: the headers of the request."""
    by_model: bool = False
    """Whether a language model reads the answer."""
    admission: Admission | None = None
    """What an answer without an end looks at; None: this has none."""

    @property
    def reader(self) -> str | None:
        """
        Whose secrets the answer may tell; None: nobody's, because a model passes on what it reads, to who runs it and to whom its
        next answers go.
        """
        return None if self.by_model else self.person.name

    def header(self, name: str) -> str:
        """What a header says; empty if it is not there."""
        said = self.request.headers if self.headers is None else self.headers
        return said.get(name, "").strip()

    def require_changed(self, etag: str) -> None:
        """Raises NotModified: the asker has the state that the tag names."""
        named = [each.strip().removeprefix("W/") for each in self.header("If-None-Match").split(",")]
        if etag in named or "*" in named:
            raise NotModified(etag)


class Answer(msgspec.Struct, frozen=True):
    """What is answered."""

    reply: Any
    """A struct, or for forms that are not ours what JSON can have."""
    etag: str = ""
    """Names the state that it is of; empty: the next answer to the same question may be another."""
    status: int = 200


Handler = Callable[[Asked], Awaitable[Answer | web.StreamResponse]]
Twin = Callable[[web.Request, Problem], web.Response | None]
"""A problem as a page for people; None: who asks is a program."""


class Admitted(msgspec.Struct, frozen=True):
    """Who has sent a request, what the answer tells that person of it, and for how long."""

    person: Person
    headers: Mapping[str, str]
    admission: Admission


class Cookies(Protocol):
    """Tells who sends a request that shows no token."""

    async def believed(self, request: web.Request, address: str) -> Person | None:
        """
        Who; None: nobody who is known. Raises RequestRefused: somebody whose request cannot be believed.
        """
        ...

    async def still(self, request: web.Request, address: str) -> Person | None:
        """
        Who has sent a request that was believed; None: it showed a token. Raises RequestRefused: that would be believed no more.
        """
        ...


class RequestLimits:
    """
    How often somebody may ask: each person, all together, and each address that shows no good credential.
    """

    def __init__(
        self, *, rate: float, burst: float, all_rate: float, all_burst: float, proxies: frozenset[str]
    ) -> None:
        self._burst: Final = int(burst)
        self._rate: Final = rate
        self._persons = Buckets(rate=rate, burst=burst)
        self._all = Buckets(rate=all_rate, burst=all_burst)
        self._strangers = Buckets(rate=rate / 10, burst=burst)
        self._proxies = proxies

    def address(self, request: web.Request) -> str:
        """Who asks."""
        return client_address(request, self._proxies)

    def admit(self, person: Person) -> Mapping[str, str]:
        """Count a request of a person; the headers that tell what is left. Raises RequestRefused."""
        now = time.monotonic()
        if waits := self._persons.take(person.name, now=now):
            raise _too_many(f"{person.name} sends too many requests", waits)
        if waits := self._all.take("", now=now):
            raise _too_many("everybody together sends too many requests", waits)
        left = self._persons.left(person.name, now=now)
        return {
            "RateLimit-Limit": str(self._burst),
            "RateLimit-Remaining": str(left),
            "RateLimit-Reset": str(int((self._burst - left) / self._rate) + 1),
        }

    def failed(self, address: str) -> None:
        """Count a credential that was refused; raises RequestRefused if an address has shown too many."""
        if waits := self._strangers.take(network(address), now=time.monotonic()):
            raise _too_many("too many credentials from here were refused", waits)

    def has_failed_often(self, address: str) -> bool:
        """Whether so many credentials of an address were refused that another one is not looked at."""
        return self._strangers.wait(network(address), now=time.monotonic()) > 0


def _too_many(what: str, waits: float) -> RequestRefused:
    return RequestRefused(
        429, ProblemCode.TOO_MANY, f"{what}; try again in {int(waits) + 1} s", retry_after=waits
    )


class Front:
    """Answers requests."""

    def __init__(
        self,
        persons: Persons,
        limits: RequestLimits,
        cookies: Cookies | None = None,
        twin: Twin | None = None,
        prefix: Callable[[web.Request], str] = lambda _request: "",
    ) -> None:
        """
        `cookies`: what believes requests without a token; None: nothing does. `prefix`: the path under which a proxy in front has all
        of this for who asks.
        """
        self._prefix = prefix
        self._persons = persons
        self._limits = limits
        self._cookies = cookies
        self._twin = twin

    def application(self, handlers: Mapping[Route, Handler]) -> web.Application:
        """All routes; raises LookupError if one has no handler."""
        made = web.Application(client_max_size=LARGEST, middlewares=[self.as_problems])
        described = openapi()

        async def document(request: web.Request) -> web.Response:
            there = {**described, "servers": [{"url": self._prefix(request) or "/"}]}
            return web.Response(body=msgspec.json.encode(there), content_type="application/json")

        made.router.add_get("/openapi.json", document)
        for route in ROUTES:
            made.router.add_route(route.method, pattern(route, ROUTES), self._guarded(route, handlers[route]))
        return made

    def _guarded(
        self, route: Route, handler: Handler
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        level = Level(route.level)

        async def guarded(request: web.Request) -> web.StreamResponse:
            admitted = await self.admit(request, level)
            parameters, body = parameters_of(route, request), await body_of(route, request)
            asked = Asked(admitted.person, parameters, body, request, admission=admitted.admission)
            try:
                answer = await handler(asked)
            except NotModified as known:
                response: web.StreamResponse = web.Response(status=304, headers={"ETag": known.etag})
            else:
                response = _response(answer) if isinstance(answer, Answer) else answer
            if not response.prepared:
                response.headers.update(admitted.headers)
                response.headers["Vary"] = VARY
                response.headers.setdefault("Cache-Control", "private, no-cache")
            return response

        return guarded

    async def admit(self, request: web.Request, level: Level) -> Admitted:
        """Who asks for something that takes a level; raises RequestRefused."""
        if has_secret_in_address(request):
            raise RequestRefused(
                400,
                ProblemCode.TOKEN_IN_QUERY,
                "a token must not be in an address, where it is logged; send it in the header Authorization, and have this one revoked",
            )
        require_unpacked(request)
        person = await self._believed(request)
        headers = self._limits.admit(person)
        return self._admitted(request, person, level, headers)

    async def admit_to_job(self, request: web.Request, level: Level) -> Admitted:
        """
        Who asks a job for something: its address is the job's, and how much one person may ask is limited by connections; raises
        RequestRefused.
        """
        return self._admitted(request, await self._believed(request), level, {})

    def _admitted(
        self, request: web.Request, person: Person, level: Level, headers: Mapping[str, str]
    ) -> Admitted:
        self.require(person, level)

        async def look() -> None:
            await self._require_still(request, person, level)

        return Admitted(person, headers, Admission(look))

    async def _require_still(self, request: web.Request, person: Person, level: Level) -> None:
        """Raises RequestRefused: what was admitted would not be now."""
        address = self._limits.address(request)
        found = await self._cookies.still(request, address) if self._cookies is not None else None
        if found is None:
            found = await self._persons.of(bearer_token(request), address)
        if found.name != person.name:
            raise RequestRefused(
                403, ProblemCode.NOT_PERMITTED, f"by the rules of now this credential is {found.name}'s"
            )
        self.require(found, level)

    def require(self, person: Person, level: Level) -> None:
        """Raises RequestRefused: the person has not the level."""
        self._persons.require(person, level)

    def may(self, person: Person, level: Level) -> bool:
        """Whether the person has the level."""
        return self._persons.may(person, level)

    async def _believed(self, request: web.Request) -> Person:
        address = self._limits.address(request)
        token = bearer_token(request)
        try:
            if self._cookies is not None and not token:
                person = await self._cookies.believed(request, address)
                if person is not None:
                    return person
            return await self._persons.of(token, address)
        except RequestRefused:
            if token:
                self._limits.failed(address)
            raise

    @web.middleware
    async def as_problems(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Every refusal is a problem document, also what the web server itself refuses."""
        try:
            return await handler(request)
        except (RequestRefused, ClientError, BusError, web.HTTPException) as error:
            if (refusal := refusal_of(request, error)) is None:
                raise  # a document beside the interface has its own words
            return self._problem(request, refusal)

    def _problem(self, request: web.Request, refusal: RequestRefused) -> web.Response:
        trace = _trace(request)
        _log.info(
            "refused %s %s: %s",
            request.method,
            request.path,
            refusal,
            extra={"code": refusal.code, "trace": trace},
        )
        document = document_of(
            refusal.status,
            refusal.code,
            str(refusal),
            instance=request.path,
            errors=refusal.errors,
            trace=trace,
        )
        headers = {"Vary": VARY, **refusal.headers}
        if refusal.challenge:
            headers["WWW-Authenticate"] = refusal.challenge
        if self._twin is not None and (page := self._twin(request, document)) is not None:
            page.headers.update(headers)
            return page
        return problem_response(document, headers=headers, retry_after=refusal.retry_after)


def _response(answer: Answer) -> web.Response:
    response = web.Response(
        body=msgspec.json.encode(answer.reply), status=answer.status, content_type="application/json"
    )
    if answer.etag:
        response.headers["ETag"] = answer.etag
    return response


def refusal_of(
    request: web.Request, error: RequestRefused | ClientError | BusError | web.HTTPException
) -> RequestRefused | None:
    """How a request is refused that ended like this; None: the error is an answer already."""
    match error:
        case RequestRefused():
            return error
        case CommandRefusedError():
            return of_command(error.code, str(error))
        case RefusedError():
            return of_command(error.code, str(error), error.retry_after_ms / 1000)
        case BusError() | ClientError():
            return RequestRefused(503, ProblemCode.UNAVAILABLE, str(error), retry_after=5)
        case web.HTTPRequestEntityTooLarge():
            return RequestRefused(
                413, ProblemCode.BODY_TOO_LARGE, f"a body has {LARGEST:,} bytes at most; send it in parts"
            )
        case web.HTTPMethodNotAllowed():
            methods = ", ".join(sorted(error.allowed_methods))
            return RequestRefused(
                405, ProblemCode.METHOD, f"this path takes {methods}", headers={"Allow": methods}
            )
        case web.HTTPNotFound() if request.path.startswith(_INTERFACES) or error.text == "404: Not Found":
            if not request.path.startswith(_INTERFACES):
                return RequestRefused(404, ProblemCode.NOT_FOUND, "there is no page with this address")
            return RequestRefused(
                404, ProblemCode.NOT_FOUND, "there is no such path: /openapi.json lists all of them"
            )
        case _:
            return None


def of_command(code: str, sentence: str, retry_after: float = 0.0) -> RequestRefused:
    """The refusal of a request whose command a service has refused."""
    return RequestRefused(_STATUSES.get(code, 422), code, sentence, retry_after=retry_after)


def _trace(request: web.Request) -> str:
    """The trace that the request belongs to, or a name for it alone."""
    found = _TRACE.fullmatch(request.headers.get("traceparent", ""))
    return found[1] if found else secrets.token_hex(16)
