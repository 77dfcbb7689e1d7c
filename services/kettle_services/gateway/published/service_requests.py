"""
Where people reach services of jobs: `/jobs/<id>/<service>/`, and `/v2/jobs/<id>/services/<service>/connect` for bytes.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from kettle.http.requests import bearer_token
from kettle.published.frames import PROTOCOL
from kettle.published.services import NAME
from kettle_services.gateway.domain.published_addresses import Address, BadAddressError, read_address
from kettle_services.gateway.domain.published_headers import Visit
from kettle_services.gateway.published.http_proxy import HttpProxy, require_plain
from kettle_services.gateway.published.service_access import Granted, ServiceAccess
from kettle_services.gateway.published.switching import Passage, asks_for, require_upgrade
from kettle_services.gateway.published.uses import Uses, Via
from kettle_services.gateway.rest.application import RequestLimits
from kettle_services.gateway.rest.jobs import job_name
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.sessions.origins import Origins
from kettle_wire.rest.problem import ProblemCode

STREAM: Final = "kettle-stream"
"""The protocol of a connection that is one of the service: bytes, as they are."""
PATTERN: Final = r"/jobs/{id:\d+\.\d+(?:@[^/]+)?}/{service:[a-z][a-z0-9-]*}/{path:.*}"
CONNECT: Final = "/v2/jobs/{id}/services/{service}/connect"

Browser = Callable[[web.Request, Address], Awaitable[web.StreamResponse]]


class ServiceRequests:
    """Answers them."""

    def __init__(
        self,
        access: ServiceAccess,
        proxy: HttpProxy,
        passage: Passage,
        uses: Uses,
        limits: RequestLimits,
        origins: Origins,
        prefix_of: Callable[[web.Request], str],
    ) -> None:
        """`prefix_of`: the path that a proxy in front has put before ours."""
        self._access: Final = access
        self._proxy: Final = proxy
        self._uses: Final = uses
        self._limits: Final = limits
        self._origins: Final = origins
        self._prefix_of: Final = prefix_of
        self._passage: Final = passage

    def add_to(self, application: web.Application, browser: Browser) -> None:
        """
        Have an application answer them; `browser` answers who comes without a token, because pages of jobs have no place in its origin.
        """

        async def answer(request: web.Request) -> web.StreamResponse:
            address = require_address(request)
            if not bearer_token(request):
                return await browser(request, address)
            granted = await self._access.granted(request, address.job, address.schedd, address.service)
            return await self.answer(request, address, granted, bearer=True)

        application.router.add_route("*", PATTERN, answer, expect_handler=_no_word_yet)
        application.router.add_get(CONNECT, self.connect)

    async def answer(
        self, request: web.Request, address: Address, granted: Granted, *, bearer: bool, origin: str = ""
    ) -> web.StreamResponse:
        """
        What a service answers to somebody who may ask it; `origin`: of the page, where that is not the gateway's own.

        Raises RequestRefused.
        """
        before = "" if origin else self._prefix_of(request)
        require_plain(request)
        reached = self._access.reached(granted.job, address.service)
        if reached.service.kind == "tcp":
            raise RequestRefused(
                400,
                "service.no_http",
                f"the service {address.service} of job {address.job} is no server of HTTP: kettle connect {address.id} {address.service}",
            )
        if not address.path:
            moved = before + address.prefix + "/" + address.query
            return web.Response(status=308, headers={"Location": moved})
        scheme, _, host = (origin or self._origins.own(request)).partition("://")
        visit = Visit(
            person=granted.admitted.person.name,
            address=self._limits.address(request),
            scheme=scheme,
            host=host,
            prefix=before + address.prefix,
            strips=reached.service.kind == "http",
        )
        via: Via = "websocket" if asks_for(request, "websocket") else "http"
        if via == "websocket" and request.method != "GET":
            raise RequestRefused(400, ProblemCode.REQUEST_MALFORMED, "a WebSocket begins with GET")
        target = (address.path if visit.strips else address.prefix + address.path) + address.query
        with self._uses.begun(granted.use(reached, via)) as use:
            return await self._proxy.answer(
                request, visit, use, reached.tunnel.connections, target, bearer=bearer
            )

    async def connect(self, request: web.Request) -> web.StreamResponse:
        """
        A connection to a service, as bytes or, if it asks for a tunnel, in frames; raises RequestRefused.
        """
        in_frames = asks_for(request, PROTOCOL)
        require_upgrade(request, PROTOCOL if in_frames else STREAM)
        job, schedd = job_name(request.match_info["id"])
        name = request.match_info["service"]
        if not NAME.fullmatch(name):
            raise RequestRefused(
                400, ProblemCode.PARAMETER_INVALID, "a service has small letters, digits and hyphens"
            )
        granted = await self._access.granted(request, job, schedd, name)
        reached = self._access.reached(granted.job, name)
        with self._uses.begun(granted.use(reached, "stream")) as use:
            stream = await reached.stream()
            if in_frames:
                return await self._passage.answer_in_frames(request, use, stream)
            return await self._passage.answer(request, use, stream, {"Upgrade": STREAM})


def require_address(request: web.Request) -> Address:
    """What a request names, as it was sent; raises RequestRefused."""
    try:
        return read_address(request.raw_path)
    except BadAddressError as error:
        raise RequestRefused(400, ProblemCode.REQUEST_MALFORMED, str(error)) from error


async def _no_word_yet(request: web.Request) -> None:
    """A person who waits for 100 Continue gets it when the body is wanted, and a refusal before that."""
    if request.version >= (1, 1) and request.headers.get("Expect", "").lower() != "100-continue":
        raise web.HTTPExpectationFailed(text="the only expectation is 100-continue")
