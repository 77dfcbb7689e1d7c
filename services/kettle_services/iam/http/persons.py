"""
`/v1/whoami` and `/v1/explain`: who somebody is to this pool, and whether he may do something, with the rule
that decides.
"""

import msgspec
from aiohttp import web

from kettle_services.iam.commands.questions import endpoint_of
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.domain.rights import Known, explained, whoami
from kettle_services.iam.http.requests import Asked, bearer
from kettle_services.iam.people.identification import Identification
from kettle_services.iam.record import Record


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
        return _json(explained(known, action, endpoint_of(action), ""))

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


def _json(answer: msgspec.Struct) -> web.Response:
    return web.Response(body=msgspec.json.encode(answer), content_type="application/json")
