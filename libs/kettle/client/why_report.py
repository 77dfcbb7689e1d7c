"""What can be known about why jobs are where they are."""

from typing import Final

import msgspec

from kettle.client.connections.transport import SIDE_QUESTION_S, Requests
from kettle.client.errors import ClientError, CommandRefusedError
from kettle.client.jobs.queue import JobQueue
from kettle.client.jobs.records import JobEvent
from kettle_wire.ads.types import Ad
from kettle_wire.codes import HoldCode, RefusalCode
from kettle_wire.commands.negotiator import WHY, Verdict, Why
from kettle_wire.commands.outlooks import EXPLAIN_WAIT, ExplainWait, PoolOutlook
from kettle_wire.commands.queue import Select
from kettle_wire.commands.schedd import (
    EXPLAIN,
    EXPLAIN_JOBS,
    Explain,
    ExplainJobs,
    Explanation,
    UnmadeReason,
)
from kettle_wire.jobs import JobId

_OF_FILES: Final = frozenset({int(HoldCode.TransferInputError), int(HoldCode.TransferOutputError)})
_ENDED: Final = 1000
"""So many of the jobs of a selection that have left the queue are looked at, the newest."""


class WhyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the pool knows about why a job is where it is."""

    job: JobId
    explanation: Explanation | None = None
    """The schedd's side; None: the job has left the queue."""
    verdict: Verdict | None = None
    """The negotiator's side; None: it was not asked, or did not answer."""
    events: list[JobEvent] = []
    """What happened to a job that has left the queue, or is held because its files were not moved."""
    ended: Ad | None = None
    """Its last ad, if the history has it already."""
    unmade: str = ""
    """Why it is not in the queue yet, if it comes later (late materialization)."""
    trouble: str = ""
    """Why there is no verdict although there should be one."""
    outlooks: list[PoolOutlook] = []
    """What pools of workers do about it, the most promising first."""


class WhyGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that are where they are for one reason."""

    jobs: int
    last: JobId
    report: WhyReport
    """Of the first."""


class WhyReports(msgspec.Struct, frozen=True, kw_only=True):
    """
    What the pool knows about the jobs of a selection: those in the queue, those to come, and those that have left it.
    """

    groups: list[WhyGroup]
    more: int = 0
    """Jobs of groups that are left out."""
    unmade: list[UnmadeReason] = []
    ended: list[Ad] = []
    """The newest, if clusters were named."""
    ended_more: bool = False
    """Whether others have left the queue before them."""
    whole: bool = True
    """Whether it is about all jobs of the clusters that it is about, and not about some."""


async def report_why(queue: JobQueue, job: JobId) -> WhyReport:
    """What the schedd of a queue knows, and what the last negotiation said of jobs like this one."""
    try:
        explanation = await queue.requests.ask(EXPLAIN, Explain(job=job))
    except CommandRefusedError as error:
        if error.code == RefusalCode.REFUSED:
            return WhyReport(job=job, unmade=str(error))
        if error.code != RefusalCode.NOT_FOUND:
            raise
        ads = await _ended(queue, Select(jobs=[job]), 1)
        return WhyReport(job=job, events=await queue.events(job), ended=ads[0] if ads else None)
    report = await _with_verdict(queue, explanation)
    if explanation.status == "held" and explanation.ad.get("HoldReasonCode") in _OF_FILES:
        return msgspec.structs.replace(report, events=await queue.events(job))
    return report


async def report_what_if(queue: JobQueue, job: JobId, changes: Ad) -> WhyReport:
    """
    What is known of a job in the queue, and where it could run if it, and jobs like it, had these attributes.

    Raises CommandRefusedError: `not_found`, it is not in the queue.
    """
    explanation = await queue.requests.ask(EXPLAIN, Explain(job=job))
    return await _with_verdict(queue, explanation, changes)


async def report_why_jobs(queue: JobQueue, select: Select) -> WhyReports:
    """What is known of all jobs of a selection, those together that have one reason."""
    found = await queue.requests.ask(EXPLAIN_JOBS, ExplainJobs(select=select))
    groups = [
        WhyGroup(jobs=one.jobs, last=one.last, report=await _with_verdict(queue, one.explanation))
        for one in found.groups
    ]
    named = bool(select.clusters or select.jobs)
    ended = await _ended(queue, select, _ENDED + 1) if named else []
    return WhyReports(
        groups=groups,
        more=found.more,
        unmade=found.unmade,
        ended=ended[:_ENDED],
        ended_more=len(ended) > _ENDED,
        whole=not (select.jobs or select.constraint),
    )


async def _ended(queue: JobQueue, select: Select, limit: int) -> list[Ad]:
    """Those that have left the queue, as far as the history knows of them: one can do without."""
    try:
        return await queue.history(select, limit=limit, patience=SIDE_QUESTION_S)
    except ClientError:
        return []


async def _with_verdict(queue: JobQueue, explanation: Explanation, changes: Ad | None = None) -> WhyReport:
    job, requests = explanation.job, queue.requests
    if explanation.status != "idle" or explanation.autocluster is None:
        return WhyReport(job=job, explanation=explanation)
    question = Why(
        submitter=explanation.submitter,
        schedd=requests.pool.schedd,
        autocluster=explanation.autocluster,
        changes=changes or {},
    )
    outlooks = await _outlooks(requests, explanation) if requests.pool.scaler else []
    try:
        verdict = await requests.ask(WHY, question, patience=SIDE_QUESTION_S)
    except ClientError as error:
        return WhyReport(job=job, explanation=explanation, trouble=str(error), outlooks=outlooks)
    return WhyReport(job=job, explanation=explanation, verdict=verdict, outlooks=outlooks)


async def _outlooks(requests: Requests, explanation: Explanation) -> list[PoolOutlook]:
    """What pools of workers do about a job that waits; nothing, if their scaler does not say."""
    assert explanation.autocluster is not None, "only a job that waits is asked about"
    question = ExplainWait(
        submitter=explanation.submitter,
        schedd=requests.pool.schedd,
        autocluster=explanation.autocluster,
    )
    try:
        return (await requests.ask(EXPLAIN_WAIT, question, patience=SIDE_QUESTION_S)).outlooks
    except ClientError:
        return []
