"""
Joining the pool: the connections that services need, opened alike by all of them.

Not imported by `kettle.runtime` itself: a process that speaks to neither bus nor database does not pay for their clients.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final

from kettle.bus.credentials import service_identity
from kettle.bus.nats import NatsBus
from kettle.runtime.authorizer import Authorizer
from kettle.runtime.deeds import Outbox
from kettle.runtime.people import People
from kettle.runtime.rights import answer_about_rights
from kettle.runtime.service import Runtime
from kettle.runtime.settings import Settings
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects

if TYPE_CHECKING:
    from kettle.storage import PgLog


_MACHINE: Final = "startd"
"""The role that does not hear what iam says: at machines rules give nobody a level."""


async def join_bus(
    rt: Runtime,
    settings: Settings,
    *,
    name: str = "",
    identity: Identity | None = None,
    people: People | None = None,
) -> NatsBus:
    """
    Connect to the bus as the service's role, or as `identity`, waiting for the server as long as it takes; closed with the service.

    `people` is kept as iam says, where the site has rules over credentials.
    """
    people = people or People()
    bus = await rt.enter(
        NatsBus.connect(
            settings.nats_url,
            subjects=Subjects(settings.pool),
            identity=identity or service_identity(rt.role, settings.nats_credentials),
            credentials=settings.nats_credentials,
            ca=settings.nats_ca,
            name=name or rt.role,
            inject=rt.telemetry.inject,
            extract=_continue(rt),
            replicas=settings.nats_replicas,
        )
    )
    authorizer = Authorizer.of_service(rt.role, lambda: settings.authorization, people=people)
    learn, joined = None, bool(bus.identity.access_point)
    if identity is None and rt.role != _MACHINE and (joined or settings.authorization.rules):
        learn = people.on(bus, bus.subjects, follows=not joined)
        if not joined:
            rt.loop(people.follow(bus, bus.subjects), name="people")
    bus.authorize_by(authorizer, partial(answer_about_rights, authorizer, learn), learn=learn)
    outbox = Outbox(settings.home_path / "deeds", rt.role)
    bus.audit_by(outbox)
    rt.loop(outbox.deliver(bus), name="deeds")
    rt.loop(bus.failure(), name="bus")
    rt.readiness("bus", lambda: bus.connected)
    return bus


def _continue(rt: Runtime) -> Callable[[str, Mapping[str, str]], AbstractContextManager[object]]:
    """Commands that carry a trace are a part of it."""

    def around(endpoint: str, headers: Mapping[str, str]) -> AbstractContextManager[object]:
        if not rt.telemetry.enabled or "traceparent" not in headers:
            return nullcontext()
        return rt.telemetry.span(f"{rt.role}.{endpoint}", parent=headers, kind="server")

    return around


async def join_log(rt: Runtime, settings: Settings) -> "PgLog":
    """Connect to the event log, waiting for the database as long as it takes; closed with the service."""
    from kettle.archive import FileArchives
    from kettle.storage import PgLog  # only services that own a shard or a projection pay for asyncpg

    return await rt.enter(PgLog.connect(settings.database_url, archives=FileArchives(settings.archive_path)))
