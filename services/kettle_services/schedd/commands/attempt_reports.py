"""What the negotiator and the shadows say to the schedd."""

import math
import time
from collections.abc import Sequence
from typing import Final, assert_never

import msgspec

from kettle.eventsourcing.command_pipeline import Decision
from kettle.jobs import chirp_updates
from kettle_services.schedd.claims.gangs import GangClaims
from kettle_services.schedd.claims.lifecycle import ClaimLifecycle
from kettle_services.schedd.commands.reported_files import sane_files
from kettle_services.schedd.domain.jobs.commands import (
    Begin,
    Checkpoint,
    Command,
    Continue,
    End,
    Hold,
    Pass,
    Suspend,
    Tell,
)
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.jobs.gang import NodeBegin, NodeEnd
from kettle_services.schedd.domain.jobs.job import Job
from kettle_services.schedd.domain.jobs.resource_retry import grown
from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_services.schedd.jobs.policies import Policies
from kettle_services.schedd.jobs.routed_ends import RoutedEnds
from kettle_services.schedd.negotiation.significance import learn_significant
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.queue.time_slice import TimeSlice
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch, fitting
from kettle_wire.ads import Ad
from kettle_wire.attempts import AttemptResult, Ending
from kettle_wire.codes import REFUSED_ACTIVATIONS, HoldCode, Universe, VacateCode
from kettle_wire.commands.attempt_reports import (
    AttemptReport,
    AttemptsRecorded,
    Began,
    Continued,
    Ended,
    ReportAttempts,
    Saved,
    ShadowOrders,
    ShadowSync,
    Stepped,
    Suspended,
    Told,
    Used,
)
from kettle_wire.commands.node_reports import NodeBegan, NodeEnded
from kettle_wire.commands.schedd import Matched, MatchedSlot
from kettle_wire.commands.shadow import Assignment
from kettle_wire.commands.startd import Done
from kettle_wire.endpoint import Position
from kettle_wire.events import JobEvent, Transfer, Usage
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId
from kettle_wire.tasks import Step

_LARGEST: Final = 1e15
_LONGEST_PATH: Final = 4096
_LONGEST_REASON: Final = 500


