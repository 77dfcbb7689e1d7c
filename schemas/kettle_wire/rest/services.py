"""What running jobs publish: their services, where each is reached, and who uses it."""

import msgspec

from kettle_wire.jobs import Name
from kettle_wire.rest.jobs import JobName
from kettle_wire.rest.route import Moment, Route


class ListServices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    List the services that jobs publish through this gateway, and that you may use: those of your jobs, and those that others share.
    """

    owner: list[Name] = []
    """Only of jobs of these people."""


class GetServices(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get the services of a job that you may use."""

    id: JobName


class ServiceUser(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who uses a service at this moment."""

    person: str
    connections: int
    sent: int
    """Bytes to the job, over connections that are open."""
    received: int
    """Bytes from the job."""


class PublishedService(msgspec.Struct, frozen=True, kw_only=True):
    """A service."""

    name: str
    port: int
    """On which the job listens, on its machine."""
    kind: str
    """`tcp`: bytes; `http`, `http-prefix`: HTTP and WebSockets."""
    up: bool
    """It can be asked now: the job's machine has connected, and the job is not suspended."""
    path: str = ""
    """Where it is under this gateway, for HTTP; empty: only `connect` reaches it."""
    connect: str
    """The path of a connection of bytes (`Upgrade: kettle-stream`)."""
    tls: str = ""
    """
    `NAME:PORT` at which a program reaches it that speaks TLS and shows a certificate of `POST /service-certificates`; empty: none does.
    """
    users: list[ServiceUser] = []


class JobServices(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The services of a job."""

    id: str
    """`CLUSTER.PROC@SCHEDD`."""
    owner: str
    state: str
    """`up`, or why it is not reached in `why`: `waiting`, `held`, `connecting`, `suspended`, `ended`."""
    why: str = ""
    """One sentence; empty: it is reached."""
    since: Moment | None = None
    """When its machine has connected."""
    because: str
    """By what you may use it: `owner`, `shared`, `group` or `administrator`."""
    shared_with: list[str] = []
    """People, and groups as `group:NAME`."""
    services: list[PublishedService]


class ServicesOfJobs(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs with services, by their numbers."""

    jobs: list[JobServices]


LIST_SERVICES = Route("GET", "/services", "list_services", parameters=ListServices, reply=ServicesOfJobs)
GET_SERVICES = Route(
    "GET",
    "/jobs/{id}/services",
    "get_services",
    parameters=GetServices,
    reply=JobServices,
    errors=(404, 409, 410),
)
