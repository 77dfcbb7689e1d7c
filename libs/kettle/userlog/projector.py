"""
From recorded events to the lines of job event logs.

Pure.  What a live job's later lines need of its ad is kept from its submission on, and dropped when it has left the
queue.  Jobs without a log are not kept at all.

Two facts shape the order.  The record says at once that a running job is held or removed; the log says it when
the attempt has ended, after the eviction, because that is when tools may touch the job's files.  And an eviction is
written only for an attempt whose start was written.
"""

from collections.abc import Iterator, Mapping
from datetime import tzinfo
from typing import Final, cast, get_args

import msgspec

from kettle.tasks.sentences import step_sentence
from kettle.userlog.attempt_events import evicted, executing, terminated, transfers, written_attributes
from kettle.userlog.event_to_ad import nested
from kettle.userlog.events import (
    OF_CLUSTER,
    Aborted,
    Checkpointed,
    ClusterRemove,
    ClusterSubmit,
    Disconnected,
    Executing,
    FactoryPaused,
    FactoryResumed,
    Generic,
    Held,
    LogEvent,
    Reconnected,
    ReconnectFailed,
    Released,
    Resource,
    Submitted,
    Suspended,
    Unsuspended,
)
from kettle.userlog.job_ad_information import JobAds
from kettle.userlog.node_events import node_executing, node_terminated
from kettle.userlog.projector_state import Cluster, Job, ProjectorState, notes_of
from kettle.userlog.routed_lines import LogLine, RoutedLines
from kettle.userlog.routes import OwnLogs, Routes, names_in
from kettle.userlog.usage import Allocation, cpu_times, plus, table
from kettle_wire.ads.types import Scalar
from kettle_wire.attempts import Ending, Usage
from kettle_wire.codes import VacateCode
from kettle_wire.event_expansion import expanded
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClusterSubmitted,
    Event,
    FactoryChanged,
    FactoryClosed,
    FactoryMaterialized,
    JobAssigned,
    JobCheckpointed,
    JobCompleted,
    JobContinued,
    JobDisconnected,
    JobEvent,
    JobHeld,
    JobKept,
    JobLeft,
    JobNodeEnded,
    JobNodeStarted,
    JobReconnected,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobStepped,
    JobSuspended,
    JobTold,
    JobVacated,
    Transfer,
    decode,
)
from kettle_wire.frames import Frame
from kettle_wire.jobs import JobId

FIRST_OF_INPUT, FIRST_OF_OUTPUT = 1, 4
"""The kinds of event 040 that say that files wait for their turn."""
_OF_JOBS: Final = get_args(JobEvent)


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(ProjectorState)


