"""Following jobs by what is recorded of them, as it is recorded."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Final

from kettle.bus.ports import Bus
from kettle.client.connections.transport import SIDE_QUESTION_S
from kettle.client.errors import ClientError, CommandRefusedError
from kettle.client.events.progress import JobState, Progress, state_after, state_after_all, state_of
from kettle.client.events.shard_feed import Feed
from kettle.client.jobs.queue import JobQueue
from kettle.client.jobs.records import JobEvent, decoded, no_member, submission, submitted
from kettle.client.jobs.status import id_of
from kettle_wire import events
from kettle_wire.ads.types import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import JobEvents, Select, Unmade
from kettle_wire.endpoint import Position
from kettle_wire.event_expansion import expanded
from kettle_wire.events import Event, FactoryClosed, JobCompleted, JobRemoved
from kettle_wire.frames import Frame
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects

_QUIET_S: Final = 30.0
"""
Without a frame for so long we look at the queue itself: if a lost connection has swallowed the last frame that
concerns us, no later one may come to show the gap.
"""
_AT_ONCE: Final = 16
_SHOWN: Final = ["ClusterId", "ProcId", "JobStatus", "ExitCode", "ExitSignal"]


class JobSource:
    """What following jobs is made of; one of them serves all that a client follows."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._subjects = Subjects(queue.requests.pool.pool)
        self._feeds: dict[str, Feed] = {}

    async def recorded(self, job: JobId) -> JobEvents:
        """Everything recorded of a job."""
        return await self._queue.recorded(job)

    async def queued(self, select: Select, projection: Sequence[str]) -> list[Ad]:
        """Ads of jobs that are in the queue."""
        return await self._queue.jobs(select, projection=projection)

    async def unmade(self, select: Select) -> list[Unmade]:
        """Clusters of which jobs are still to be made."""
        return await self._queue.unmade(select)

    async def ended(self, select: Select, limit: int) -> list[Ad]:
        """The history as far as it is known, nothing if accounting does not answer."""
        try:
            return await self._queue.history(select, limit=limit, patience=SIDE_QUESTION_S)
        except ClientError:
            return []

    def saw(self, shard: str, frame: Frame | None) -> None:
        """What is asked after this frame was shown, as the history, is answered with it."""
        if frame is not None:
            self._queue.saw(Position(shard, frame.number))

    async def feed(self, shard: str) -> Feed:
        """The live frames of a shard; one subscription however many ask."""
        bus = await self.bus()
        if shard not in self._feeds:
            feed = self._feeds[shard] = Feed()
            bus.on_return(feed.interrupted)
            await bus.listen(self._subjects.events(shard), feed.deliver, guarded=True)
        return self._feeds[shard]

    async def bus(self) -> Bus:
        """
        The bus of the pool.

        Raises ClientError: there is none, because this runs within a job.
        """
        bus = await self._queue.requests.transport.connection()
        if bus is None:
            raise ClientError(
                "a job cannot follow what happens: it may ask, or read a job event log (condor_wait)"
            )
        return bus


async def follow(pool: JobSource, job: JobId) -> AsyncGenerator[JobEvent, None]:
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
                pool.saw(shard, frame)
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


async def watch(pool: JobSource, select: Select) -> AsyncGenerator[Progress, None]:
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
            frame, missed = await tail.next(_QUIET_S)
            pool.saw(shard, frame)
            if await _look(pool, select, progress) if missed else _changed(frame, progress):
                yield progress


def _changed(frame: Frame | None, progress: Progress) -> bool:
    """Take a frame in; whether anything changed."""
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


async def _population(pool: JobSource, select: Select) -> tuple[set[JobId], str]:
    """
    The jobs that a selection means, those that have ended included where they are named, and their shard.
    """
    if not select.jobs and not select.clusters:
        jobs = {id_of(ad) for ad in await pool.queued(select, _SHOWN)}
        for one in await pool.unmade(select):
            jobs |= {JobId(one.cluster, proc) for proc in await _coming(pool, one, select.constraint)}
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
                raise no_member(job, size)
    return jobs, shard


async def _coming(pool: JobSource, unmade: Unmade, constraint: str) -> Iterable[int]:
    """The jobs of a cluster that are still to be made, and meet a condition if there is one."""
    procs = range(unmade.made, unmade.total)
    if not constraint:
        return procs
    from kettle.client.events.unmade_jobs import meeting

    found = submission(await pool.recorded(JobId(unmade.cluster, 0)))
    return meeting(constraint, *found, procs) if found is not None else ()


async def _cluster(pool: JobSource, cluster: int) -> tuple[str, int]:
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


async def _look(pool: JobSource, select: Select, progress: Progress) -> bool:
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


async def _from_log(pool: JobSource, job: JobId, gate: asyncio.Semaphore) -> JobState:
    async with gate:
        recorded = await pool.recorded(job)
    if recorded.never_made:
        return JobState("removed")
    return state_after_all(
        events.decode(event.data) for event in recorded.events if event.stream == f"job/{job}"
    )
