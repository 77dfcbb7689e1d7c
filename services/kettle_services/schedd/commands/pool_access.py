"""
What running jobs do in the queue: submit jobs and act on those of their owner, as they asked for (`want_pool_access`).

A job has no credential that could be copied out of it. What it wants comes by way of its machine and its shadow, which
prove the attempt to each other by the claim's secret; whose jobs it may act on is what the queue knows of it.
"""

import logging
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from kettle.bus.ports import Authorize, RefusedError, Served
from kettle.jobs.pool_access import session_of, wants_access
from kettle_services.schedd.domain.submission.in_session import SubmitInSession
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import JobAnswer, JobCommand, Submit
from kettle_wire.endpoint import Caller
from kettle_wire.identity import Identity, user

_log: Final = logging.getLogger(__name__)
_encode: Final = msgspec.msgpack.Encoder().encode


class JobCommands:
    """Answers `job_command` by those of `served` that are for jobs."""

    def __init__(
        self,
        recorder: QueueRecorder,
        settings: ScheddSettings,
        served: Sequence[Served[Any, Any]],
        authorize: Authorize,
    ) -> None:
        """
        `served`: of two with the same verb the later one is for jobs; `authorize` decides what the owners of jobs may command, as it does
        where they ask themselves.
        """
        self._authorize = authorize
        self._queue = recorder.queue
        self._settings = settings
        self._served = {each.endpoint.verb: each for each in served if Caller.JOB in each.endpoint.callers}

    async def command(self, request: JobCommand, caller: Identity) -> JobAnswer:
        """
        What the verb answers to the job's owner; `denied`, `not_running`, `malformed`, and what the verb refuses.
        """
        owner = self._owner(request)
        asked = self._served.get(request.verb)
        if asked is None:
            raise RefusedError(RefusalCode.DENIED, f"a running job may not ask a schedd for {request.verb!r}")
        if why := self._authorize(asked, user(owner)):
            raise RefusedError(RefusalCode.DENIED, why)
        try:
            said = asked.endpoint.decode_request(request.body)
        except msgspec.MsgspecError as error:
            raise RefusedError(RefusalCode.MALFORMED, f"{request.verb}: {error}") from error
        if isinstance(said, Submit):
            session = session_of(self._settings.name, request.job, request.attempt)
            said = SubmitInSession.of(said, session)
        reply = await asked.handler(said, user(owner))
        _log.info("done for a job", extra={"job": str(request.job), "verb": request.verb})
        return JobAnswer(_encode(reply))

    def _owner(self, request: JobCommand) -> str:
        """As whom the attempt may command."""
        job, known = request.job, self._queue.jobs.get(request.job)
        if (
            known is None
            or (known.job.status, known.job.attempt.number) != ("running", request.attempt)
            or known.job.claim not in self._queue.claims
        ):
            raise RefusedError(RefusalCode.NOT_RUNNING, f"job {job} does not run, so it may ask nothing here")
        if not self._settings.jobs_may_command:
            raise RefusedError(
                RefusalCode.DENIED, "jobs may not command this schedd: its administrator has said so"
            )
        if not wants_access(self._queue.ad(job)):
            raise RefusedError(
                RefusalCode.DENIED, f"job {job} was not submitted with want_pool_access = true"
            )
        owner = self._queue.owner(job)
        if owner in self._settings.queue_super_users:
            raise RefusedError(
                RefusalCode.DENIED,
                f"{owner} may act on everybody's jobs here, so jobs of {owner} may not act at all",
            )
        return owner
