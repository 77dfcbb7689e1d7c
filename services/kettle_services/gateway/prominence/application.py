"""
PROMINENCE's routes as a web application: who asks is found out as for our own interface, and refusals have PROMINENCE's form.

Its client takes 404 for a wrong address and understands no other status than those of that interface, so what is not there, or does
not go, is 400 with one sentence.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec
from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle.bus.ports import BusError
from kettle.client import ClientError
from kettle.prominence.faults import DocumentRefused
from kettle.prominence.yaml_documents import YAML_TYPES, YamlMissingError, json_of
from kettle_services.gateway.rest.application import VARY, Admitted, Front, refusal_of
from kettle_services.gateway.rest.parameters import LARGEST
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused

PREFIX: Final = "/prominence/v1"
_KEPT: Final = frozenset({401, 403, 416, 429, 503})
"""Statuses of refusals that mean there what they mean here."""

_LARGEST: Final = 1 << 53
"""Of a number in a query: beyond it not every whole number is one where it is reckoned with."""

_log: Final = logging.getLogger(__name__)


class Asked(msgspec.Struct, frozen=True):
    """A request that has been admitted."""

    request: web.Request
    admitted: Admitted

    @property
    def person(self) -> Person:
        """Who asks."""
        return self.admitted.person

    def has(self, name: str) -> bool:
        """Whether a parameter is there, whatever it says."""
        return name in self.request.query

    def text(self, name: str) -> str:
        """What a parameter says; empty: nothing."""
        return self.request.query.get(name, "").strip()

    def number(self, name: str, default: int = 0) -> int:
        """What a parameter says, as a whole number; raises RequestRefused."""
        text = self.text(name)
        try:
            number = int(text) if text else default
        except ValueError as error:
            raise refused(f"the parameter {name} has to be a whole number, and is '{text}'") from error
        if abs(number) > _LARGEST:
            raise refused(f"the parameter {name} must not be beyond {_LARGEST:,} on either side of 0")
        return number

    def path_number(self) -> int:
        """The number in the path, whose pattern has made sure that it is one."""
        return int(self.request.match_info["id"])

    async def body(self) -> bytes:
        """All of it, as far as a body may be."""
        return await self.request.read()

    async def described(self) -> bytes:
        """The document of a job or a workflow, as JSON, whatever it came as; raises RequestRefused."""
        body = await self.body()
        if self.request.content_type not in YAML_TYPES:
            return body
        try:
            return await asyncio.to_thread(json_of, body)
        except (DocumentRefused, YamlMissingError) as error:
            raise refused(str(error)) from error

    async def document(self, kind: Any) -> Any:
        """The body as a value of this type; raises RequestRefused."""
        try:
            return msgspec.json.decode(await self.body(), type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise refused(f"the body is not what is expected here: {error}") from error


Handler = Callable[[Asked], Awaitable[web.StreamResponse]]
Open = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Route(msgspec.Struct, frozen=True):
    """What is asked with a method at a path below the prefix, by whom, and what answers."""

    method: str
    path: str
    level: Level
    handler: Handler


class OpenRoute(msgspec.Struct, frozen=True):
    """What needs no token: it tells nothing, or the address itself says what it permits."""

    method: str
    path: str
    handler: Open


def token_of(request: web.Request) -> str:
    """The token that a request shows; empty: none."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def refused(sentence: str, status: int = 400) -> RequestRefused:
    """A refusal, for which PROMINENCE has no codes."""
    return RequestRefused(status, "", sentence)


def reply(value: Any, status: int = 200) -> web.Response:
    """An answer in JSON."""
    return web.Response(body=msgspec.json.encode(value), status=status, content_type="application/json")


def plain(data: bytes) -> web.Response:
    """An answer as it is, which no browser takes for a page."""
    return web.Response(body=data, headers={"Content-Type": "text/plain; charset=utf-8"})


def add_routes(
    application: web.Application, front: Front, routes: Sequence[Route], open_routes: Sequence[OpenRoute]
) -> None:
    """Serve them below the prefix; any other path there is none of PROMINENCE's."""
    for route in routes:
        application.router.add_route(
            route.method, PREFIX + route.path, as_errors(_admitted(front, route.level, route.handler))
        )
    for each in open_routes:
        application.router.add_route(each.method, PREFIX + each.path, as_errors(each.handler))
    application.router.add_route("*", PREFIX + "/{rest:.*}", _nothing)


async def _nothing(request: web.Request) -> web.StreamResponse:
    return reply({"error": f"there is no {request.method} of {request.path}"}, 404)


def _admitted(front: Front, level: Level, handler: Handler) -> Open:
    async def answer(request: web.Request) -> web.StreamResponse:
        admitted = await front.admit(request, level)
        response = await handler(Asked(request, admitted))
        if not response.prepared:
            response.headers.update(admitted.headers)
            response.headers["Vary"] = VARY
            response.headers.setdefault("Cache-Control", "private, no-cache")
        return response

    return answer


def as_errors(handler: Open) -> Open:
    """Every refusal as PROMINENCE says it."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except web.HTTPRequestEntityTooLarge:
            return _error(request, refused(f"the body has more than {LARGEST:,} bytes"))
        except (RequestRefused, ClientError, BusError, web.HTTPException) as error:
            if (refusal := refusal_of(request, error)) is None:
                raise
            return _error(request, refusal)

    return answer


def _error(request: web.Request, refusal: RequestRefused) -> web.Response:
    status = refusal.status if refusal.status in _KEPT else 400
    _log.info("refused %s %s: %s", request.method, request.path, refusal)
    response = reply({"error": str(refusal)}, status)
    response.headers.update({"Vary": VARY, **refusal.headers})
    if refusal.challenge:
        response.headers["WWW-Authenticate"] = refusal.challenge
    if refusal.retry_after:
        response.headers["Retry-After"] = str(int(refusal.retry_after) + 1)
    return response
