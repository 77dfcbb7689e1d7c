"""What can be known about why a job is where it is."""

import msgspec

from kettle.client.connections.transport import SIDE_QUESTION_S
from kettle.client.errors import ClientError, CommandRefusedError
from kettle.client.jobs.queue import JobQueue
from kettle.client.jobs.records import JobEvent
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.negotiator import WHY, Verdict, Why
from kettle_wire.commands.schedd import EXPLAIN, Explain, Explanation
from kettle_wire.jobs import JobId


class WhyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the pool knows about why a job is where it is."""

    job: JobId
    explanation: Explanation | None = None
    """The schedd's side; None: the job has left the queue."""
    verdict: Verdict | None = None
    """The negotiator's side; None: it was not asked, or did not answer."""
    events: list[JobEvent] = []
    """What happened to a job that has left the queue."""
    trouble: str = ""
    """Why there is no verdict although there should be one."""


async def report_why(queue: JobQueue, job: JobId) -> WhyReport:
    """What the schedd of a queue knows, and what the last negotiation said of jobs like this one."""
    requests = queue.requests
    try:
        explanation = await requests.ask(EXPLAIN, Explain(job=job))
    except CommandRefusedError as error:
        if error.code != RefusalCode.NOT_FOUND:
            raise
        return WhyReport(job=job, events=await queue.events(job))
    if explanation.status != "idle" or explanation.autocluster is None:
        return WhyReport(job=job, explanation=explanation)
    question = Why(
        submitter=explanation.submitter,
        schedd=requests.pool.schedd,
        autocluster=explanation.autocluster,
    )
    try:
        verdict = await requests.ask(WHY, question, patience=SIDE_QUESTION_S)
    except ClientError as error:
        return WhyReport(job=job, explanation=explanation, trouble=str(error))
    return WhyReport(job=job, explanation=explanation, verdict=verdict)
