"""Following jobs by what is recorded of them, as it is recorded."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Final, Protocol

import msgspec

from kettle.client.errors import ClientError, CommandRefusedError
from kettle.client.events.progress import JobState, Progress, state_after, state_after_all, state_of
from kettle.client.events.shard_feed import Feed, Tail
from kettle.client.jobs.status import id_of
from kettle_wire import events
from kettle_wire.ads.types import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import JobEvents, RecordedEvent, Select, Unmade
from kettle_wire.event_expansion import expanded
from kettle_wire.events import ClusterSubmitted, Event, FactoryClosed, JobCompleted, JobRemoved
from kettle_wire.frames import Frame
from kettle_wire.jobs import JobId

_QUIET_S: Final = 30.0
"""
Without a frame for so long we look at the queue itself: if a lost connection has swallowed the last frame that
concerns us, no later one may come to show the gap.
"""
_AT_ONCE: Final = 16
_SHOWN: Final = ["ClusterId", "ProcId", "JobStatus", "ExitCode", "ExitSignal"]


class JobEvent(msgspec.Struct, frozen=True):
    """One recorded event."""

    stream: str
    version: int
    frame: int
    at: float
    """When it was recorded, seconds since the epoch."""
    event: Event


class PoolSource(Protocol):
    """What following jobs needs of a client."""

    async def recorded(self, job: JobId) -> JobEvents:
        """Everything recorded of a job."""
        ...

    async def queued(self, select: Select, projection: Sequence[str]) -> list[Ad]:
        """Ads of jobs that are in the queue."""
        ...

    async def unmade(self, select: Select) -> list[Unmade]:
        """Clusters of which jobs are still to be made."""
        ...

    async def ended(self, select: Select, limit: int) -> list[Ad]:
        """Ads of jobs that have left the queue, as far as accounting knows by now; may be too few."""
        ...

    async def feed(self, shard: str) -> Feed:
        """The live frames of a shard."""
        ...


def decoded(recorded: RecordedEvent) -> JobEvent:
    """An event in the form that is shown to people."""
    return JobEvent(
        recorded.stream,
        recorded.version,
        recorded.frame,
        recorded.at / 1_000_000,
        events.decode(recorded.data),
    )


def submitted(recorded: JobEvents) -> int | None:
    """How many jobs the cluster has that a record is about; None if the record does not say."""
    for event in recorded.events:
        if event.stream.startswith("cluster/"):
            match events.decode(event.data):
                case ClusterSubmitted(rows=rows):
                    return len(rows)
                case _:
                    pass
    return None


def check_member(job: JobId, recorded: JobEvents) -> None:
    """
    Raise CommandRefusedError if the cluster has no such job: what is recorded of it is only its cluster's submission.
    """
    if any(event.stream == f"job/{job}" for event in recorded.events):
        return
    size = submitted(recorded)
    if size is not None and not 0 <= job.proc < size:
        raise _no_member(job, size)


def _no_member(job: JobId, size: int) -> CommandRefusedError:
    has = "1 job" if size == 1 else f"{size} jobs"
    return CommandRefusedError(
        RefusalCode.NOT_FOUND, f"there is no job {job}: cluster {job.cluster} has {has}"
    )


async def follow(pool: PoolSource, job: JobId) -> AsyncGenerator[JobEvent, None]:
    """
    All events of a job, those of the past and then each as it is recorded, until the job has ended or never will begin.
    """
    shard = (await pool.recorded(job)).shard
    seen: dict[str, int] = {f"cluster/{job.cluster}": 0, f"job/{job}": 0}
    with (await pool.feed(shard)).tail() as tail:
        look = True
        while True:
            live = not look
            if look:
                recorded = await pool.recorded(job)
                found, ended = [decoded(event) for event in recorded.events], recorded.never_made
                look = False
            else:
                frame, look = await tail.next(_QUIET_S)
                ended = frame is not None and _given_up(frame, job)
                found = _of_streams(frame, seen) if frame is not None and not look else []
            for event in found:
                if event.version <= seen[event.stream]:
                    continue
                if live and event.version > seen[event.stream] + 1:
                    look = True
                    break
                seen[event.stream] = event.version
                yield event
                ended = ended or isinstance(event.event, JobCompleted | JobRemoved)
            if ended:
                return


def _given_up(frame: Frame, job: JobId) -> bool:
    """Whether it says that a job will never come into the queue."""
    decided = [events.decode(one.data) for one in frame.entries if one.stream == f"factory/{job.cluster}"]
    return any(isinstance(event, FactoryClosed) and event.first <= job.proc for event in decided)


def _of_streams(frame: Frame, streams: dict[str, int]) -> list[JobEvent]:
    return [
        JobEvent(entry.stream, entry.version, frame.number, frame.at / 1_000_000, events.decode(entry.data))
        for entry in expanded(frame).entries
        if entry.stream in streams
    ]


async def watch(pool: PoolSource, select: Select) -> AsyncGenerator[Progress, None]:
    """
    How far a selection of jobs is, at first and after each change, until all of them have ended.

    It is the same object each time.  Jobs that are submitted later do not join it.
    """
    jobs, shard = await _population(pool, select)
    if not jobs:
        yield Progress({})
        return
    with (await pool.feed(shard)).tail() as tail:
        progress = Progress(dict.fromkeys(jobs, JobState()))
        await _look(pool, select, progress)
        yield progress
        while not progress.ended:
            if await _changes(pool, select, tail, progress):
                yield progress


async def _changes(pool: PoolSource, select: Select, tail: Tail, progress: Progress) -> bool:
    """Wait for the next frame and take it in; whether anything changed."""
    frame, missed = await tail.next(_QUIET_S)
    if missed:
        return await _look(pool, select, progress)
    changed = False
    for entry in expanded(frame).entries if frame is not None else ():
        kind, _, name = entry.stream.partition("/")
        if kind == "job" and (state := progress.jobs.get(job := JobId.parse(name))) is not None:
            changed = progress.put(job, state_after(state, events.decode(entry.data))) or changed
        elif kind == "factory":
            changed = _cut(progress, events.decode(entry.data)) or changed
    return changed


def _cut(progress: Progress, event: Event) -> bool:
    """Jobs that will never be made count as removed."""
    if not isinstance(event, FactoryClosed):
        return False
    procs = range(event.first, event.first + event.count)
    changed = [progress.put(JobId(event.cluster, proc), JobState("removed")) for proc in procs]
    return any(changed)


async def _population(pool: PoolSource, select: Select) -> tuple[set[JobId], str]:
    """
    The jobs that a selection means, those that have ended included where they are named, and their shard.
    """
    if not select.jobs and not select.clusters:
        jobs = {id_of(ad) for ad in await pool.queued(select, _SHOWN)}
        return jobs, (await pool.recorded(min(jobs))).shard if jobs else ""
    if select.constraint or select.owners:
        raise ClientError(
            "wait for jobs and clusters by id, or by owner and constraint, but not both at once"
        )
    shard = ""
    jobs = set(select.jobs)
    for cluster in sorted({*select.clusters, *(job.cluster for job in jobs)}):
        shard, size = await _cluster(pool, cluster)
        if cluster in select.clusters:
            jobs |= {JobId(cluster, proc) for proc in range(size)}
        for job in jobs:
            if job.cluster == cluster and job.proc >= size:
                raise _no_member(job, size)
    return jobs, shard


async def _cluster(pool: PoolSource, cluster: int) -> tuple[str, int]:
    """The shard of a cluster, and how many jobs were submitted in it."""
    try:
        recorded = await pool.recorded(JobId(cluster, 0))
    except CommandRefusedError as error:
        if error.code != RefusalCode.NOT_FOUND:
            raise
        raise CommandRefusedError(RefusalCode.NOT_FOUND, f"there is no cluster {cluster}") from error
    size = submitted(recorded)
    if size is None:
        raise ClientError(f"the record of cluster {cluster} has no submission")
    return recorded.shard, size


async def _look(pool: PoolSource, select: Select, progress: Progress) -> bool:
    """
    Ask where the jobs are that have not ended, first those who answer for many at once; whether anything is new.
    """
    missing = {job for job, state in progress.jobs.items() if not state.ended}
    ads = await pool.queued(_named(select, missing), _SHOWN)
    missing -= {id_of(ad) for ad in ads}
    if missing:
        clusters = Select(clusters=sorted({job.cluster for job in missing}))
        made = {one.cluster: range(one.made, one.total) for one in await pool.unmade(clusters)}
        missing = {job for job in missing if job.proc not in made.get(job.cluster, ())}
    if missing:
        gone = await pool.ended(_named(select, missing), progress.total)
        missing -= {id_of(ad) for ad in gone}
        ads = [*ads, *gone]
    changed = False
    for ad in ads:
        changed = progress.put(id_of(ad), state_of(ad)) or changed
    gate = asyncio.Semaphore(_AT_ONCE)
    try:
        async with asyncio.TaskGroup() as group:
            asked = {job: group.create_task(_from_log(pool, job, gate)) for job in missing}
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from failures
    for job, task in asked.items():
        changed = progress.put(job, task.result()) or changed
    return changed


def _named(select: Select, jobs: set[JobId]) -> Select:
    """The selection without conditions that may cease to hold: by cluster where that is how it was made."""
    return (
        Select(clusters=sorted({job.cluster for job in jobs}))
        if not select.jobs
        else Select(jobs=sorted(jobs))
    )


async def _from_log(pool: PoolSource, job: JobId, gate: asyncio.Semaphore) -> JobState:
    async with gate:
        recorded = await pool.recorded(job)
    if recorded.never_made:
        return JobState("removed")
    return state_after_all(
        events.decode(event.data) for event in recorded.events if event.stream == f"job/{job}"
    )
