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
from kettle.runtime.telemetry import Telemetry
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects
from kettle_wire.telemetry import process_metrics as metrics

if TYPE_CHECKING:
    from kettle.storage import PgLog


_GATEWAY: Final = "gateway"
"""The role that believes people by itself, and so has to know whom iam has banned."""
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

    `people` is kept as iam says, where the site has rules over credentials, and by a gateway.
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
    follows = joined or rt.role == _GATEWAY or settings.authorization.rules
    if identity is None and rt.role != _MACHINE and follows:
        learn = people.on(bus, bus.subjects, follows=not joined)
        if not joined:
            rt.loop(people.follow(bus, bus.subjects), name="people")
    bus.authorize_by(authorizer, partial(answer_about_rights, authorizer, learn), learn=learn)
    outbox = Outbox(settings.home_path / "deeds", rt.role)
    bus.audit_by(outbox)
    rt.loop(outbox.deliver(bus), name="deeds")
    rt.loop(bus.failure(), name="bus")
    rt.readiness("bus", lambda: bus.connected)
    if rt.telemetry.measurements is not None:
        _measure_bus(rt.telemetry, bus)
    return bus


def _measure_bus(telemetry: Telemetry, bus: NatsBus) -> None:
    durations, refusals = (
        telemetry.histogram(metrics.COMMAND_DURATION),
        telemetry.counter(metrics.COMMAND_REFUSALS),
    )

    def observe(verb: str, took: float, code: str) -> None:
        durations.record(took, verb, "refused" if code else "done")
        if code:
            refusals.add(1, verb, code)

    bus.observe_by(observe)
    telemetry.observe(metrics.BUS_CONNECTED, lambda: bus.connected)
    bus.on_return(telemetry.counter(metrics.BUS_RECONNECTIONS).add)


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

    log = await rt.enter(PgLog.connect(settings.database_url, archives=FileArchives(settings.archive_path)))
    if rt.telemetry.measurements is not None and rt.role in metrics.APPEND_DURATION.services:
        durations, events = (
            rt.telemetry.histogram(metrics.APPEND_DURATION),
            rt.telemetry.counter(metrics.APPENDED_EVENTS),
        )

        def observe(took: float, number: int) -> None:
            durations.record(took)
            events.add(number)

        log.observe_by(observe)
    return log
