"""Which service of which job a request is for, and whether who asks may have it."""

from collections.abc import Callable
from typing import Final

import msgspec
from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle.http.requests import bearer_token
from kettle.published.services import Service
from kettle_services.gateway.domain.published_access import Asker, Because, why_admitted
from kettle_services.gateway.published.job_lookup import JobLookup, QueuedJob
from kettle_services.gateway.published.member_access import PREFIX as MEMBER
from kettle_services.gateway.published.member_access import MemberAccess
from kettle_services.gateway.published.tunnels import JobTunnel, Tunnels
from kettle_services.gateway.published.uses import Look
from kettle_services.gateway.rest.access_tokens import PREFIX
from kettle_services.gateway.rest.admission import Admission
from kettle_services.gateway.rest.application import Admitted, Front
from kettle_services.gateway.rest.persons import Person, Persons
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.jobs import JobId
from kettle_wire.rest.problem import ProblemCode

LEVEL: Final = Level.WRITE
"""What a service does, the job does, in its owner's name: who may only look is not let in."""


class Granted(msgspec.Struct, frozen=True):
    """Somebody may use the services of a job."""

    admitted: Admitted
    job: QueuedJob
    because: Because
    look: Look
    """Raises RequestRefused: not any more."""


class Reached(msgspec.Struct, frozen=True):
    """A service that can be asked."""

    tunnel: JobTunnel
    service: Service


Refused = Callable[[QueuedJob, str, str], None]
"""Told of the job, the person and the service of each refusal."""


class ServiceAccess:
    """Tells it."""

    def __init__(
        self, front: Front, lookup: JobLookup, tunnels: Tunnels, persons: Persons, members: MemberAccess
    ) -> None:
        self.front: Final = front
        self._persons: Final = persons
        self._lookup: Final = lookup
        self._members: Final = members
        self._tunnels: Final = tunnels
        self.refused: Refused = lambda _job, _person, _service: None

    async def granted(
        self, request: web.Request, job: JobId, schedd: str, service: str, *, admitted: Admitted | None = None
    ) -> Granted:
        """
        Who asks, and that he may; `admitted`: who asks, where that is known.

        Raises RequestRefused: nobody who may, or there is no such job.
        """
        if admitted is None and (token := bearer_token(request)).startswith(MEMBER):
            return await self._of_member(token, job, schedd)
        if admitted is None:
            admitted = await self._admitted(request)
        queued = await self.job(job, schedd)
        person, admission = admitted.person, admitted.admission
        because = self._require(person, queued, service)

        async def look() -> None:
            await admission.require_still()
            self._require(person, await self._lookup.job(queued.job, queued.schedd), service)

        return Granted(admitted, queued, because, look)

    async def _admitted(self, request: web.Request) -> Admitted:
        """Who asks; raises RequestRefused: nobody who may."""
        token = bearer_token(request)
        if not token.startswith(PREFIX):
            return await self.front.admit_to_job(request, LEVEL)
        account = self._persons.account_of(token)

        async def look() -> (
            None
        ):  # what was opened goes on when the token is over, as long as the account may come
            self.front.require(self._persons.of_account(account, ""), LEVEL)

        person = self._persons.of_account(account, "")
        self.front.require(person, LEVEL)
        return Admitted(person, {}, Admission(look))

    async def _of_member(self, token: str, job: JobId, schedd: str) -> Granted:
        """For a job of an interactive session, which comes in its owner's name; raises RequestRefused."""
        member = self._members.member(token)
        queued = await self.job(job, schedd or member.schedd)
        await self._members.require(member, queued)
        person = self._persons.of_owner(member.owner)

        async def look() -> None:
            await self._members.require(member, await self._lookup.job(queued.job, queued.schedd))

        return Granted(Admitted(person, {}, Admission(look)), queued, "session", look)

    async def job(self, job: JobId, schedd: str) -> QueuedJob:
        """A job in a queue; raises RequestRefused: there is none, or there are several."""
        found = self._tunnels.find(job, schedd)
        if len(found) == 1:
            schedd = found[0].ticket.schedd
        else:
            schedd = await self._lookup.access_point(job, schedd)
        return await self._lookup.job(job, schedd)

    def may(self, person: Person, job: QueuedJob) -> Because | None:
        """By what a person may use the services of a job."""
        asker = Asker(
            name=person.name,
            groups=person.principal.groups,
            administrator=self.front.may(person, Level.ADMINISTRATOR),
        )
        return why_admitted(asker, job.owner, job.shared_with)

    def _require(self, person: Person, job: QueuedJob, service: str) -> Because:
        because = self.may(person, job)
        if because is None:
            sentence = (
                f"the services of job {job.job} are {job.owner}'s, who has not shared them with {person.name}"
            )
            self.refused(job, person.name, service)
            raise RequestRefused(403, ProblemCode.NOT_PERMITTED, sentence)
        return because

    def reached(self, job: QueuedJob, name: str) -> Reached:
        """A service that can be asked now; raises RequestRefused: why it cannot."""
        found = self._tunnels.find(job.job, job.schedd)
        if not found:
            if job.described and name not in {each.name for each in job.described}:
                raise _none_of_this_name(job, name, job.described)
            raise RequestRefused(503, "service.no_tunnel", job.why_not_reached(), retry_after=5)
        [tunnel] = found
        service = tunnel.service(name)
        if service is None:
            raise _none_of_this_name(job, name, tunnel.tunnel.announcement.services)
        return Reached(tunnel, service)


def _none_of_this_name(job: QueuedJob, name: str, there: tuple[Service, ...]) -> RequestRefused:
    names = ", ".join(each.name for each in there) or "none"
    return RequestRefused(
        404, "service.no_such_service", f"job {job.job} publishes no service {name}; it publishes: {names}"
    )
