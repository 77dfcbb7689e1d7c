"""`/v1/token-requests`: tokens of programs of HTCondor, for who has nothing to show yet."""

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec
from aiohttp import web

from kettle.auth.mapping.levels import SCOPE
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.http.requests import Asked, form, words
from kettle_services.iam.record import Record
from kettle_services.iam.token_requests import TokenRequests, Wish
from kettle_wire.commands.token_requests import CollectToken, RequestToken

_NO_ID: Final = "http"
T = TypeVar("T")


class TokenRequestEndpoint:
    """Takes requests, and gives the tokens of those that were approved."""

    def __init__(self, record: Record, requests: TokenRequests) -> None:
        self._record = record
        self._requests = requests

    async def request(self, asked: Asked) -> web.Response:
        """Ask for a token; returns after the commit."""
        parameters = await form(asked.request)
        given = {
            "id": _NO_ID,
            "hash": parameters.get("secret_sha256", ""),
            "client": parameters.get("client", ""),
            "identity": parameters.get("identity") or None,
            "levels": [scope.removeprefix(SCOPE) for scope in words(parameters, "scope")],
            "lifetime": parameters.get("lifetime", "0"),
        }
        wanted = _converted(given, RequestToken)
        made = self._requests.request(
            Wish(
                hash=wanted.hash,
                client=wanted.client,
                identity=wanted.identity or "",
                levels=wanted.levels,
                lifetime=wanted.lifetime,
                address=asked.address,
            )
        )
        await self._record.record(made.changes)
        return web.json_response({"request": made.request.request, "expires": made.request.expires})

    async def collect(self, asked: Asked) -> web.Response:
        """The token of an approved request; it is empty as long as nobody has approved it."""
        parameters = await form(asked.request)
        given = {"request": parameters.get("request", ""), "secret": parameters.get("secret", "")}
        wanted = _converted(given, CollectToken)
        asked.identity = f"request {wanted.request}"
        token = await self._requests.collect(wanted.request, wanted.secret, address=asked.address)
        return web.json_response({"token": token})


def _converted(given: Mapping[str, object], kind: type[T]) -> T:
    """What was given, within the limits that it has over the bus; raises Denied."""
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Denied(Code.REQUEST_MALFORMED, str(error), status=400) from error
