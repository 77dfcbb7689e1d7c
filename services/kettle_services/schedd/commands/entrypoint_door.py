"""
Whose jobs an entrypoint takes: by the VO of the submitter's credential, within its limits, and unless it is drained.
"""

from collections.abc import Awaitable, Callable, Mapping

from kettle.bus.ports import RefusedError
from kettle.jobs.routed_attributes import awaits_route
from kettle_services.schedd.domain.queue.fold import Queue
from kettle_services.schedd.domain.queue.routing import VoTally
from kettle_services.schedd.domain.submission import vo_limits
from kettle_services.schedd.domain.submission.admission import Admitted
from kettle_services.schedd.domain.submission.vo_limits import VoLimits
from kettle_wire.codes import RefusalCode
from kettle_wire.people import Shown

ShownBy = Callable[[str], Awaitable[Shown | None]]


class EntrypointDoor:
    """Where jobs come in that are to be routed."""

    def __init__(self, queue: Queue, vos: Mapping[str, VoLimits], shown_by: ShownBy) -> None:
        """`shown_by`: what the credential says with which somebody has come last."""
        self._queue = queue
        self._vos = vos
        self.shown_by = shown_by
        self.draining = ""
        """Why it takes no jobs, by the last word of the entrypoint; empty: it does."""

    def require_welcome(
        self, owner: str, shown: Shown | None, admitted: Admitted, *, spool: bool = False
    ) -> None:
        """
        Raise RefusedError for jobs that would be routed and that it does not take; `spool`: their files are to be sent.
        """
        if not (awaits_route(admitted.ad) or awaits_route(admitted.columns)):
            return
        if self.draining:
            raise RefusedError(RefusalCode.CE_DRAINING, f"{self.draining}; submit again later")
        if not self._vos:
            return
        if why := vo_limits.refusal(owner, shown, self._vos):
            raise RefusedError(RefusalCode.CE_VO_NOT_ALLOWED, why)
        vo = "" if shown is None else shown.vo
        tally = self._queue.routing.vos.get(vo, VoTally())
        if spool and (
            why := vo_limits.over_quota(vo, tally.spooled, tally.spooled_by, self._vos[vo].max_spool)
        ):
            raise RefusedError(RefusalCode.CE_VO_SPOOL_FULL, why)
        there = tally.jobs
        more, most = len(admitted.rows), self._vos[vo].max_jobs
        if there + more > most:
            raise RefusedError(
                RefusalCode.CE_VO_FULL,
                f"the VO {vo} has {there} jobs here; {more} more would exceed {most} (max_jobs of [schedd.vos.{vo}]): submit again "
                "when some have ended",
            )
