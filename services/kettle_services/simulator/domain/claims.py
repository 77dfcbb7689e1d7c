"""What runs where: claims of all schedds on all machines, the attempts on them, and how these end."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol

from kettle.classad import ClassAd, Context
from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_services.simulator.domain.clock import ENDS, US, Clock
from kettle_services.simulator.domain.period import Period
from kettle_services.simulator.domain.schedd import Schedd
from kettle_services.simulator.domain.startds import Startds
from kettle_services.simulator.domain.submitter_sums import Tally
from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.codes import VacateCode
from kettle_wire.commands.schedd import MatchedSlot
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    Event,
    JobAssigned,
    JobCompleted,
    JobHeld,
    JobReleased,
    JobRemoved,
    JobRouted,
    JobStarted,
    JobUnrouted,
    JobVacated,
)
from kettle_wire.jobs import JobId

_LEASE: Final = 1200.0
_ALLOWED: Final[Mapping[type[Event], tuple[str, ...]]] = {
    JobHeld: ("idle", "running"),
    JobReleased: ("held",),
    JobRemoved: ("idle", "running", "held"),
}
"""In which statuses something can be done to a job."""
Then = Callable[[], None]


class Files(Protocol):
    """How files of jobs are moved before and after their programs."""

    def run(
        self, clock: Clock, job: JobId, user: str, startd: str, work: int, *, begun: Then, ended: Then
    ) -> None:
        """
        A job has a claim: move what it reads, let its program run for so long, move what it writes.

        `begun` is called when its program begins, `ended` when all is over; neither, if it is `lost` before.
        """
        ...

    def lost(self, clock: Clock, job: JobId) -> None:
        """Its attempt is over: nothing of it is moved any more."""
        ...


Record = Callable[[int, str, str, Event], None]
"""Receives each event of a queue: when, shard, stream, event."""


def forget(at: int, shard: str, stream: str, event: Event) -> None:
    """Nobody wants it."""


class Running:
    """All schedds with their claims; `stir` is called whenever a cycle may be useful."""

    def __init__(
        self,
        clock: Clock,
        period: Period,
        startds: Startds,
        *,
        worklife: float,
        context: Context,
        stir: Callable[[], None],
        record: Record = forget,
    ) -> None:
        self._recorded = record
        self.schedds = {
            shard: Schedd(queue, period.significant, clock=lambda: clock.seconds)
            for shard, queue in period.queues().items()
        }
        self.tally = Tally(period.since, period.until)
        self.refused = 0
        """Matches that no startd would have accepted."""
        self.dirty: dict[tuple[str, str], None] = {}
        """Submitters, by shard, whose demand is not what was last said."""
        self._clock, self._period, self._startds = clock, period, startds
        self._worklife, self._context, self._stir = round(worklife * US), context, stir
        self._began: dict[tuple[str, JobId], int] = {}
        self._saved: dict[tuple[str, JobId], int] = {}
        """How much of jobs is done already, because it was saved."""
        self._claims = 0
        self._first_claims = {claim for each in self.schedds.values() for claim in each.queue.claims}
        self.files: Files | None = None
        """None: files take no time."""

    # -- from outside ------------------------------------------------------------------------------------------------

    def begin(self, shard: str) -> None:
        """Take a queue over as it was."""
        schedd = self.schedds[shard]
        queue = schedd.queue
        for submitter in list(queue.tally.by_submitter):
            self.changed(shard, submitter)
        for job in sorted(queue.waiting.cooling):
            queue.cooled(job)
        self.undefer(shard)
        for claim in sorted(queue.claims):
            held = queue.claims[claim]
            if held.once:
                continue
            granted = held.granted
            self.tally.held(granted, held.at)
            there = self._startds.restore(
                granted.slot, granted.slot_ad, claim=claim, submitter=granted.submitter, schedd=schedd.name
            )
            if not there:
                self.lose(shard, claim, VacateCode.ReconnectFailed, "its machine was not there")
            elif held.job is None:
                self._reuse(shard, claim)
            elif queue.jobs[held.job].job.status != "running":
                self.lose(shard, claim, VacateCode.UserVacateJob, "it was about to end")
            else:
                stream = job_stream(held.job)
                self._goes_on(shard, claim, held.job, self._period.works[shard].began.get(stream, held.at))

    def submitted(self, shard: str, stream: str, event: Event, cluster: int) -> None:
        """Jobs have come, or are to come in another way."""
        queue = self.schedds[shard].queue
        self._record(shard, stream, event)
        if cluster in queue.clusters:
            charged = queue.clusters[cluster].charged
            if isinstance(charged, str):
                names = {charged}
            else:
                names = {queue.submitter(job) for job in queue.clusters[cluster].jobs()}
            for name in sorted(names):
                self.changed(shard, name)
        self.undefer(shard)
        self._stir()

    def acted(self, shard: str, job: JobId, event: JobHeld | JobReleased | JobRemoved) -> None:
        """Somebody held, released or removed a job; unless it is over by now."""
        queue = self.schedds[shard].queue
        entry = queue.jobs.get(job)
        if entry is None or entry.job.status not in _ALLOWED[type(event)]:
            return
        submitter, claim = queue.submitter(job), entry.job.claim
        self._record(shard, job_stream(job), event)
        if claim:
            code = VacateCode.JobRemoved if isinstance(event, JobRemoved) else VacateCode.UserVacateJob
            self._vacate(shard, job, code, event.reason)
            self._reuse(shard, claim)
        self.undefer(shard)
        self.changed(shard, submitter)
        self._stir()

    def routed(self, shard: str, job: JobId, event: JobRouted | JobUnrouted) -> None:
        """An entrypoint has given a job a route, or said why it has none."""
        self._record(shard, job_stream(job), event)
        self.changed(shard, self.schedds[shard].queue.submitter(job))
        self._stir()

    def undefer(self, shard: str) -> None:
        """Jobs that start at a time of their own start when they can."""
        queue = self.schedds[shard].queue
        for job in sorted(queue.waiting.unplanned):
            queue.due(job)
        queue.waiting.unplanned.clear()

    def changed(self, shard: str, submitter: str) -> None:
        """Its demand differs from the published one."""
        self.dirty[shard, submitter] = None

    def lost(self, claim: str, code: int, reason: str) -> None:
        """A claim of any schedd is over, and the attempt on it."""
        for shard, schedd in self.schedds.items():
            if claim in schedd.queue.claims:
                self.lose(shard, claim, code, reason)

    # -- matches -----------------------------------------------------------------------------------------------------

    def matched(self, shard: str, match: MatchedSlot, cycle: int) -> None:
        """Claim a slot for as many jobs as it was matched to."""
        schedd = self.schedds[shard]
        schedd.cycles[match.submitter] = cycle
        slot = match.slot
        for name in [match.slot, *(part.slot for part in match.also)]:
            if (claim := self._startds.holder(name)) is not None:
                slot = self._startds.whole(claim)
                self.lost(claim, VacateCode.StartdPreemptingClaimUserPrio, "the pool prefers another")
        for _ in range(match.count):
            job = schedd.queue.demand.next_job(match.submitter, match.autocluster)
            if job is None or not self._claim(shard, slot, job, match):
                break
        self.changed(shard, match.submitter)

    def _claim(self, shard: str, slot: str, job: JobId, match: MatchedSlot) -> bool:
        schedd = self.schedds[shard]
        claim = self._new_claim()
        ad = self._startds.claim(
            slot,
            ClassAd.from_wire(schedd.queue.ad(job)),
            claim=claim,
            submitter=match.submitter,
            schedd=schedd.name,
            context=self._context,
        )
        if ad is None:
            self.refused += 1
            return False
        granted = ClaimGranted(
            claim=claim,
            startd=match.startd,
            slot=str(ad["Name"]),
            slot_ad=ad,
            submitter=match.submitter,
            autocluster=match.autocluster,
            lease=_LEASE,
            limits=match.limits,
        )
        self._record(shard, f"claim/{claim}", granted)
        self._assign(shard, claim, job)
        return True

    def _new_claim(self) -> str:
        """
        A name that no claim has, nor had when the period began: that may be one of a pool that was simulated.
        """
        while True:
            self._claims += 1
            if (claim := f"simulated#{self._claims}") not in self._first_claims:
                return claim

    # -- attempts ----------------------------------------------------------------------------------------------------

    def started(self, shard: str, job: JobId, attempt: int) -> None:
        """Record that the program of an attempt runs, unless the attempt is over by now."""
        entry = self.schedds[shard].queue.jobs.get(job)
        if entry is not None and (entry.job.status, entry.job.attempt.number) == ("running", attempt):
            self._record(shard, job_stream(job), JobStarted(attempt=attempt, at=self._clock.seconds))

    def _record(self, shard: str, stream: str, event: Event) -> None:
        queue = self.schedds[shard].queue
        self.tally.note(queue, self._period.arrivals[shard], stream, event, self._clock.now)
        queue.apply(stream, event, self._clock.now)
        self._recorded(self._clock.now, shard, stream, event)

    def _assign(self, shard: str, claim: str, job: JobId) -> None:
        queue = self.schedds[shard].queue
        granted, attempt = queue.claims[claim].granted, queue.jobs[job].job.attempt.number + 1
        event = JobAssigned(attempt=attempt, claim=claim, slot=granted.slot, startd=granted.startd)
        self._record(shard, job_stream(job), event)
        self.changed(shard, granted.submitter)
        self._goes_on(shard, claim, job, self._clock.now)

    def _goes_on(self, shard: str, claim: str, job: JobId, began: int) -> None:
        """The attempt that began then will end."""
        queue = self.schedds[shard].queue
        self._began[shard, job] = began
        startd = queue.claims[claim].granted.startd
        work = self._period.works[shard].of(job, job_stream(job), lambda: queue.ad(job), startd)
        if work is None:
            return
        left = max(0, work - self._saved.get((shard, job), 0))
        attempt = queue.jobs[job].job.attempt.number

        def ended() -> None:
            self._ended(shard, claim, job, attempt)

        if self.files is None:
            self._clock.at(began + left, ended, turn=ENDS)
            return
        submitter = queue.claims[claim].granted.submitter
        begun = partial(self.started, shard, job, attempt)
        self.files.run(self._clock, job, submitter, startd, left, begun=begun, ended=ended)

    def _ended(self, shard: str, claim: str, job: JobId, attempt: int) -> None:
        queue = self.schedds[shard].queue
        entry = queue.jobs.get(job)
        if entry is None or entry.job.claim != claim or entry.job.attempt.number != attempt:
            return  # it was ended before
        self.changed(shard, queue.submitter(job))
        self._record(shard, job_stream(job), JobCompleted(attempt=attempt, exit=ExitRecord(code=0)))
        self._began.pop((shard, job), None)
        self._saved.pop((shard, job), None)
        self._reuse(shard, claim)

    def _vacate(self, shard: str, job: JobId, code: int, reason: str) -> None:
        """An attempt ends, and its job does not; what is not saved of it is lost."""
        if self.files is not None:
            self.files.lost(self._clock, job)
        stream = job_stream(job)
        elapsed = self._clock.now - self._began.pop((shard, job), self._clock.now)
        if saved := self._period.works[shard].saved(stream, elapsed):
            self._saved[shard, job] = self._saved.get((shard, job), 0) + saved
        attempt = self.schedds[shard].queue.jobs[job].job.attempt.number
        self._record(shard, stream, JobVacated(attempt=attempt, ending=Ending(code=code, reason=reason)))
        self.undefer(shard)

    # -- claims ------------------------------------------------------------------------------------------------------

    def _reuse(self, shard: str, claim: str) -> None:
        """Give the next job to a claim that has become free, or end it."""
        schedd = self.schedds[shard]
        if self._clock.now - schedd.queue.claims[claim].at > self._worklife:
            self._end(shard, claim, "the claim has served its time, and others shall have their turn")
            return
        if self._startds.drains(claim):
            self._end(shard, claim, "its machine takes no more jobs")
            return
        match schedd.succession.next(claim):
            case JobId() as job:
                self._assign(shard, claim, job)
            case reason:
                self._end(shard, claim, reason)

    def _end(self, shard: str, claim: str, reason: str) -> None:
        submitter = self.schedds[shard].queue.claims[claim].granted.submitter
        self._record(shard, f"claim/{claim}", ClaimEnded(claim=claim, reason=reason))
        self.schedds[shard].succession.forget(claim)
        self._startds.free(claim)
        self.changed(shard, submitter)
        self._stir()

    def lose(self, shard: str, claim: str, code: int, reason: str) -> None:
        """A claim is over, and the attempt on it."""
        job = self.schedds[shard].queue.claims[claim].job
        if job is not None:
            self._vacate(shard, job, code, reason)
        self._end(shard, claim, reason)
