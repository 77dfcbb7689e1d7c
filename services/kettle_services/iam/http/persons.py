"""
`/v1/whoami` and `/v1/explain`: who somebody is to this pool, and whether he may do something, with the rule
that decides.
"""

from typing import Any

import msgspec
from aiohttp import web

from kettle.terminal.nearest_names import did_you_mean
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.rights import Known, explained, whoami
from kettle_services.iam.http.requests import Asked, bearer
from kettle_services.iam.people.identification import Identification
from kettle_services.iam.record import Record
from kettle_wire.commands.catalogue import ENDPOINTS
from kettle_wire.endpoint import Endpoint


class Persons:
    """Answers those who show a token that would let them onto the bus."""

    def __init__(self, record: Record, identification: Identification) -> None:
        self._record = record
        self._identification = identification

    async def whoami(self, asked: Asked) -> web.Response:
        """Who the token is of."""
        return _json(whoami(await self._known(asked), ""))

    async def explain(self, asked: Asked) -> web.Response:
        """Whether its holder may send the command `action`, such as `schedd.submit`."""
        known = await self._known(asked)
        action = asked.request.query.get("action", "")
        if not action:
            raise Denied(Code.REQUEST_MALFORMED, "say which: /v1/explain?action=schedd.submit", status=400)
        return _json(explained(known, action, _endpoint_of(action)))

    async def _known(self, asked: Asked) -> Known:
        person = (await self._identification.identify(bearer(asked.request))).person
        await self._record.shard.committed()
        return Known(
            subject=person.owner,
            method="TOKEN",
            issuer=person.issuer,
            rights=person.rights,
            scopes=person.scopes,
            audiences=person.audiences,
            expires=person.expires,
            token=person.token,
            client=person.client,
        )


def _endpoint_of(action: str) -> Endpoint[Any, Any]:
    """The command that is called `role.verb`; raises Denied with the nearest name if there is none."""
    known = {f"{each.role}.{each.verb}": each for each in ENDPOINTS}
    if action not in known:
        raise Denied(
            Code.ACTION_UNKNOWN, f"there is no command {action}{did_you_mean(action, known)}", status=404
        )
    return known[action]


def _json(answer: msgspec.Struct) -> web.Response:
    return web.Response(body=msgspec.json.encode(answer), content_type="application/json")
