"""
From recorded events to the lines of job event logs.

Pure.  What a live job's later lines need of its ad is kept from its submission on, and dropped when it has left the
queue.  Jobs without a log are not kept at all.

Two facts shape the order.  The record says at once that a running job is held or removed; the log says it when
the attempt has ended, after the eviction, because that is when tools may touch the job's files.  And an eviction is
written only for an attempt whose start was written.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from pathlib import PurePosixPath
from typing import Final, NamedTuple

import msgspec

from kettle.userlog.events import (
    Aborted,
    Checkpointed,
    Disconnected,
    Evicted,
    Executing,
    FileTransfer,
    Generic,
    Held,
    LogEvent,
    Reconnected,
    ReconnectFailed,
    Released,
    Submitted,
    Suspended,
    Terminated,
    Unsuspended,
)
from kettle.userlog.render import render
from kettle.userlog.state import Cluster, Job, State
from kettle.userlog.usage import Allocation, cpu_times, plus, table, termination
from kettle.wire.ads.types import Scalar
from kettle.wire.events import (
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
    JobHeld,
    JobKept,
    JobLeft,
    JobReconnected,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobSuspended,
    JobTold,
    JobVacated,
    Transfer,
    decode,
)
from kettle.wire.expansion import expanded
from kettle.wire.frames import Frame
from kettle.wire.jobs import JobId

FIRST_OF_INPUT, FIRST_OF_OUTPUT = 1, 4
"""The kinds of event 040 that say that files wait for their turn."""
_JOB_REMOVED: Final = 1023
"""HTCondor's VacateReasonCode of an attempt that was ended because its job was removed."""
_RECONNECT_FAILED: Final = 1008
_SHOULD_REQUEUE: Final = 1005
"""The code of one that ran to its end, and whose job goes back into the queue."""


class Line(NamedTuple):
    """One event for one file."""

    path: PurePosixPath
    text: str


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(State)


