"""What the negotiator and the shadows say to the schedd."""

import logging
from typing import Final, assert_never

from kettle.bus.ports import RefusedError
from kettle.schedd.claims import Claims
from kettle.schedd.domain.job import Begin, Command, End, Finish, decide
from kettle.schedd.domain.queue import job_stream
from kettle.schedd.ledger import Ledger
from kettle.schedd.shadows import Shadows
from kettle.wire.commands.schedd import (
    AttemptReport,
    AttemptsRecorded,
    Began,
    Ended,
    Finished,
    Matched,
    ReportAttempts,
    ShadowOrders,
    ShadowSync,
)
from kettle.wire.commands.shadow import Assignment
from kettle.wire.commands.startd import Done
from kettle.wire.endpoint import Position
from kettle.wire.identity import Identity
from kettle.wire.jobs import JobId

_log: Final = logging.getLogger(__name__)


class Partners:
    """Answers matched, sync and report."""

    def __init__(self, ledger: Ledger, claims: Claims, shadows: Shadows) -> None:
        self._ledger = ledger
        self._queue = ledger.queue
        self._claims = claims
        self._shadows = shadows

    async def matched(self, request: Matched, caller: Identity) -> Done:
        """Advice: which slots to ask for claims."""
        _only("negotiator", caller)
        for match in request.matches:
            self._claims.matched(match)
        return Done()

    async def sync(self, request: ShadowSync, caller: Identity) -> ShadowOrders:
        """Bring a shadow's list up to what is recorded."""
        _only("shadow", caller)
        live = [held.job for held in self._queue.claims.values() if held.job is not None]
        orders = self._shadows.sync(request, live)
        await self._ledger.record([])  # an assignment is an effect: it leaves after its commit
        return orders

    async def report(self, request: ReportAttempts, caller: Identity) -> AttemptsRecorded:
        """Record what happened to attempts, and give the freed claims their next jobs in the same frame."""
        _only("shadow", caller)
        next_jobs: list[JobId] = []
        for report in request.reports:
            self._hear(report)
            if not isinstance(report.news, Began) and (job := self._follow(report)) is not None:
                next_jobs.append(job)
        frame = await self._ledger.record([])
        start: list[Assignment] = []
        for job in next_jobs:
            assignment = self._shadows.hand_over(job, request.shadow)
            if assignment is not None:
                start.append(assignment)
        return AttemptsRecorded(start=start, position=Position(self._ledger.shard.name, frame))

    def _hear(self, report: AttemptReport) -> None:
        entry = self._queue.jobs.get(report.job)
        if entry is None:
            return  # over since long: said twice is said once
        events = decide(entry.job, _command(report))
        if events:
            self._ledger.record([(job_stream(report.job), event) for event in events])

    def _follow(self, report: AttemptReport) -> JobId | None:
        """What comes next on the claim of an attempt that is over; its first assignment again if the report is repeated."""
        if isinstance(report.news, Ended) and report.news.claim_lost:
            self._claims.end(report.claim, report.news.reason, release=False)
            return None
        job = self._claims.reuse(report.claim)
        return None if job == report.job and not self._is_next(report) else job

    def _is_next(self, report: AttemptReport) -> bool:
        entry = self._queue.jobs.get(report.job)
        return entry is not None and entry.job.attempt > report.attempt


def _command(report: AttemptReport) -> Command:
    news = report.news
    match news:
        case Began():
            return Begin(attempt=report.attempt, claim=report.claim, pid=news.pid, at=news.at)
        case Finished():
            return Finish(
                attempt=report.attempt,
                claim=report.claim,
                exit_code=news.exit_code,
                exit_signal=news.exit_signal,
                at=news.at,
                usage=news.usage,
            )
        case Ended():
            return End(
                attempt=report.attempt,
                claim=report.claim,
                code=news.code,
                subcode=news.subcode,
                reason=news.reason,
                hold=news.hold,
                usage=news.usage,
            )
        case _:
            assert_never(news)


def _only(role: str, caller: Identity) -> None:
    if caller.kind != "daemon" or caller.name != role:
        raise RefusedError("denied", f"only a {role} may say this, not {caller.name}")
