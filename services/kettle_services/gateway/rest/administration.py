"""What administrators ask and do: iam is asked in their own names, so it decides itself whether they may."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from kettle.client.iam import IdentityClient
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.own_workers import workers_shown
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.commands.iam import QueryAudit
from kettle_wire.rest.administration import (
    Audit,
    Ban,
    BanChange,
    Bans,
    Deed,
    Ended,
    EndLogin,
    ListAudit,
    Logins,
    Session,
)
from kettle_wire.rest.problem import ProblemCode


class AdministrationQuestions:
    """Answers them."""

    def __init__(self, people: PersonConnections) -> None:
        self._people = people

    async def audit(self, asked: Asked) -> Answer:
        """The record, the newest first."""
        parameters: ListAudit = asked.parameters
        wanted = QueryAudit(
            who=parameters.who,
            what=parameters.what,
            since=parameters.since.timestamp() if parameters.since else 0.0,
            until=parameters.until.timestamp() if parameters.until else 0.0,
            limit=parameters.limit,
        )
        async with self._iam(asked) as iam:
            found = await iam.audit(wanted)
        deeds = [
            Deed(
                at=_moment(each.at),
                what=each.what,
                who=each.who,
                whom=each.whom,
                sentence=each.sentence,
                address=each.address,
                alarm=each.alarm,
                frame=each.frame,
            )
            for each in reversed(found.acts)
        ]
        return Answer(Audit(deeds=deeds, more=not found.complete))

    async def bans(self, asked: Asked) -> Answer:
        """Who is banned."""
        async with self._iam(asked) as iam:
            return Answer(await _bans(iam))

    async def change_bans(self, asked: Asked) -> Answer:
        """Ban somebody, or let somebody in again; who is banned then."""
        change: BanChange = asked.body
        async with self._iam(asked) as iam:
            if change.action == "ban":
                await iam.ban(change.whom, reason=change.reason, lifetime=change.lifetime)
            else:
                await iam.unban(change.whom)
            return Answer(await _bans(iam))

    async def sessions(self, asked: Asked) -> Answer:
        """Who has a refresh token."""
        async with self._iam(asked) as iam:
            found = await iam.sessions(everybody=True)
        sessions = [
            Session(
                id=each.session,
                person=each.subject,
                scopes=each.scopes,
                audiences=each.audiences,
                note=each.note,
                opened=_moment(each.opened),
                used=_moment(each.used or each.opened),
                expires=_moment(each.expires),
            )
            for each in found
        ]
        return Answer(Logins(sessions=sessions))

    async def end_session(self, asked: Asked) -> Answer:
        """End one."""
        parameters: EndLogin = asked.parameters
        async with self._iam(asked) as iam:
            await iam.revoke_token(parameters.id)
        return Answer(Ended(id=parameters.id))

    async def workers(self, asked: Asked) -> Answer:
        """Machines that have joined, and tokens for others."""
        async with self._iam(asked) as iam:
            workers, tokens = await asyncio.gather(iam.workers(), iam.join_tokens())
        return Answer(workers_shown(workers, tokens))

    @asynccontextmanager
    async def _iam(self, asked: Asked) -> AsyncGenerator[IdentityClient]:
        """Iam, which knows who asks; raises RequestRefused where the pool has none."""
        async with self._people.of(asked.person) as client:
            if not client.pool.iam_url:
                raise RequestRefused(
                    404,
                    ProblemCode.NOT_FOUND,
                    "this pool has no iam, which keeps this record: add iam to daemon_list of [master]",
                )
            yield client.iam


async def _bans(iam: IdentityClient) -> Bans:
    bans = [
        Ban(
            whom=each.whom,
            reason=each.reason,
            by=each.by,
            since=_moment(each.at),
            until=_moment(each.until) if each.until else None,
        )
        for each in await iam.bans()
    ]
    return Bans(bans=bans)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
