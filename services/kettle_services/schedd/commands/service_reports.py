"""
What gateways report of the published services of running jobs, on its way into the record of each job.

A gateway says only what happened there; for the attempt that runs, because one that is over publishes nothing, and may be another
one's by now.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from kettle.bus.ports import Auditor, RefusedError
from kettle.eventsourcing.command_pipeline import Decision
from kettle_services.schedd.domain.queue.fold import job_stream
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.service_reports import REPORT_SERVICES, ReportServices, ServicesReported
from kettle_wire.events import JobServed
from kettle_wire.events.job import ServiceUse
from kettle_wire.identity import Identity

_ACTION: Final = "schedd.use_services"


class ServiceReports:
    """Records them."""

    def __init__(self, recorder: QueueRecorder, auditor: Auditor | None) -> None:
        """
        `auditor`: told of what administrators did with jobs of others, and of who was not let in; None: nobody wants to know.
        """
        self._queue = recorder.queue
        self._auditor = auditor

    async def report(self, request: ReportServices, caller: Identity) -> Decision[ServicesReported]:
        """
        `not_found`: the job has left the queue, and takes no more; `not_running`: it was never begun so often. Attempt 0: it did not run.
        """
        job, known = request.job, self._queue.jobs.get(request.job)
        if known is None:
            raise RefusedError(RefusalCode.NOT_FOUND, f"job {job} is not in the queue any more")
        if request.attempt > known.job.attempt.number:
            raise RefusedError(RefusalCode.NOT_RUNNING, f"job {job} has had no attempt {request.attempt}")
        event = JobServed(
            attempt=request.attempt,
            tunnel=request.tunnel,
            services=request.services,
            reason=request.reason,
            uses=request.uses,
        )
        told = [use for use in request.uses if not use.because or _used_as_administrator(use)]
        owner = self._queue.owner(job)
        del caller
        return Decision(
            lambda position: ServicesReported(position=position),
            [(job_stream(job), event)],
            self._telling(told, f"job {job} of {owner}"),
        )

    def _telling(self, told: Sequence[ServiceUse], whose: str) -> Callable[[], None]:
        if self._auditor is None or not told:
            return _nothing
        return partial(self._tell, self._auditor, told, whose)

    def _tell(self, auditor: Auditor, told: Sequence[ServiceUse], whose: str) -> None:
        schedd = self._queue.schedd
        for use in told:
            if use.because:
                auditor.note(use.person, _ACTION, schedd, f"used the service {use.service} of {whose}")
                continue
            refusal = RefusedError(RefusalCode.DENIED, f"may not use the service {use.service} of {whose}")
            auditor.denied(REPORT_SERVICES, schedd, Identity("user", use.person), refusal)


def _used_as_administrator(use: ServiceUse) -> bool:
    return use.because == "administrator" and bool(use.connections or use.sent or use.received)


def _nothing() -> None:
    """Nobody is told of anything."""
