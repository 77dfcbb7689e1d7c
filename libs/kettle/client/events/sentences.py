"""What recorded events say, in a sentence each: one wording for commands and for the web."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, assert_never

from kettle.client.events.lease_sentences import ElasticEvent, elastic_sentence
from kettle.client.events.payload_sentences import payload_sentence
from kettle.client.events.service_sentences import served_sentence
from kettle.client.events.session_sentences import session_sentence
from kettle.client.events.task_queue_sentences import task_queue_sentence
from kettle.tasks.sentences import step_sentence
from kettle.terminal.quantities import counted, duration, size
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClustersSubmitted,
    ClusterSubmitted,
    CycleNegotiated,
    Event,
    FactoryChanged,
    FactoryClosed,
    FactoryEvent,
    FactoryMaterialized,
    JobAssigned,
    JobCheckpointed,
    JobCompleted,
    JobContinued,
    JobDeferred,
    JobDisconnected,
    JobEdited,
    JobHeld,
    JobKept,
    JobLeft,
    JobNodeEnded,
    JobNodeStarted,
    JobOrdered,
    JobReconnected,
    JobReleased,
    JobRemoved,
    JobRouted,
    JobServed,
    JobStarted,
    JobStepped,
    JobSuspended,
    JobTold,
    JobUnrouted,
    JobVacated,
    MachineJoined,
    MachineLeft,
    PrincipalCharged,
    PrincipalDeleted,
    PrincipalEvent,
    PrincipalReset,
    PrincipalSet,
    Usage,
)
from kettle_wire.events.interactive import InteractiveEvent
from kettle_wire.events.job import OrderKind
from kettle_wire.events.payload import PayloadEvent
from kettle_wire.events.task_queue import TaskQueueEvent

_Told = (
    ClusterSubmitted
    | ClustersSubmitted
    | FactoryEvent
    | JobAssigned
    | JobStarted
    | JobSuspended
    | JobContinued
    | JobDisconnected
    | JobReconnected
    | JobCheckpointed
    | JobVacated
    | JobCompleted
    | JobHeld
    | JobReleased
    | JobRemoved
    | JobKept
    | JobLeft
    | JobDeferred
    | JobTold
    | JobEdited
    | JobRouted
    | JobUnrouted
    | JobOrdered
    | JobServed
    | JobStepped
    | JobNodeStarted
    | JobNodeEnded
)
_Pools = ClaimGranted | ClaimEnded | CycleNegotiated | MachineJoined | MachineLeft | PrincipalEvent


def sentence(event: Event, *, since_start: float | None = None) -> tuple[str, str]:
    """
    What an event of a job or of the pool says, and its meaning for colours; of any other its name.

    `since_start`: seconds since the program of the job was started, if that is known.
    """
    if isinstance(event, ElasticEvent):
        return elastic_sentence(event)
    if isinstance(event, TaskQueueEvent):
        return task_queue_sentence(event)
    if isinstance(event, InteractiveEvent):
        return session_sentence(event)
    if isinstance(event, PayloadEvent):
        return payload_sentence(event)
    if isinstance(event, _Pools):
        return _of_pool(event)
    return _of_job(event, since_start) if isinstance(event, _Told) else (type(event).__name__, "")


def _of_job(event: _Told, since_start: float | None) -> tuple[str, str]:
    match event:
        case ClusterSubmitted(cluster=cluster, owner=owner, rows=rows):
            return f"{owner} submitted cluster {cluster} with {counted(len(rows), 'job')}", "strong"
        case ClustersSubmitted(first=first, owner=owner, rows=rows):
            last = first + len(rows) - 1
            return f"{owner} submitted clusters {first} to {last} with one job each", "strong"
        case FactoryMaterialized() | FactoryChanged() | FactoryClosed():
            return _of_factory(event)
        case JobAssigned(attempt=attempt, slot=slot):
            return f"given {slot}{_attempt(attempt)}", "idle"
        case JobStarted(attempt=attempt, pid=pid):
            return f"runs{_attempt(attempt)}{f' as process {pid}' if pid else ''}", "running"
        case (
            JobSuspended()
            | JobContinued()
            | JobDisconnected()
            | JobReconnected()
            | JobCheckpointed()
            | JobTold()
            | JobOrdered()
            | JobServed()
            | JobStepped()
            | JobNodeStarted()
            | JobNodeEnded()
        ):
            return _meanwhile(event)
        case JobVacated():
            return (
                f"stopped without finishing: {event.ending.reason} (code {event.ending.code}){_used(event.usage)}",
                "bad",
            )
        case JobCompleted():
            return _completed(event, since_start)
        case JobHeld():
            by = f" by {event.by}" if event.by else ""
            return (
                f"held{by}: {event.reason} (code {event.code}{f'.{event.subcode}' if event.subcode else ''})",
                "held",
            )
        case _:
            return _of_waiting(event)


def _of_factory(event: FactoryEvent) -> tuple[str, str]:
    match event:
        case FactoryMaterialized(cluster=cluster, first=first, count=count):
            return f"{counted(count, 'job')} of cluster {cluster} made, from {cluster}.{first} on", "strong"
        case FactoryChanged(paused=paused):
            limits = [
                f"{name} {value}"
                for name, value in (("max_materialize", event.limit), ("max_idle", event.max_idle))
                if value >= 0
            ]
            how = "makes no more jobs" if paused else "makes jobs"
            return _said(f"{how}; {', '.join(limits) or 'without limits'}", event.by, event.reason), "held"
        case FactoryClosed(count=count):
            return _said(f"{counted(count, 'job')} will never be made", event.by, event.reason), "removed"


def _of_waiting(
    event: JobReleased | JobRemoved | JobDeferred | JobEdited | JobRouted | JobUnrouted | JobKept | JobLeft,
) -> tuple[str, str]:
    match event:
        case JobReleased():
            return _said("released", event.by, event.reason), "good"
        case JobRemoved():
            return _said("removed", event.by, event.reason), "removed"
        case JobEdited(attributes=attributes):
            return _said(f"{', '.join(attributes)} set", event.by, ""), "strong"
        case JobRouted(route=route, attributes=attributes):
            to = next(
                (value for name, value in attributes.items() if name.lower() == "gridresource"), "this pool"
            )
            return f"route {route} takes it to {to}", "idle"
        case JobUnrouted(reason=reason, by=by):
            return _said(f"waits for a route{f' ({by})' if by else ''}", "", reason), "held"
        case JobKept():
            return "stays in the queue after its end, because its LeaveJobInQueue is true", "strong"
        case JobLeft():
            return _said("leaves the queue", event.by, event.reason), "strong"
        case JobDeferred(until=until):
            return f"runs next at {datetime.fromtimestamp(until).astimezone():%Y-%m-%d %H:%M %Z}", "idle"
        case _:
            assert_never(event)


def _meanwhile(
    event: JobSuspended
    | JobContinued
    | JobDisconnected
    | JobReconnected
    | JobCheckpointed
    | JobTold
    | JobOrdered
    | JobServed
    | JobStepped
    | JobNodeStarted
    | JobNodeEnded,
) -> tuple[str, str]:
    """What happens to an attempt that goes on."""
    match event:
        case JobSuspended(processes=processes):
            how = f" ({counted(processes, 'process', 'processes')})" if processes else ""
            return f"is suspended on its machine{how}", "held"
        case JobContinued():
            return "continues after its suspension", "running"
        case JobDisconnected(reason=reason):
            return f"its machine does not answer: {reason}", "held"
        case JobReconnected():
            return "its machine answers again, and the job has continued to run", "running"
        case JobCheckpointed(usage=usage):
            return f"saved a checkpoint{_used(usage)}", "running"
        case JobTold(attributes=attributes, notes=notes):
            said = [
                *(f"“{note}”" for note in notes),
                *([f"sets {', '.join(attributes)}"] if attributes else []),
            ]
            return f"reports: {'; '.join(said)}", "running"
        case JobOrdered(order=order, by=by, reason=reason):
            return _said(f"asked to {_ORDERS[order]}", by, reason), "held"
        case JobNodeStarted() | JobNodeEnded() | JobServed():
            return _of_part(event), "running"
        case JobStepped(steps=steps):
            return "; ".join(map(step_sentence, steps)), "running"


def _of_part(event: JobNodeStarted | JobNodeEnded | JobServed) -> str:
    return served_sentence(event) if isinstance(event, JobServed) else _of_node(event)


def _of_node(event: JobNodeStarted | JobNodeEnded) -> str:
    if isinstance(event, JobNodeStarted):
        return f"node {event.node} runs on {event.slot}"
    if event.ending is not None or event.exit is None:
        return (
            f"node {event.node} was ended: {event.ending.reason if event.ending is not None else 'unknown'}"
        )
    how = f"signal {event.exit.signal}" if event.exit.signal is not None else f"exit code {event.exit.code}"
    return f"node {event.node} ended with {how}"


_ORDERS: Final[Mapping[OrderKind, str]] = {
    "vacate": "leave its machine",
    "vacate_fast": "leave its machine at once",
    "suspend": "suspend",
    "continue": "continue",
}


def _of_pool(event: _Pools) -> tuple[str, str]:
    match event:
        case ClaimGranted():
            return f"{event.startd} gave {event.slot} for jobs of {event.submitter} (claim {event.claim})", ""
        case ClaimEnded():
            return f"claim {event.claim} is over: {event.reason}", "dim"
        case CycleNegotiated():
            return _cycle(event), ""
        case MachineJoined():
            return f"{event.machine} joined with {counted(event.cpus, 'core')}, {event.memory} MiB", "good"
        case MachineLeft():
            return f"{event.machine} left: {event.reason}", "removed"
        case _:
            return _of_principal(event)


def _of_principal(event: PrincipalEvent) -> tuple[str, str]:
    match event:
        case PrincipalCharged():
            seconds = max(0.0, event.at - event.since)
            used = event.weight * seconds + event.weighted_uncharged
            return (
                f"{event.principal} is charged {used / 3600:.3g} weighted hours for {duration(seconds)}",
                "dim",
            )
        case PrincipalSet():
            return f"{event.by} set {event.setting} of {event.principal} to {event.value:g}", "strong"
        case PrincipalReset():
            return f"{event.by} reset the usage of {event.principal}", "strong"
        case PrincipalDeleted():
            return f"{event.by} had {event.principal} forgotten", "strong"
        case _:
            assert_never(event)


def _cycle(event: CycleNegotiated) -> str:
    given = sum(match.count for match in event.matches)
    refused = sum(rejection.count for rejection in event.rejections)
    return (
        f"cycle {event.cycle}: {counted(given, 'job')} matched and {refused} refused, {counted(event.slots, 'free slot')}, "
        f"{duration(event.duration)}"
    )


def _completed(event: JobCompleted, since_start: float | None) -> tuple[str, str]:
    wall = event.usage.wall or since_start or 0.0
    took = f" after {duration(wall)}" if wall else ""
    if event.exit.signal is not None:
        return f"killed by signal {event.exit.signal}{took}{_used(event.usage)}", "bad"
    style = "good" if event.exit.code == 0 else "bad"
    return f"exited with code {event.exit.code}{took}{_used(event.usage)}", style


def _said(what: str, by: str, reason: str) -> str:
    return f"{what}{f' by {by}' if by else ''}{f': {reason}' if reason else ''}"


def _attempt(attempt: int) -> str:
    return f" (attempt {attempt})" if attempt > 1 else ""


def _used(usage: Usage) -> str:
    cpu = usage.user_cpu + usage.system_cpu
    parts = [
        f"{duration(cpu)} CPU" if cpu else "",
        f"{size(usage.memory_kib)} memory" if usage.memory_kib else "",
        f"{size(usage.sent / 1024)} of output" if usage.sent else "",
    ]
    said = ", ".join(part for part in parts if part)
    return f"; used {said}" if said else ""