class AttemptReports:
    """Answers matched, sync and report."""

    def __init__(
        self,
        recorder: QueueRecorder,
        claims: ClaimLifecycle,
        gangs: GangClaims,
        shadows: ShadowDispatch,
        policies: Policies,
        settings: ScheddSettings,
    ) -> None:
        self._recorder = recorder
        self._settings = settings
        self._queue = recorder.queue
        self._requester = claims.requester
        self._reuser = claims.reuser
        self._ends = claims.ends
        self._idle = claims.idle
        self._gangs = gangs
        self._shadows = shadows
        self._policies = policies
        self._routed = RoutedEnds(recorder.queue)

    async def accept_matches(self, request: Matched, caller: Identity) -> Decision[Done]:
        """Advice: which slots to ask for claims."""
        del caller
        if learn_significant(self._queue, request.significant):
            self._requester.wake()
        self._requester.cycles |= {match.submitter: request.cycle for match in request.matches}
        for claim in self._idle.waiting:  # what was kept for a job is used before there is more
            self._reuser.reuse_idle(claim)
        together: list[MatchedSlot] = []
        for match in request.matches:
            if match.nodes == 1:
                self._requester.request_matched(match)
            else:
                together.append(match)
        if together:
            self._gangs.request_matched(together)
        return Decision(lambda _: Done())

    async def sync_shadow(self, request: ShadowSync, caller: Identity) -> Decision[ShadowOrders]:
        """Bring a shadow's list up to what is recorded."""
        del caller
        # A job of several nodes has several claims.
        live = dict.fromkeys(held.job for held in self._queue.claims.values() if held.job is not None)
        orders = self._shadows.sync(request, live)
        given_up = (orders.forget, orders.over, orders.drop, orders.spooled, orders.spools)
        changing = bool(orders.start or orders.stop or any(given_up))
        # What is given up on the word of a stale owner is lost.
        return Decision(lambda _: orders, confirm_owner=changing)

    async def record_reports(self, request: ReportAttempts, caller: Identity) -> Decision[AttemptsRecorded]:
        """Record what happened to attempts, and give the freed claims their next jobs in the same frame."""
        next_jobs: list[JobId] = []
        del caller
        known, turn = True, TimeSlice()
        for report in request.reports:
            await turn.yield_if_over()
            if isinstance(report.news, Used):
                self._keep_usage(report, report.news)
                continue
            known &= self._record_report(report)
            if isinstance(report.news, Ended):
                job = self._reuse_claim(report, report.news)
                next_jobs += [job] if job is not None else []

        def reply(position: Position) -> AttemptsRecorded:
            handed_over = (self._shadows.hand_over(job, request.shadow) for job in next_jobs)
            start: list[Assignment] = [assignment for assignment in handed_over if assignment is not None]
            first = fitting(start)
            if len(first) < len(start):
                self._shadows.push(request.shadow, start[len(first) :])
            return AttemptsRecorded(start=first, position=position)

        # What we have not heard of, a successor of ours may have recorded.
        return Decision(reply, confirm_owner=not known)

    def _record_report(self, report: AttemptReport) -> bool:
        """Record what is new; False: nothing is, because it was said before, or to somebody else."""
        entry = self._queue.jobs.get(report.job)
        if entry is None:
            return False  # over since long: said twice is said once
        there = isinstance(report.news, Told) and self._queue.universe(report.job) == Universe.GRID
        command = command_of(report, there=there)
        if isinstance(command, Tell):
            named = chirp_updates.spelled(command.attributes, self._queue.ad(report.job))
            command = msgspec.structs.replace(command, attributes=named)
        elif isinstance(command, End):
            command = self._end(report.job, command)
        events = self._decided(report.job, entry.job, command)
        if not events:
            return False
        stream = job_stream(report.job)
        self._recorder.record([(stream, event) for event in events])
        if isinstance(report.news, Ended):
            self._shadows.drop_attempt(report.job)
            if entry.job.attempt.gang is not None:
                self._gangs.give_back(
                    entry.job.attempt.gang.claims, f"job {report.job} has ended on all of its nodes"
                )
            if (ending := report.news.result.ending) is not None:
                self._hold_failing(report, ending, stream)
        return True

    def _decided(self, job: JobId, state: Job, command: Command) -> Sequence[JobEvent]:
        if isinstance(command, End) and self._queue.clusters[job.cluster].elsewhere:
            return self._routed.decide(job, command)
        return decide(state, command)

    def _end(self, job: JobId, command: End) -> End:
        """The end of an attempt as the job's policy, or its wish for more, changes it."""
        ending = command.result.ending
        if ending is None:
            return self._policies.at_exit(job, command)
        more: Ad = {}
        if ending.holds:
            ad = self._queue.ad(job)
            more = chirp_updates.spelled(grown(ad, ending, time.time()), ad)
        return msgspec.structs.replace(command, cool_down=self._settings.cooldown_duration, more=more)

    def _keep_usage(self, report: AttemptReport, used: Used) -> None:
        """Remember what an attempt uses, if it lives."""
        entry = self._queue.jobs.get(report.job)
        if entry is not None and (entry.job.attempt.number, entry.job.claim) == (
            report.attempt,
            report.claim,
        ):
            self._queue.live.measured[report.job] = _sane_usage(used.usage)

    def _hold_failing(self, report: AttemptReport, ending: Ending, stream: str) -> None:
        """Hold a job whose attempts fail again and again."""
        entry = self._queue.jobs.get(report.job)
        if entry is None or entry.job.failures < self._settings.max_failures or entry.job.status != "idle":
            return
        reason = f"{entry.job.failures} attempts in a row failed, the last one because: {ending.reason}"
        hold = Hold(reason=reason, by="", code=HoldCode.SystemPolicy)
        self._recorder.record([(stream, event) for event in decide(entry.job, hold)])

    def _reuse_claim(self, report: AttemptReport, news: Ended) -> JobId | None:
        """
        What comes next on the claim of an attempt that is over; its first assignment again if the report is repeated.
        """
        ending = news.result.ending
        if news.claim_lost:
            reason = ending.reason if ending is not None else "the machine ended the claim with its job"
            self._ends.ended_there(report.claim, reason)
            return None
        # The machine does not like this claim's jobs (any more), or somebody wants a job off it.
        if ending is not None and ending.code in REFUSED_ACTIVATIONS | {VacateCode.UserVacateJob}:
            self._ends.give_back(report.claim, ending.reason)
            return None
        job = self._reuser.reuse(report.claim)
        return None if job == report.job and not self._is_next(report) else job

    def _is_next(self, report: AttemptReport) -> bool:
        entry = self._queue.jobs.get(report.job)
        return entry is not None and entry.job.attempt.number > report.attempt


