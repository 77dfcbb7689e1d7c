"""What is recorded when a job is given a claim."""

import time
from collections.abc import Iterable

from kettle_services.schedd.claims.idle import IdleClaims
from kettle_services.schedd.domain.jobs.commands import Assign
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.jobs.machine_attrs import machine_notes
from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad
from kettle_wire.events import ClaimGranted, Event, NodeSlot
from kettle_wire.jobs import JobId


class AssignmentEvents:
    """Looks at the ads of those jobs that say something about it, which most do not."""

    def __init__(self, queue: Queue, settings: ScheddSettings, idle: IdleClaims) -> None:
        self._queue = queue
        self._idle = idle
        self._system = settings.system_job_machine_attrs
        self._history = settings.system_job_machine_attrs_history_length

    def assignment_events(
        self, job: JobId, granted: ClaimGranted, nodes: Iterable[ClaimGranted] = ()
    ) -> list[tuple[str, Event]]:
        """
        Of one job, with their stream; raises Refused if it may not run.

        `nodes`: of a job of several nodes, the claims of those from number 1 on.
        """
        notes: Ad = {}
        self._idle.forget(granted.claim)
        if self._queue.clusters[job.cluster].wishes or self._system:
            ad = self._queue.ad(job)
            self._idle.begin(granted.claim, ad)
            slot, slot_ad = granted.slot, granted.slot_ad
            notes = machine_notes(ad, slot, slot_ad, time.time(), system=self._system, history=self._history)
        others = tuple(NodeSlot(claim=each.claim, slot=each.slot, startd=each.startd) for each in nodes)
        command = Assign(
            claim=granted.claim, slot=granted.slot, startd=granted.startd, notes=notes, nodes=others
        )
        return [(job_stream(job), event) for event in decide(self._queue.jobs[job].job, command)]
