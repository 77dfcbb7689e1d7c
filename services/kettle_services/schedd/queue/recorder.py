"""The queue and its log as one: what is recorded is folded at once and committed in the next frame."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from kettle.eventsourcing.command_pipeline import Recording
from kettle.eventsourcing.log import Log, WorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.eventsourcing.working_set import Checkpointer
from kettle.jobs import trace_meta
from kettle_services.schedd.domain.queue import live_reports
from kettle_services.schedd.domain.queue.entry import FRESH
from kettle_services.schedd.domain.queue.fold import JOB, Queue, job_of_stream, job_stream
from kettle_services.schedd.domain.queue.grouped_events import HappenedToAll, group_runs
from kettle_services.schedd.domain.queue.leave_in_queue import ENDINGS, concerned, settled
from kettle_services.schedd.domain.queue.rows import Change
from kettle_services.schedd.domain.queue.working_set import restore as restore_queue
from kettle_wire import events
from kettle_wire.events import Event, JobEvent, JobVacated, Procs
from kettle_wire.frames import Frame
from kettle_wire.jobs import JobId


class QueueRecorder:
    """
    Decisions are taken on `queue`, which runs ahead of the log by the frames that are being committed.

    Nothing outside may see an effect of what was recorded before the future of `record` is done.
    """

    def __init__(self, shard: Shard, queue: Queue, checkpointer: Checkpointer) -> None:
        self.shard: Final = shard
        self.queue: Final = queue
        self._checkpointer = checkpointer
        self._unsaved: deque[tuple[int, list[Change]]] = deque()
        self._listeners: list[Callable[[Event], None]] = []
        self._wakers: list[Callable[[], None]] = []
        self._witnesses: list[Callable[[str, Event, int], None]] = []
        shard.on_commit(self._committed)
        shard.number_by(self._version)

    def on_change(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` for every event as it is folded, before its commit: to wake tasks, not to act."""
        self._listeners.append(listener)

    def on_record(self, witness: Callable[[str, Event, int], None]) -> None:
        """
        Call `witness` with stream, event and the frame's time in microseconds, for every event as it is folded: to count.
        """
        self._witnesses.append(witness)

    def on_cooldown_over(self, waker: Callable[[], None]) -> None:
        """Call `waker` when a job may run again that had to wait after failures."""
        self._wakers.append(waker)

    def start_cooldown(self, job: JobId) -> None:
        """Make a job that failed repeatedly wait for its time."""
        asyncio.get_running_loop().call_later(self.queue.jobs[job].job.cooling, self._cooldown_over, job)

    def _cooldown_over(self, job: JobId) -> None:
        self.queue.cooled(job)
        for waker in self._wakers:
            waker()

    def record(
        self, changes: Recording, *, command: str = "", reply: Callable[[int], bytes] | None = None
    ) -> asyncio.Future[int]:
        """Fold and commit; the future is the frame's number."""
        now_us = time.time_ns() // 1000
        if self.queue.staying.clusters:
            changes = settled(self.queue, changes, now_us)
        future = self.shard.record(
            changes,
            now_us=now_us,
            command=command,
            reply=reply,
            meta=self._meta,
        )
        self._fold(changes)
        return future

    def record_together(
        self, changes: Recording, commands: Sequence[str], replies: Callable[[int], Sequence[bytes]]
    ) -> asyncio.Future[int]:
        """As `record`, of commands that were decided as one: see `Shard.record_together`."""
        now_us = time.time_ns() // 1000
        future = self.shard.record_together(changes, commands, replies, now_us=now_us, meta=self._meta)
        self._fold(changes)
        return future

    def _fold(self, changes: Recording) -> None:
        at = self.shard.open_at
        for stream, event in changes:
            touched = self.queue.apply(stream, event, at)
            self._unsaved.append((self.shard.version(stream), touched))
            for change in touched:
                if change.state is None:
                    self.shard.retire(change.stream)
            for listener in self._listeners:
                listener(event)
            for witness in self._witnesses:
                witness(stream, event, at)
            if type(event) in live_reports.ENDINGS:
                self.queue.live.forget(job := job_of_stream(stream), event)
                if job in self.queue.waiting.cooling and isinstance(event, JobVacated):
                    self.start_cooldown(job)

    def record_grouped(self, changes: Sequence[tuple[JobId, JobEvent]]) -> Recording:
        """What is to be recorded of jobs that come in their order: see `record_runs`."""
        return self.record_runs([([job], event) for job, event in changes])

    def record_runs(self, changes: Sequence[HappenedToAll]) -> Recording:
        """
        What is to be recorded of jobs that come in their order: where it is the same for very many, as one event of all.

        It is recorded at once: it names the versions that follow on what was recorded before. What may end jobs that
        want to stay in the queue stands alone, as `record` may have more to say of each.
        """
        apart: list[tuple[str, Event]] = []
        if self.queue.staying.clusters:
            single: list[HappenedToAll] = [([job], event) for jobs, event in changes for job in jobs]
            apart = [(job_stream(jobs[0]), event) for jobs, event in single if self._alone(jobs[0], event)]
            changes = [(jobs, event) for jobs, event in single if not self._alone(jobs[0], event)]
        return [*group_runs(changes, self._next_versions), *apart]

    def _next_versions(self, jobs: Sequence[JobId]) -> Iterator[Procs]:
        """Of jobs of one cluster that share their entry."""
        first, last = jobs[0], jobs[-1]
        if (known := self.queue.version(first)) or self.queue.jobs.find(first) is FRESH:
            if last.proc - first.proc == len(jobs) - 1:
                yield Procs(first.proc, len(jobs), known + 1)
            else:
                yield from (Procs(job.proc, 1, known + 1) for job in jobs)
        else:
            yield from (Procs(job.proc, 1, self.shard.version(job_stream(job)) + 1) for job in jobs)

    def _alone(self, job: JobId, event: JobEvent) -> bool:
        return type(event) in ENDINGS and concerned(self.queue, job)

    def _version(self, stream: str) -> int:
        """
        The version of the stream of a job of which the last was recorded together with others; 0: of others it is not known here.
        """
        queue = self.queue
        return (
            queue.version(job_of_stream(stream)) if queue.changed_together and stream.startswith(JOB) else 0
        )

    def _meta(self, stream: str) -> bytes:
        return trace_meta(self.queue.schedd, stream)

    def _committed(self, frame: Frame) -> None:
        mark(self._checkpointer, frame.number, [self._unsaved.popleft() for _ in frame.entries])