class UserLogProjector:
    """
    Processes the frames of one schedd's shard in order, and returns which lines go to which files.

    `address` is the access point in event 000, without angle brackets, `options` are HTCondor's default options for
    logs, `schedd` is the name in the GlobalJobId of jobs. No lines are made for the frames up to `since`, and for those that were
    recorded up to `told_until`, microseconds since the epoch; a snapshot knows its own.
    """

    def __init__(
        self,
        address: str,
        *,
        zone: tzinfo | None = None,
        snapshot: bytes = b"",
        routes: Routes | None = None,
        options: str = "",
        schedd: str = "",
        since: int = 0,
        told_until: int = 0,
    ) -> None:
        self._address = address
        begun = ProjectorState(since=since, told_until=told_until)
        self._state = _decoder.decode(snapshot) if snapshot else begun
        self._options = options
        self._ads = JobAds(self._state.told, schedd)
        self._routes = OwnLogs() if routes is None else routes
        self._line = RoutedLines(self._state, self._routes, self._ads, zone).lines

    @property
    def frame(self) -> int:
        """The last frame that was fed."""
        return self._state.frame

    @property
    def at(self) -> int:
        """When that was recorded, microseconds since the epoch; 0: nobody knows."""
        return self._state.at

    @property
    def lines(self) -> int:
        """How many lines were given, by this one and by those whose snapshots it goes on from."""
        return self._state.lines

    def snapshot(self) -> bytes:
        """Everything needed to go on after `frame`."""
        return _encoder.encode(self._state)

    def feed(self, frame: Frame) -> list[LogLine]:
        """The lines that this frame adds, in order; none for a frame that was fed before."""
        if frame.number <= self._state.frame:
            return []
        lines: list[LogLine] = []
        for entry in expanded(frame).entries:
            kind, _, name = entry.stream.partition("/")
            if kind in {"cluster", "factory", "job", "claim"}:
                lines.extend(self._lines(name, decode(entry.data), frame.at))
        self._state.frame, self._state.at = frame.number, frame.at
        if frame.number <= self._state.since or 0 < frame.at <= self._state.told_until:
            return []
        self._state.lines += len(lines)
        return lines

    def _lines(self, name: str, event: Event, at_us: int) -> Iterator[LogLine]:
        at = at_us / 1_000_000
        match event:
            case ClusterSubmitted():
                yield from self._submitted(event, at_us)
            case FactoryMaterialized(cluster=cluster, first=first, count=count):
                yield from self._made(cluster, range(first, first + count), at)
            case FactoryClosed(cluster=cluster, count=count, reason=reason):
                if cluster in self._state.clusters:
                    self._state.clusters[cluster].closed = reason
                yield from self._fewer(cluster, count, at)
            case FactoryChanged():
                yield from self._changed(event, at)
            case ClaimGranted():
                self._state.claims[event.claim] = Allocation.from_ad(event.slot_ad)
            case ClaimEnded():
                self._state.claims.pop(event.claim, None)
            case _:
                job = JobId.parse(name)
                if job.cluster in self._state.clusters:
                    if job.cluster in self._state.told and isinstance(event, _OF_JOBS):
                        self._ads.happened(job, cast("JobEvent", event), at_us)
                    yield from self._of_staying(job, event, at)

    def _submitted(self, event: ClusterSubmitted, at_us: int) -> Iterator[LogLine]:
        cluster, at = Cluster.of(event, self._options), at_us / 1_000_000
        if not self._routes.has_any(cluster.names):
            return
        self._state.clusters[event.cluster] = cluster
        if self._routes.wants_ads(cluster.names) or "SubmitEventNotesAttrs" in cluster.names:
            self._ads.submitted(event, at_us)
        if not event.late:
            yield from self._made(event.cluster, range(len(event.rows)), at)
            return
        yield from self._line(
            ClusterSubmit(
                job=JobId(event.cluster, OF_CLUSTER),
                at=at,
                host=f"<{self._address}>",
                notes=notes_of(cluster.ad),
            )
        )

    def _changed(self, event: FactoryChanged, at: float) -> Iterator[LogLine]:
        """Changes of pace are not written, only that jobs are no longer made, or are made again."""
        cluster = self._state.clusters.get(event.cluster)
        if cluster is None or cluster.paused == bool(event.paused):
            return
        cluster.paused = bool(event.paused)
        job = JobId(event.cluster, OF_CLUSTER)
        if cluster.paused:
            yield from self._line(FactoryPaused(job=job, at=at, reason=event.reason, code=event.paused))
        else:
            yield from self._line(FactoryResumed(job=job, at=at, reason=event.reason))

    def _made(self, cluster: int, procs: range, at: float) -> Iterator[LogLine]:
        """Jobs are in the queue now."""
        for proc in procs if cluster in self._state.clusters else ():
            job = JobId(cluster, proc)
            self._state.clusters[cluster].made = proc + 1
            notes = self._notes(job)
            yield from self._line(Submitted(job=job, at=at, host=f"<{self._address}>", notes=notes))

    def _notes(self, job: JobId) -> list[str]:
        """What a job says of its submission; attributes are told as an ad where there are no words."""
        ad = self._ad(job)
        names, notes = names_in(ad.get("SubmitEventNotesAttrs")), notes_of(ad)
        if names and not ad.get("SubmitEventNotes") and (said := self._ads.said(job, names)):
            return [nested(written_attributes(list(said.items()))).expr, *notes[1:]]
        return notes

    def _of_staying(self, job: JobId, event: Event, at: float) -> Iterator[LogLine]:
        """Of a job that has ended, and is only kept in the queue, the log says nothing more."""
        state = self._state.jobs.setdefault(str(job), Job())
        if isinstance(event, JobKept | JobLeft):
            state.kept = isinstance(event, JobKept)
            if state.ended and not state.kept:
                yield from self._gone(job, at)
        elif isinstance(event, JobNodeStarted):
            own = Job(claim=event.claim, slot=event.slot, startd=event.slot.rpartition("@")[2])
            yield from self._line(node_executing(event.node, self._executing(job, own, at)))
        elif isinstance(event, JobNodeEnded):
            if event.exit is not None:
                yield from self._line(node_terminated(event.node, job, event.exit, event.usage, at))
        elif not state.ended:
            yield from self._of_job(job, event, at)

    def _of_job(self, job: JobId, event: Event, at: float) -> Iterator[LogLine]:
        state = self._state.jobs.setdefault(str(job), Job())
        match event:
            case JobAssigned():
                state.attempt, state.claim, state.started_at = event.attempt, event.claim, 0.0
                state.slot, state.startd, state.disconnected = event.slot, event.startd, False
            case JobStarted():
                state.started_at = event.at or at
                yield from self._moved(job, state, event.input, FIRST_OF_INPUT)
                yield from self._line(self._executing(job, state, at))
            case JobSuspended(processes=processes) if state.started_at:
                yield from self._line(Suspended(job=job, at=at, processes=processes))
            case JobContinued() if state.started_at:
                yield from self._line(Unsuspended(job=job, at=at))
            case JobDisconnected() | JobReconnected() | JobCheckpointed() if state.started_at:
                yield from self._line(self._meanwhile(job, state, event, at))
            case JobVacated():
                yield from self._vacated(job, state, event, at)
            case JobCompleted():
                yield from self._completed(job, state, event, at)
            case JobHeld() | JobReleased() | JobRemoved():
                if state.attempt:
                    state.put_off(event)
                else:
                    yield from self._said(job, event, at)
            case _:
                yield from self._said(job, event, at)

    def _meanwhile(
        self, job: JobId, state: Job, event: JobDisconnected | JobReconnected | JobCheckpointed, at: float
    ) -> LogEvent:
        match event:
            case JobCheckpointed(usage=usage):
                return Checkpointed(job=job, at=at, remote=cpu_times(usage), sent=usage.sent)
            case JobDisconnected(reason=reason):
                state.disconnected = True
                return Disconnected(job=job, at=at, slot=state.slot, host=self._host(state), reason=reason)
            case JobReconnected():
                state.disconnected = False
                return Reconnected(job=job, at=at, slot=state.slot, host=self._host(state))

    def _host(self, state: Job) -> str:
        """The address of the startd, from the slot's ad when the claim was granted."""
        allocation = self._state.claims.get(state.claim, Allocation())
        return f"<{allocation.address or f'0.0.0.0:0?alias={state.startd}'}>"

    def _moved(self, job: JobId, state: Job, moved: Transfer | None, first: int) -> Iterator[LogLine]:
        for event in transfers(job, moved, first, self._host(state)):
            yield from self._line(event)

    def _executing(self, job: JobId, state: Job, at: float) -> Executing:
        allocation = self._state.claims.get(state.claim, Allocation())
        return executing(job, at, self._host(state), state.slot, allocation, self._ad(job))

    def _usage_table(self, job: JobId, state: Job, usage: Usage, *, execute: float = 0.0) -> list[Resource]:
        allocation = self._state.claims.get(state.claim, Allocation())
        return table(self._ad(job), allocation, usage, execute=execute)

    def _vacated(self, job: JobId, state: Job, event: JobVacated, at: float) -> Iterator[LogLine]:
        ending, usage = event.ending, event.usage
        code, subcode, reason = ending.code, 0, ending.reason
        waiting = state.put_off_so_far()
        for said in waiting:
            match said:
                case JobHeld():
                    code, subcode, reason = said.code, said.subcode, said.reason
                case JobRemoved():
                    code, subcode, reason = VacateCode.JobRemoved, 0, said.reason
                case _:
                    pass
        state.total = plus(state.total, usage)
        if state.disconnected and ending.code == VacateCode.ReconnectFailed:
            yield from self._line(ReconnectFailed(job=job, at=at, slot=state.slot, reason=ending.reason))
        elif state.started_at:
            ran = event.exit
            yield from self._moved(job, state, ran.output if ran is not None else None, FIRST_OF_OUTPUT)
            yield from self._line(
                evicted(job, at, (code, subcode, reason), event, self._usage_table(job, state, usage))
            )
        state.waiting, state.attempt, state.started_at, state.disconnected = [], 0, 0.0, False
        for said in waiting:
            yield from self._said(job, said, at)

    def _completed(self, job: JobId, state: Job, event: JobCompleted, at: float) -> Iterator[LogLine]:
        if any(isinstance(said, JobRemoved) for said in state.put_off_so_far()):
            # It ended while it was being removed. One terminal event, and removed is what was asked for.
            yield from self._vacated(
                job,
                state,
                JobVacated(
                    attempt=event.attempt,
                    ending=Ending(code=VacateCode.JobRemoved, reason=""),
                    usage=event.usage,
                ),
                at,
            )
            return
        state.total = plus(state.total, event.usage)
        yield from self._moved(job, state, event.exit.output, FIRST_OF_OUTPUT)
        execute = event.exit.at - state.started_at if event.exit.at and state.started_at else 0.0
        resources = self._usage_table(job, state, event.usage, execute=execute)
        yield from self._line(terminated(job, at, event, state.total, resources))
        yield from self._gone(job, at)

    def _said(self, job: JobId, event: Event, at: float) -> Iterator[LogLine]:
        match event:
            case JobHeld():
                yield from self._line(
                    Held(job=job, at=at, reason=event.reason, code=event.code, subcode=event.subcode)
                )
            case JobReleased():
                yield from self._line(Released(job=job, at=at, reason=event.reason))
            case JobTold(notes=notes):
                for note in notes:
                    yield from self._line(Generic(job=job, at=at, info=note))
            case JobStepped(steps=steps):
                for step in steps:
                    yield from self._line(Generic(job=job, at=at, info=step_sentence(step)))
            case JobRemoved():
                yield from self._line(Aborted(job=job, at=at, reason=event.reason))
                yield from self._gone(job, at)
            case _:
                pass

    def _gone(self, job: JobId, at: float) -> Iterator[LogLine]:
        state = self._state.jobs.get(str(job))
        self._ads.gone(job)
        if state is not None and state.kept:
            self._state.jobs[str(job)] = Job(kept=True, ended=True)
            return
        self._state.jobs.pop(str(job), None)
        yield from self._fewer(job.cluster, 1, at)

    def _fewer(self, number: int, count: int, at: float) -> Iterator[LogLine]:
        cluster = self._state.clusters.get(number)
        if cluster is None:
            return
        cluster.live -= count
        if cluster.live > 0:
            return
        if cluster.late:
            yield from self._line(
                ClusterRemove(
                    job=JobId(number, OF_CLUSTER),
                    at=at,
                    jobs=cluster.made,
                    items=cluster.items,
                    completion=cluster.completion,
                    reason=cluster.closed,
                )
            )
        del self._state.clusters[number]
        self._ads.over(number)

    def _ad(self, job: JobId) -> Mapping[str, Scalar]:
        return self._state.clusters[job.cluster].ad_of(job.proc)
