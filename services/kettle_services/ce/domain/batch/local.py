"""Jobs of this machine, when it is itself the batch system: what is kept of each, and which may begin."""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kettle_services.ce.domain.batch.listed import ListedJob
from kettle_wire.batch import BatchEnd, BatchRequest, BatchState, EndCause, Intent


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """What jobs may have of the machine together."""

    cpus: int
    memory: int
    """MB."""


class LocalJob(msgspec.Struct, frozen=True, kw_only=True):
    """One that was submitted, and what is wanted of it."""

    number: int
    intent: Intent
    owner: str
    """The account that it runs as; empty: that of this service."""
    directory: str
    request: BatchRequest
    rights: tuple[int, int, tuple[int, ...]] | None = None
    """User, group and further groups that it runs with; None: those of this service."""
    stopped: bool = False
    """It is held, or if it runs suspended."""
    removed: bool = False
    """It is to end."""


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """How far a job is, by what lies in its directory."""

    job: LocalJob
    began: float = 0.0
    """Seconds since the epoch; 0: it has not begun."""
    tended: bool = False
    """Whether the process that looks after it is there."""
    end: BatchEnd | None = None


def refusal(request: BatchRequest, room: Room) -> str:
    """Why this machine can never run such a job, as one sentence; empty: it can."""
    if request.nodes > 1:
        return "it asks for several nodes (MachineCount), and this batch system is one machine"
    if request.gpus:
        return "it asks for GPUs, and a batch system of kind local gives none: a startd of this machine does"
    if request.queue:
        return f"it asks for the queue {request.queue}, and a batch system of kind local has none"
    if request.arguments:
        return "BatchExtraSubmitArgs: no command submits to a batch system of kind local"
    if request.cpus > room.cpus:
        return f"it asks for {request.cpus} CPUs, and jobs of this machine have {room.cpus}"
    if request.memory > room.memory:
        return f"it asks for {request.memory} MB of memory, and jobs of this machine have {room.memory}"
    return ""


def beginning(standings: Iterable[Standing], room: Room) -> Sequence[LocalJob]:
    """
    Who begins now, in the order in which they came: one that does not fit has those behind it wait, or it would wait without end.
    """
    there = sorted(standings, key=lambda each: each.job.number)
    busy = [each.job for each in there if _has_place(each)]
    cpus = room.cpus - sum(_cpus(each, room) for each in busy)
    memory = room.memory - sum(each.request.memory for each in busy)
    found: list[LocalJob] = []
    for each in there:
        job = each.job
        if _has_place(each) or each.end is not None or job.stopped or job.removed:
            continue
        if _cpus(job, room) > cpus or job.request.memory > memory:
            break
        cpus -= _cpus(job, room)
        memory -= job.request.memory
        found.append(job)
    return found


def _cpus(job: LocalJob, room: Room) -> int:
    return room.cpus if job.request.whole_node else job.request.cpus


def _has_place(each: Standing) -> bool:
    return each.tended or (each.began > 0 and each.end is None)


def is_lost(each: Standing) -> bool:
    """Whether nobody looks after it any more: its process was killed, or the machine began again."""
    return each.began > 0 and not each.tended and each.end is None


LOST: Final = BatchEnd(
    cause=EndCause.NODE,
    words="the process that looked after it is not there any more: it was killed, or the machine began again",
)


def shown(each: Standing, host: str) -> ListedJob:
    """What is said of it."""
    job = each.job
    if each.end is not None:
        state, words = BatchState.ENDED, each.end.words or each.end.cause
    elif each.began or each.tended:
        state, words = (BatchState.SUSPENDED, "stopped") if job.stopped else (BatchState.RUNNING, "runs")
    else:
        state, words = (BatchState.HELD, "held") if job.stopped else (BatchState.QUEUED, "waits")
    where = host if each.began else ""
    return ListedJob(id=str(job.number), name=job.intent, state=state, words=words, host=where, end=each.end)
