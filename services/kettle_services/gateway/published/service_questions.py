"""What is asked about the services of jobs, as part of the REST interface."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.published.services import Service
from kettle.published.sharing import Sharing
from kettle_services.gateway.domain.published_access import Because
from kettle_services.gateway.published.job_lookup import QueuedJob
from kettle_services.gateway.published.service_access import ServiceAccess
from kettle_services.gateway.published.tunnels import JobTunnel, Tunnels
from kettle_services.gateway.published.uses import Use, Uses
from kettle_services.gateway.rest.application import Answer, Asked, Handler
from kettle_services.gateway.rest.jobs import job_name
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.codes import JobStatus
from kettle_wire.rest import services
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.route import Route
from kettle_wire.rest.service_certificates import MAKE_SERVICE_CERTIFICATE

if TYPE_CHECKING:
    from kettle_services.gateway.published.by_name import ServicesByName

_STATES: Final = {
    JobStatus.IDLE: "waiting",
    JobStatus.HELD: "held",
    JobStatus.REMOVED: "ended",
    JobStatus.COMPLETED: "ended",
}


class ServiceQuestions:
    """Answers them from what is connected here, and from the queues."""

    def __init__(
        self, access: ServiceAccess, tunnels: Tunnels, uses: Uses, by_name: "ServicesByName | None"
    ) -> None:
        """`by_name`: None: programs reach nothing by TLS here."""
        self._by_name: Final = by_name
        self._access: Final = access
        self._tunnels: Final = tunnels
        self._uses: Final = uses

    def handlers(self) -> Mapping[Route, Handler]:
        """By the routes that they answer."""
        return {
            services.GET_SERVICES: self.get,
            services.LIST_SERVICES: self.list,
            MAKE_SERVICE_CERTIFICATE: self.certificate,
        }

    async def certificate(self, asked: Asked) -> Answer:
        """See `MakeServiceCertificate`."""
        if self._by_name is None:
            raise RequestRefused(
                404,
                ProblemCode.NOT_FOUND,
                "no program comes to services by TLS here: services_domain of [gateway] says below which names",
            )
        return await self._by_name.certificates.make(asked)

    async def get(self, asked: Asked) -> Answer:
        """See `GetServices`."""
        parameters: services.GetServices = asked.parameters
        job, schedd = job_name(parameters.id)
        queued = await self._access.job(job, schedd)
        because = self._access.may(asked.person, queued)
        if because is None:
            raise RequestRefused(
                403,
                ProblemCode.NOT_PERMITTED,
                f"the services of job {job} are {queued.owner}'s, who has not shared them with {asked.person.name}",
            )
        found = self._tunnels.find(queued.job, queued.schedd)
        return Answer(self._shown(queued, because, found[0] if found else None))

    async def list(self, asked: Asked) -> Answer:
        """See `ListServices`; a job that leaves its queue meanwhile is left out."""
        parameters: services.ListServices = asked.parameters
        shown: list[services.JobServices] = []
        for tunnel in sorted(self._tunnels, key=lambda each: (each.ticket.job, each.ticket.schedd)):
            if parameters.owner and tunnel.ticket.owner not in parameters.owner:
                continue
            try:
                queued = await self._access.job(tunnel.ticket.job, tunnel.ticket.schedd)
            except RequestRefused as refusal:
                if refusal.status not in {404, 410}:
                    raise
                continue
            if because := self._access.may(asked.person, queued):
                shown.append(self._shown(queued, because, tunnel))
        return Answer(services.ServicesOfJobs(jobs=shown))

    def _shown(self, job: QueuedJob, because: Because, tunnel: JobTunnel | None) -> services.JobServices:
        suspended = tunnel is not None and tunnel.tunnel.announcement.suspended
        published = tunnel.tunnel.announcement.services if tunnel is not None else job.described
        state, why = "up", ""
        if suspended:
            state, why = "suspended", f"job {job.job} is suspended, and answers nothing"
        elif tunnel is None:
            state, why = _STATES.get(job.status, "connecting"), job.why_not_reached()
        name = f"{job.job}@{job.schedd}"
        uses = [each for each in self._uses if each.job == (job.schedd, job.job)]
        return services.JobServices(
            id=name,
            owner=job.owner,
            state=state,
            why=why,
            since=datetime.fromtimestamp(tunnel.since, UTC) if tunnel is not None else None,
            because=because,
            shared_with=_names(job.shared_with),
            services=[
                msgspec.structs.replace(
                    _service(name, each, up=state == "up", uses=uses), tls=self._place(each, job)
                )
                for each in published
            ],
        )

    def _place(self, service: Service, job: QueuedJob) -> str:
        if self._by_name is None or service.kind != "tcp":
            return ""
        return self._by_name.place(service.name, job.job, job.schedd)


def _names(sharing: Sharing) -> list[str]:
    return [*sharing.people, *(f"group:{each}" for each in sharing.groups)]


def _service(job: str, service: Service, *, up: bool, uses: Iterable[Use]) -> services.PublishedService:
    return services.PublishedService(
        name=service.name,
        port=service.port,
        kind=service.kind,
        up=up,
        path="" if service.kind == "tcp" else f"/jobs/{job.partition('@')[0]}/{service.name}/",
        connect=f"/v2/jobs/{job}/services/{service.name}/connect",
        users=_users([each for each in uses if each.service == service.name]),
    )


def _users(uses: Iterable[Use]) -> list[services.ServiceUser]:
    totals: dict[str, tuple[int, int, int]] = {}
    for use in uses:
        count, sent, received = totals.get(use.person, (0, 0, 0))
        more_sent, more_received = use.bytes
        totals[use.person] = count + 1, sent + more_sent, received + more_received
    return [
        services.ServiceUser(person=person, connections=count, sent=sent, received=received)
        for person, (count, sent, received) in sorted(totals.items())
    ]