def mark(checkpointer: Checkpointer, frame: int, folded: Iterable[tuple[int, list[Change]]]) -> None:
    """Have what a frame's events (each with its version) changed in the working set saved."""
    puts: dict[str, tuple[int, bytes]] = {}
    drops: set[str] = set()
    for version, changes in folded:
        for change in changes:
            if change.state is None:
                puts.pop(change.stream, None)
                drops.add(change.stream)
            else:
                drops.discard(change.stream)
                puts[change.stream] = (version, change.state)
    checkpointer.mark(frame, puts, drops)


async def restore(
    log: Log, working_set: WorkingSet, shard: Shard, queue: Queue, *, interval: float
) -> Checkpointer:
    """
    Bring a new owner's queue to the head of its shard: the working set, then the tail, which is still to be saved.
    """
    cursor, rows = await working_set.load(shard.name)
    restore_queue(queue, ((row.stream, row.state) for row in rows))
    versions = {row.stream: row.version for row in rows}
    checkpointer = Checkpointer(
        working_set, shard.name, epoch=shard.tenure.epoch, frame=cursor, interval=interval
    )
    async for frame in log.read(shard.name, after=cursor):
        folded: list[tuple[int, list[Change]]] = []
        for entry in frame.entries:
            touched = queue.apply(entry.stream, events.decode(entry.data), frame.at)
            folded.append((entry.version, touched))
            versions[entry.stream] = entry.version
            for change in touched:
                if change.state is None:
                    versions.pop(change.stream, None)
        mark(checkpointer, frame.number, folded)
    shard.adopt(versions)
    return checkpointer
