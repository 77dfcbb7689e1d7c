"""
Who may read the files that a job leaves, and where they lie.

The files themselves are between the person and the shadow, which asks here on behalf of whom it serves.
"""

from typing import Final

from kettle.bus.ports import RefusedError
from kettle.jobs.recorded_ad import after
from kettle_services.schedd.commands.queries import Queries
from kettle_services.schedd.domain.authorization import may_manage, refusal
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.ads import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.outputs import FindOutputs, OutputsFound
from kettle_wire.commands.schedd import QueryEvents
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId

_AGAIN_MS: Final = 500
_PLACES: Final = (
    "ClusterId",
    "ProcId",
    "Owner",
    "JobStatus",
    "HoldReason",
    "Iwd",
    "Out",
    "Err",
    "OutputDirectory",
    "TransferOutput",
    "TransferOutputRemaps",
    "PreserveRelativePaths",
    "StageInStart",
)
"""Attributes by which the files of a job are found."""


class OutputCommands:
    """Answers `find_outputs`."""

    def __init__(
        self, recorder: QueueRecorder, shadows: ShadowDispatch, questions: Queries, settings: ScheddSettings
    ) -> None:
        self._queue = recorder.queue
        self._shadows = shadows
        self._questions = questions
        self._settings = settings

    async def find(self, request: FindOutputs, caller: Identity) -> OutputsFound:
        """Where the files of a job are; `not_found`, `denied` or `unavailable`."""
        for_others = caller.kind == "daemon"
        person, job = request.person if for_others else caller.name, request.job
        present = job in self._queue.jobs
        ad = self._queue.ad(job) if present else await self._recorded(job, caller)
        owner = str(ad.get("Owner", ""))
        if not may_manage(person, owner, self._settings.queue_super_users):
            raise RefusedError(RefusalCode.DENIED, refusal(person, f"read files of job {job}", owner))
        shadow = "" if for_others else self._shadows.any_alive()
        if not for_others and not shadow:
            raise RefusedError(
                RefusalCode.UNAVAILABLE,
                "no shadow is there yet to read the files of jobs",
                retry_after_ms=_AGAIN_MS,
            )
        places: Ad = {name: ad[name] for name in _PLACES if name in ad}
        return OutputsFound(shadow=shadow, present=present, ad=places)

    async def _recorded(self, job: JobId, caller: Identity) -> Ad:
        """The ad of a job that has left the queue; raises RefusedError if there was none."""
        ad: Ad | None = None
        for recorded in (await self._questions.query_events(QueryEvents(job=job), caller)).events:
            ad = after(ad, job, self._queue.schedd, recorded)
        if ad is None:
            raise RefusedError(RefusalCode.NOT_FOUND, f"job {job} was never made by {self._queue.schedd}")
        return ad