def command_of(report: AttemptReport, *, there: bool = False) -> Command:
    """
    What a shadow's report means for the job; use so far means nothing to it.  `there`: the job is at a batch system.
    """
    news = report.news
    assert not isinstance(news, Used)
    match news:
        case Began():
            return Begin(report.attempt, report.claim, news.pid, _sane(news.at), _sane_transfer(news.input))
        case Suspended():
            processes = int(_sane(news.processes))
            return Suspend(report.attempt, report.claim, processes, _sane(news.at))
        case Continued():
            return Continue(report.attempt, report.claim, _sane(news.at))
        case Saved():
            at, usage = _sane(news.at), _sane_usage(news.usage)
            return Checkpoint(report.attempt, report.claim, news.number, at, usage)
        case Told(id=id_, attributes=attributes, notes=notes):
            said, noted = chirp_updates.sayable(attributes, there=there), chirp_updates.lines(notes)
            return Tell(report.attempt, report.claim, id_, said, noted)
        case Ended():
            return End(report.attempt, report.claim, _sane_result(news.result))
        case NodeBegan(node=node, claim=claim, slot=slot, at=at):
            return NodeBegin(report.attempt, report.claim, node, claim, slot, _sane(at))
        case NodeEnded(node=node, result=result):
            return NodeEnd(report.attempt, report.claim, node, _sane_result(result))
        case Stepped(first=first, steps=steps):
            return Pass(report.attempt, report.claim, first, [_sane_step(step) for step in steps])
        case _:
            assert_never(news)


def _sane(value: float) -> float:
    """
    A number that a worker measured; what cannot be one counts as 0, because what is recorded has to fold in all later releases.
    """
    return value if math.isfinite(value) and 0 <= value < _LARGEST else 0.0


def _sane_result(result: AttemptResult) -> AttemptResult:
    """As a worker can have told it; what no machine will ever begin is held."""
    ran, ending = result.exit, result.ending
    if ran is not None:
        ran = msgspec.structs.replace(
            ran, at=_sane(ran.at), core=ran.core[:_LONGEST_PATH], output=_sane_transfer(ran.output)
        )
    if ending is not None and ending.code == VacateCode.ActivationRefusedBadRequest:
        ending = msgspec.structs.replace(ending, code=HoldCode.FailedToCreateProcess)
    return AttemptResult(exit=ran, ending=ending, usage=_sane_usage(result.usage))


def _sane_step(step: Step) -> Step:
    return msgspec.structs.replace(
        step,
        began=_sane(step.began),
        ended=_sane(step.ended),
        bytes=int(_sane(step.bytes)),
        user_cpu=_sane(step.user_cpu),
        system_cpu=_sane(step.system_cpu),
        memory_kib=int(_sane(step.memory_kib)),
        name=_short(step.name),
        reason=_short(step.reason),
    )


def _short(text: str) -> str:
    """What people read, as a database can store it; the ad of the job has all of them."""
    plain = text.replace("\0", "\\0")
    return plain if len(plain) <= _LONGEST_REASON else f"{plain[:_LONGEST_REASON]} ..."


def _sane_usage(usage: Usage) -> Usage:
    return Usage(
        wall=_sane(usage.wall),
        user_cpu=_sane(usage.user_cpu),
        system_cpu=_sane(usage.system_cpu),
        memory_kib=int(_sane(usage.memory_kib)),
        disk_kib=int(_sane(usage.disk_kib)),
        sent=int(_sane(usage.sent)),
        received=int(_sane(usage.received)),
        moved=sane_files(usage.moved),
    )


def _sane_transfer(moved: Transfer | None) -> Transfer | None:
    if moved is None:
        return None
    return Transfer(began=_sane(moved.began), ended=_sane(moved.ended), queued=_sane(moved.queued))
