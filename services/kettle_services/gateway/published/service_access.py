"""Which service of which job a request is for, and whether who asks may have it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, Literal

import msgspec
from aiohttp import web

from kettle.auth.mapping.levels import Level
from kettle.http.requests import bearer_token
from kettle.published.errors import TunnelError
from kettle.published.relay import Waiting
from kettle.published.services import Service
from kettle.published.tunnel_stream import TunnelStream
from kettle_services.gateway.domain.published_access import Asker, Because, why_admitted
from kettle_services.gateway.published.http_proxy import refused_stream
from kettle_services.gateway.published.job_lookup import JobLookup, MayBe, QueuedJob, anywhere
from kettle_services.gateway.published.member_access import PREFIX as MEMBER
from kettle_services.gateway.published.member_access import MemberAccess
from kettle_services.gateway.published.tunnels import JobTunnel, Tunnels
from kettle_services.gateway.published.uses import Look, Use, Via
from kettle_services.gateway.rest.access_tokens import PREFIX
from kettle_services.gateway.rest.admission import Admission
from kettle_services.gateway.rest.application import Admitted, Front
from kettle_services.gateway.rest.persons import Person, Persons
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.jobs import JobId
from kettle_wire.rest.problem import ProblemCode

LEVEL: Final = Level.WRITE
"""What a service does, the job does, in its owner's name: who may only look is not let in."""


class Reached(msgspec.Struct, frozen=True):
    """A service that can be asked."""

    tunnel: JobTunnel
    service: Service

    async def stream(self) -> TunnelStream:
        """
        A connection to it, which is not read yet; raises RequestRefused: the job's side does not make one.
        """
        name = self.service.name
        try:
            stream, _ = await self.tunnel.tunnel.create_connection(Waiting, name)
        except TimeoutError as error:
            raise RequestRefused(
                504, "service.slow", f"the job has not connected its service {name} in time"
            ) from error
        except (TunnelError, ConnectionError) as error:
            raise refused_stream(error, name) from error
        return stream


class Granted(msgspec.Struct, frozen=True):
    """Somebody may use the services of a job."""

    admitted: Admitted
    job: QueuedJob
    because: Because
    look: Look
    """Raises RequestRefused: not any more."""

    def use(self, reached: Reached, via: Via) -> Use:
        """A connection, which is as long as this task and ends it where the person may have it no more."""
        use = Use(
            self.admitted.person.name,
            reached.tunnel.key,
            reached.service.name,
            via,
            self.look,
            attempt=reached.tunnel.ticket.attempt,
            because=self.because,
        )
        task = asyncio.current_task()
        assert task is not None, "each connection has one"

        def end() -> None:
            task.cancel()

        use.end = end
        return use


class Unserved(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody was not connected with a service of a job."""

    job: QueuedJob
    person: str
    service: str
    because: Because | Literal[""] = ""
    """By what he may use it; empty: he may not."""
    why: str = ""
    """A sentence, where the connection could not carry one."""


Refused = Callable[[Unserved], None]
Believed = Callable[[], Awaitable[Person]]
"""Who shows a credential, by what holds now; raises RequestRefused: nobody whom the pool knows."""


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
        self.refused: Refused = lambda _unserved: None

    async def granted(self, request: web.Request, job: JobId, schedd: str, service: str) -> Granted:
        """
        Who asks, and that he may.

        Raises RequestRefused: nobody who may, or there is no such job.
        """
        token = bearer_token(request)
        if token.startswith(MEMBER):
            return await self._of_member(token, job, schedd)
        if token.startswith(PREFIX):
            admitted = await self._of_account(self._persons.account_of(token))
        else:
            admitted = await self.front.admit_to_job(request, LEVEL)
        return await self.granted_to(admitted, await self.job(job, schedd), service)

    async def granted_to(self, admitted: Admitted, queued: QueuedJob, service: str) -> Granted:
        """That somebody may who is known; raises RequestRefused."""
        person, admission = admitted.person, admitted.admission
        because = self._require(person, queued, service)

        async def look() -> None:
            await admission.require_still()
            self._require(person, await self._lookup.job(queued.job, queued.schedd), service)

        return Granted(admitted, queued, because, look)

    async def admitted(self, believed: Believed) -> Admitted:
        """Who is believed now, and is asked about again while a connection lasts; raises RequestRefused."""
        person = await believed()
        self.front.require(person, LEVEL)

        async def look() -> None:
            found = await believed()
            if found.name != person.name:
                raise RequestRefused(
                    403, ProblemCode.NOT_PERMITTED, f"by the rules of now this credential is {found.name}'s"
                )
            self.front.require(found, LEVEL)

        return Admitted(person, {}, Admission(look))

    async def _of_account(self, account: str) -> Admitted:
        """What was opened goes on when the token is over, as long as the account may come."""

        async def believed() -> Person:
            return self._persons.of_account(account, "")

        return await self.admitted(believed)

    async def _of_member(self, token: str, job: JobId, schedd: str) -> Granted:
        """For a job of an interactive session, which comes in its owner's name; raises RequestRefused."""
        member = self._members.member(token)
        queued = await self.job(job, schedd or member.schedd)
        await self._members.require(member, queued)
        person = self._persons.of_owner(member.owner)

        async def look() -> None:
            await self._members.require(member, await self._lookup.job(queued.job, queued.schedd))

        return Granted(Admitted(person, {}, Admission(look)), queued, "session", look)

    async def job(self, job: JobId, schedd: str, may_be: MayBe = anywhere) -> QueuedJob:
        """
        A job in a queue, of the access points that it may be at; raises RequestRefused: there is none, or there are several.
        """
        found = [each for each in self._tunnels.find(job, schedd) if may_be(each.ticket.schedd)]
        if len(found) == 1:
            schedd = found[0].ticket.schedd
        else:
            schedd = await self._lookup.access_point(job, schedd, may_be)
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
            self.refused(Unserved(job=job, person=person.name, service=service))
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
