"""The routes, and what happens around each request."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
from aiohttp import web

from kettle_services.iam.admissions import Admissions, Pool
from kettle_services.iam.alarms import DenialRecord
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.grants import Grants
from kettle_services.iam.http import discovery
from kettle_services.iam.http.persons import Persons
from kettle_services.iam.http.problems import problem
from kettle_services.iam.http.requests import LARGEST, Asked, Limits, require_no_secret_in_address
from kettle_services.iam.http.token_endpoint import TokenEndpoint
from kettle_services.iam.http.token_requests import TokenRequestEndpoint
from kettle_services.iam.people.identification import Identification
from kettle_services.iam.ports import TokenKeys
from kettle_services.iam.record import Record
from kettle_services.iam.settings import IamSettings
from kettle_services.iam.token_requests import TokenRequests
from kettle_wire.iam_http import COLLECT, TOKEN_REQUESTS
from kettle_wire.way_in import WAY_IN

Answer = Callable[[Asked], Awaitable[web.Response]]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_GRANTS: Final = ("join.", "token.", "client.")
_NO_GUESS: Final = frozenset({409, 503})
"""What is refused for another reason than what was shown."""
_ISSUES: Final = "/v1/token"


class Surface(msgspec.Struct, frozen=True, kw_only=True):
    """What answers."""

    record: Record
    grants: Grants
    requests: TokenRequests
    admissions: Admissions
    denials: DenialRecord
    keys: TokenKeys
    pool: Pool
    settings: IamSettings
    authority: str = ""
    """The certificate, in PEM, that join tokens name; empty: they name iam's own key."""
    identification: Identification
    sentinel: str = ""
    """What people show to the bus together with a token; empty: it lets nobody in by a token."""


def application(surface: Surface) -> web.Application:
    """All that is served."""
    limits = Limits(surface.settings)
    made = web.Application(client_max_size=LARGEST, middlewares=[_explained])
    endpoint = TokenEndpoint(surface.record, surface.grants, surface.admissions)
    persons = Persons(surface.record, surface.identification)
    asking = TokenRequestEndpoint(surface.record, surface.requests)
    described = discovery.metadata(surface.pool.url)
    way = discovery.way_in(
        surface.pool, surface.sentinel, surface.settings.issuers, surface.identification.trust_domain
    )

    async def metadata(_asked: Asked) -> web.Response:
        return web.json_response(described)

    async def pool(_asked: Asked) -> web.Response:
        return web.Response(body=msgspec.json.encode(way), content_type="application/json")

    async def keys(_asked: Asked) -> web.Response:
        return web.Response(
            body=surface.keys.published(),
            content_type="application/json",
            headers={"Cache-Control": "public, max-age=3600"},
        )

    async def authority(_asked: Asked) -> web.Response:
        if not surface.authority:
            raise Denied(
                Code.REQUEST_UNKNOWN,
                "join tokens of this pool name no authority but iam's own key",
                status=404,
            )
        return web.Response(text=surface.authority, content_type="application/x-pem-file")

    for method, path, answer in (
        ("GET", "/.well-known/openid-configuration", metadata),
        ("GET", "/.well-known/oauth-authorization-server", metadata),
        ("GET", WAY_IN, pool),
        ("GET", "/jwks.json", keys),
        ("GET", "/ca.pem", authority),
        ("POST", _ISSUES, endpoint.token),
        ("POST", "/v1/revoke", endpoint.revoke),
        ("POST", "/v1/introspect", endpoint.introspect),
        ("POST", TOKEN_REQUESTS, asking.request),
        ("POST", COLLECT, asking.collect),
        ("GET", "/v1/whoami", persons.whoami),
        ("GET", "/v1/explain", persons.explain),
    ):
        made.router.add_route(method, path, _guarded(answer, surface.denials, limits))
    return made


@web.middleware
async def _explained(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Have what the web server itself refuses look like all other refusals."""
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge:
        large = Denied(Code.REQUEST_TOO_LARGE, f"a request has {LARGEST} bytes at most", status=413)
        return problem(large, oauth=request.path == _ISSUES)
    except web.HTTPException as error:
        # The path is not repeated: somebody may have put a secret there.
        return problem(
            Denied(
                Code.REQUEST_UNKNOWN,
                f"{error.reason}: see /.well-known/openid-configuration",
                status=error.status,
            )
        )


def _guarded(answer: Answer, denials: DenialRecord, limits: Limits) -> Handler:
    async def guarded(request: web.Request) -> web.StreamResponse:
        asked = Asked(request, limits.address(request))
        oauth = request.path == _ISSUES
        try:
            limits.admit(asked.address)
            require_no_secret_in_address(request)
            found = await answer(asked)
        except Denied as refusal:
            return problem(await refused(asked, refusal), oauth=oauth)
        found.headers.setdefault("Cache-Control", "no-store")
        return found

    async def refused(asked: Asked, refusal: Denied) -> Denied:
        """What to answer; a wrong credential is counted, and recorded unless that is done already."""
        path = asked.request.path
        guessed = path == _ISSUES and refusal.code.startswith(_GRANTS) and refusal.status not in _NO_GUESS
        wrong = refusal.status == 401 or guessed or (path == COLLECT and refusal.status == 404)
        if not wrong or refusal.code == Code.TOKEN_ABSENT:
            return refusal
        if (instead := limits.failed(asked.address, asked.identity)) is not None:
            return instead
        if not refusal.code.startswith("join."):
            await denials.denied(asked.identity, path, refusal, asked.address)
        return refusal

    return guarded
