"""What a compute entrypoint says of jobs, and what is recorded of it."""

from collections.abc import Mapping, Sequence
from typing import Final

from kettle.jobs.routed_attributes import refusal
from kettle_services.schedd.domain.queue.entry import QueuedJob
from kettle_services.schedd.domain.submission import validation
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_wire.ads import Ad, Scalar
from kettle_wire.codes import Universe
from kettle_wire.commands.queue import Outcome
from kettle_wire.commands.routing import Routing
from kettle_wire.events import JobEvent, JobRouted, JobUnrouted
from kettle_wire.grid import batch_system

_WAITING: Final = frozenset({"idle", "held"})
_TARGETS: Final = frozenset({Universe.VANILLA, Universe.GRID})


def said_before(entry: QueuedJob) -> int:
    """How often the entrypoint has said something of a job."""
    number = entry.changed.get("NumRouted", 0)
    return number if isinstance(number, int) else 0


def check(routing: Routing) -> None:
    """Raise `Unacceptable` for a route that no job can have."""
    for name in (*routing.attributes, *routing.removed):
        if why := refusal(name):
            raise Unacceptable(f"route {routing.route}: {why}")
    validation.check_values(routing.attributes)


def route(before: Mapping[str, Scalar], known: Mapping[str, str], routing: Routing, number: int) -> JobRouted:
    """
    What is recorded of a job that gets a route. Raises Unacceptable: with it, it could not run.

    `before`: its ad; `known`: how this spells its attributes, by their names in lower case.
    """
    changes: Ad = {known.get(name.lower(), name): value for name, value in routing.attributes.items()}
    removed = [found for name in routing.removed if (found := known.get(name.lower())) is not None]
    universe = changes.get("JobUniverse", before.get("JobUniverse"))
    if universe not in _TARGETS:
        raise Unacceptable(
            f"route {routing.route}: JobUniverse {universe} is none that a route can lead to: 5, or 9 for a batch system"
        )
    resource = changes.get(known.get("gridresource", "GridResource"), before.get("GridResource"))
    if universe == Universe.GRID and not batch_system(resource):
        raise Unacceptable(
            f"route {routing.route}: GridResource {resource!r} names no batch system: 'batch NAME', as in [[ce.batch]]"
        )
    touched = [*changes, *removed]
    return JobRouted(
        route=routing.route,
        number=number,
        version=routing.version,
        attributes=changes,
        removed=removed,
        before={name: before[name] for name in touched if name in before},
        added=[name for name in changes if name not in before],
    )


def unroute(entry: QueuedJob, reason: str, number: int, by: str = "") -> JobUnrouted | None:
    """What is recorded of a job that has no route; None: that is known already."""
    if entry.routed is None:
        if entry.changed.get("UnroutedReason") == reason:
            return None
        return JobUnrouted(number=number, reason=reason, by=by)
    return JobUnrouted(
        number=number,
        reason=reason,
        by=by,
        attributes=entry.routed.before,
        removed=list(entry.routed.added),
    )


def taken_off(entry: QueuedJob, reason: str, by: str) -> tuple[Sequence[JobEvent], Outcome]:
    """
    What is to be recorded of a job that somebody takes off its route, and what to answer: it waits for a route again.

    One that runs, or has a claim, goes on where it is.
    """
    if entry.routed is None:
        return (), "already_done" if entry.job.status in _WAITING else "bad_status"
    if entry.job.status not in _WAITING or entry.job.claim:
        return (), "bad_status"
    event = unroute(entry, reason, said_before(entry) + 1, by)
    return [event] if event is not None else (), "done"