class UserLogProjector:
    """
    Fed the frames of one schedd's shard in order, it says which lines go to which files.

    `address` is what event 000 calls the access point, without angle brackets.
    """

    def __init__(self, address: str, *, zone: tzinfo | None = None, snapshot: bytes = b"") -> None:
        self._address = address
        self._zone = zone
        self._state = _decoder.decode(snapshot) if snapshot else State()

    @property
    def frame(self) -> int:
        """The last frame that was fed."""
        return self._state.frame

    def snapshot(self) -> bytes:
        """Everything needed to go on after `frame`."""
        return _encoder.encode(self._state)

    def feed(self, frame: Frame) -> list[Line]:
        """The lines that this frame adds, in order; none for a frame that was fed before."""
        if frame.number <= self._state.frame:
            return []
        at = frame.at // 1_000_000
        lines: list[Line] = []
        for entry in expanded(frame).entries:
            kind, _, name = entry.stream.partition("/")
            if kind in {"cluster", "factory", "job", "claim"}:
                lines.extend(self._lines(name, decode(entry.data), at))
        self._state.frame = frame.number
        return lines

    def _lines(self, name: str, event: Event, at: int) -> Iterator[Line]:
        match event:
            case ClusterSubmitted():
                yield from self._submitted(event, at)
            case FactoryMaterialized(cluster=cluster, first=first, count=count):
                yield from self._made(cluster, range(first, first + count), at)
            case FactoryClosed(cluster=cluster, count=count):
                self._fewer(cluster, count)
            case FactoryChanged():
                pass  # how fast jobs are made is not told
            case ClaimGranted():
                self._state.claims[event.claim] = Allocation.from_ad(event.slot_ad)
            case ClaimEnded():
                self._state.claims.pop(event.claim, None)
            case _:
                job = JobId.parse(name)
                if job.cluster in self._state.clusters:
                    yield from self._of_staying(job, event, at)

    def _submitted(self, event: ClusterSubmitted, at: int) -> Iterator[Line]:
        cluster = Cluster.of(event)
        if not cluster.has_log:
            return
        self._state.clusters[event.cluster] = cluster
        if not event.late:
            yield from self._made(event.cluster, range(len(event.rows)), at)

    def _made(self, cluster: int, procs: range, at: int) -> Iterator[Line]:
        """Jobs are in the queue now."""
        for proc in procs if cluster in self._state.clusters else ():
            job = JobId(cluster, proc)
            ad = self._ad(job)
            said = (ad.get("SubmitEventNotes"), ad.get("SubmitEventUserNotes"))
            notes = [note for note in said if isinstance(note, str)]
            yield from self._line(Submitted(job=job, at=at, host=f"<{self._address}>", notes=notes))

    def _of_staying(self, job: JobId, event: Event, at: int) -> Iterator[Line]:
        """Of a job that has ended, and is only kept in the queue, the log says nothing more."""
        state = self._state.jobs.setdefault(str(job), Job())
        if isinstance(event, JobKept | JobLeft):
            state.kept = isinstance(event, JobKept)
            if state.ended and not state.kept:
                self._gone(job)
        elif not state.ended:
            yield from self._of_job(job, event, at)

    def _of_job(self, job: JobId, event: Event, at: int) -> Iterator[Line]:
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
        self, job: JobId, state: Job, event: JobDisconnected | JobReconnected | JobCheckpointed, at: int
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
        """The address of the startd, as the slot's ad said when the claim was granted."""
        allocation = self._state.claims.get(state.claim, Allocation())
        return f"<{allocation.address or f'0.0.0.0:0?alias={state.startd}'}>"

    def _moved(self, job: JobId, state: Job, moved: Transfer | None, first: int) -> Iterator[Line]:
        """Files were moved on their own: queued, started, finished, each with its time."""
        if moved is None:
            return
        began, ended = int(moved.began), int(moved.ended)
        queued = round(moved.queued)
        yield from self._line(FileTransfer(job=job, at=int(max(0.0, moved.began - moved.queued)), kind=first))
        yield from self._line(
            FileTransfer(job=job, at=began, kind=first + 1, queued=queued, host=self._host(state))
        )
        yield from self._line(FileTransfer(job=job, at=ended, kind=first + 2))

    def _executing(self, job: JobId, state: Job, at: int) -> LogEvent:
        allocation = self._state.claims.get(state.claim, Allocation())
        return Executing(
            job=job,
            at=at,
            host=self._host(state),
            slot=state.slot,
            attributes=[(n, str(v)) for n, v in allocation.attributes() if v is not None],
        )

    def _vacated(self, job: JobId, state: Job, event: JobVacated, at: int) -> Iterator[Line]:
        code, subcode, reason, usage = event.code, 0, event.reason, event.usage
        waiting = state.put_off_so_far()
        for said in waiting:
            match said:
                case JobHeld():
                    code, subcode, reason = said.code, said.subcode, said.reason
                case JobRemoved():
                    code, subcode, reason = _JOB_REMOVED, 0, said.reason
                case _:
                    pass
        state.total = plus(state.total, usage)
        if state.disconnected and event.code == _RECONNECT_FAILED:
            yield from self._line(ReconnectFailed(job=job, at=at, slot=state.slot, reason=event.reason))
        elif state.started_at:
            yield from self._moved(job, state, event.output, FIRST_OF_OUTPUT)
            yield from self._line(
                Evicted(
                    job=job,
                    at=at,
                    code=code,
                    subcode=subcode,
                    requeued=termination(event) if event.exited and event.code == _SHOULD_REQUEUE else None,
                    remote=cpu_times(usage),
                    sent=usage.sent,
                    received=usage.received,
                    reason=reason,
                    resources=table(self._ad(job), self._state.claims.get(state.claim, Allocation()), usage),
                )
            )
        state.waiting, state.attempt, state.started_at, state.disconnected = [], 0, 0.0, False
        for said in waiting:
            yield from self._said(job, said, at)

    def _completed(self, job: JobId, state: Job, event: JobCompleted, at: int) -> Iterator[Line]:
        if any(isinstance(said, JobRemoved) for said in state.put_off_so_far()):
            # It ended while it was being removed. One terminal event, and removed is what was asked for.
            yield from self._vacated(
                job,
                state,
                JobVacated(attempt=event.attempt, code=_JOB_REMOVED, reason="", usage=event.usage),
                at,
            )
            return
        state.total = plus(state.total, event.usage)
        exited = datetime.fromtimestamp(int(event.at) or at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        how = (
            f"signal {event.exit_signal}" if event.exit_signal is not None else f"exit-code {event.exit_code}"
        )
        yield from self._moved(job, state, event.output, FIRST_OF_OUTPUT)
        execute = event.at - state.started_at if event.at and state.started_at else 0.0
        yield from self._line(
            Terminated(
                job=job,
                at=at,
                ending=termination(event),
                run_remote=cpu_times(event.usage),
                total_remote=cpu_times(state.total),
                sent=event.usage.sent,
                received=event.usage.received,
                total_sent=state.total.sent,
                total_received=state.total.received,
                resources=table(
                    self._ad(job),
                    self._state.claims.get(state.claim, Allocation()),
                    event.usage,
                    execute=execute,
                ),
                ticket=f"Job terminated of its own accord at {exited} with {how}.",
            )
        )
        self._gone(job)

    def _said(self, job: JobId, event: Event, at: int) -> Iterator[Line]:
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
            case JobRemoved():
                yield from self._line(Aborted(job=job, at=at, reason=event.reason))
                self._gone(job)
            case _:
                pass

    def _gone(self, job: JobId) -> None:
        state = self._state.jobs.get(str(job))
        if state is not None and state.kept:
            self._state.jobs[str(job)] = Job(kept=True, ended=True)
            return
        self._state.jobs.pop(str(job), None)
        self._fewer(job.cluster, 1)

    def _fewer(self, number: int, count: int) -> None:
        cluster = self._state.clusters.get(number)
        if cluster is not None:
            cluster.live -= count
            if cluster.live <= 0:
                del self._state.clusters[number]

    def _ad(self, job: JobId) -> Mapping[str, Scalar]:
        return self._state.clusters[job.cluster].ad_of(job.proc)

    def _line(self, event: LogEvent) -> Iterator[Line]:
        ad = self._ad(event.job)
        log, iwd = ad.get("UserLog"), ad.get("Iwd")
        if not isinstance(log, str) or not log:
            return
        path = PurePosixPath(iwd if isinstance(iwd, str) else "", log)
        if path.is_absolute():  # relative to nothing is nobody's file
            yield Line(path, render(event, self._zone))
