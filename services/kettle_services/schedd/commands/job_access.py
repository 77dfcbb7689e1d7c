"""
Who may look into a job that runs: its owner, and the super users of the queue, of whom that is in the record of deeds.

What they do there is between them and the machine: the queue only tells them where it is, and proves who they are.
"""

import logging
from typing import Final

from kettle.auth.job_access_proof import proof
from kettle.bus.ports import Auditor, RefusedError
from kettle_services.schedd.domain.authorization import may_manage, refusal
from kettle_services.schedd.domain.jobs.universes import at_home
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.access import Access
from kettle_wire.commands.ce import batch_startd
from kettle_wire.commands.schedd import AccessGiven, AskAccess
from kettle_wire.flocking import pool_of
from kettle_wire.identity import Identity

_log: Final = logging.getLogger(__name__)


class AccessCommands:
    """Answers `access`."""

    def __init__(
        self,
        recorder: QueueRecorder,
        shadows: ShadowDispatch,
        settings: ScheddSettings,
        auditor: Auditor | None = None,
    ) -> None:
        """`auditor` None: nobody wants to know who looks into jobs of others."""
        self._auditor = auditor
        self._queue = recorder.queue
        self._shadows = shadows
        self._settings = settings

    async def access(self, request: AskAccess, caller: Identity) -> AccessGiven:
        """
        The right to look into the present attempt of a job; `not_found`, `denied`, `not_running` or `elsewhere`.
        """
        job = request.job
        entry = self._queue.jobs.get(job)
        if entry is None:
            raise RefusedError(
                RefusalCode.NOT_FOUND, f"job {job} is not in the queue of {self._queue.schedd}"
            )
        owner = self._queue.owner(job)
        if not may_manage(caller.name, owner, self._settings.queue_super_users):
            raise RefusedError(RefusalCode.DENIED, refusal(caller.name, f"look into job {job}", owner))
        if caller.bearer and at_home(self._queue.universe(job)):
            raise RefusedError(
                RefusalCode.DENIED,
                f"job {job} runs on the access point with all rights of the account {owner}, which a token does not give: look into it with "
                "the account itself",
            )
        if entry.job.status != "running" or entry.job.claim not in self._queue.claims:
            raise RefusedError(
                RefusalCode.NOT_RUNNING,
                f"job {job} is {entry.job.status}: it can be looked into while it runs",
            )
        assignment = self._shadows.assignment(job)
        if pool := pool_of(assignment.startd):
            raise RefusedError(
                RefusalCode.ELSEWHERE,
                f"job {job} runs in the pool {pool}, whose machines only people of that pool can look into",
            )
        if assignment.startd == batch_startd(self._settings.name):
            raise RefusedError(
                RefusalCode.ELSEWHERE,
                f"job {job} is in the batch system {assignment.slot}, whose machines cannot be looked into from here: "
                "what it writes comes back when it has ended",
            )
        key = assignment.key
        _log.info("looked into", extra={"job": str(job), "by": caller.name})
        if self._auditor is not None and caller.name != owner:
            self._auditor.note(
                caller.name, "schedd.access", self._queue.schedd, f"look into job {job} of {owner}"
            )
        return AccessGiven(
            access=Access(
                claim=key.claim,
                job=job,
                attempt=assignment.attempt,
                proof=proof(
                    key.secret, claim=key.claim, job=job, attempt=assignment.attempt, person=caller.name
                ),
            ),
            startd=assignment.startd,
            slot=assignment.slot,
        )
