"""
Attributes that people set in the ads of jobs in the queue: one command for as many as they mean, one answer for each.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.command_pipeline import Decision
from kettle.jobs.routed_attributes import WHERE
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_services.schedd.commands.deeds import DeedsForOthers
from kettle_services.schedd.commands.selected_jobs import decide_each
from kettle_services.schedd.domain.jobs.universes import at_home, unmatched
from kettle_services.schedd.domain.queue.entry import FRESH, QueuedJob
from kettle_services.schedd.domain.queue.job_ads import QueuedJobAds
from kettle_services.schedd.domain.submission import job_edits
from kettle_services.schedd.domain.submission.bearers import may_edit
from kettle_services.schedd.domain.submission.job_edits import PRIORITY, Edit
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Scalar
from kettle_wire.codes import RefusalCode, Universe
from kettle_wire.commands.schedd import EDIT_JOBS, Acted, EditJobs, FactoryOutcome, Outcome
from kettle_wire.events import JobEdited, JobEvent
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId

_encode: Final = msgspec.msgpack.Encoder().encode


class JobEdits:
    """Decides `edit_jobs`."""

    def __init__(
        self, recorder: QueueRecorder, settings: ScheddSettings, deeds: DeedsForOthers, seal: AttributeSeal
    ) -> None:
        self._seal = seal
        self._recorder = recorder
        self._settings = settings
        self._deeds = deeds

    async def edit(self, request: EditJobs, caller: Identity) -> Decision[Acted]:
        """
        Set attributes of jobs; nothing is recorded if one of them is nobody's to set (`refused`). To who has shown a token those jobs
        are `denied` that run on the access point, save for what steers nothing of them; to all but super users those whose route has said where
        they go, if that is to be changed.

        An addition to priorities is recorded at once: repeated after half of it was recorded it would be done twice.
        """
        return await self._edit(request, caller, by_job=False)

    async def edit_from_job(self, request: EditJobs, caller: Identity) -> Decision[Acted]:
        """As `edit`, by a running job: `denied` are those jobs that run on the access point."""
        return await self._edit(request, caller, by_job=True)

    async def _edit(self, request: EditJobs, caller: Identity, *, by_job: bool) -> Decision[Acted]:
        edit = Edit(attributes=request.attributes, add_to_priority=request.add_to_priority, by=caller.name)
        try:
            job_edits.check(edit)
        except Unacceptable as refusal:
            raise RefusedError(RefusalCode.REFUSED, str(refusal)) from refusal
        decided = await decide_each(
            self._recorder,
            self._settings,
            request.select,
            caller.name,
            _Decisions(
                self._recorder,
                edit,
                self._seal,
                denied=_denied(edit, caller, by_job=by_job),
                super_users=self._settings.queue_super_users,
            ).of,
            at_once=bool(edit.add_to_priority),
        )
        factories = [] if request.select.jobs else self._untouched(decided.counts)
        names = ", ".join(sorted(edit.attributes)) or PRIORITY
        return Decision(
            lambda position: Acted(runs=decided.runs, position=position, factories=factories),
            decided.recording,
            effect=self._deeds.of(caller, EDIT_JOBS, f"set {names}", decided.counts),
        )

    def _untouched(self, outcomes: Iterable[tuple[int, Outcome]]) -> list[FactoryOutcome]:
        """Clusters whose further jobs will come as they were submitted: an edit is of jobs that are there."""
        queue = self._recorder.queue
        edited = {cluster for cluster, outcome in outcomes if outcome in ("done", "already_done")}
        return [
            FactoryOutcome(cluster, "bad_status", factory.unmade)
            for cluster in sorted(edited & queue.unmade)
            if (factory := queue.factory(cluster)) is not None
        ]


def _denied(edit: Edit, caller: Identity, *, by_job: bool) -> Callable[[Scalar], bool]:
    """To which universes' jobs the caller may not do this."""
    if by_job:
        return unmatched
    if caller.bearer and not may_edit(edit.attributes):
        return at_home
    return lambda _universe: False


class _Decisions:
    """What an edit comes to; what jobs that come one after the other have in common is worked out once."""

    def __init__(
        self,
        recorder: QueueRecorder,
        edit: Edit,
        seal: AttributeSeal,
        *,
        denied: Callable[[Scalar], bool],
        super_users: Collection[str],
    ) -> None:
        """
        `denied`: whether this is not for the caller to do to jobs of a universe; `super_users` may set what a route has said as well.
        """
        self._denied = denied
        is_routes = edit.by not in super_users
        self._where = [name for name in edit.attributes if is_routes and name.lower() in WHERE]
        self._edit = edit
        self._seal = seal
        self._sealed: dict[str, Edit] = {}
        """By the owner of the jobs."""
        self._queue = recorder.queue
        self._view = QueuedJobAds(recorder.queue, [*edit.attributes, PRIORITY])
        self._cluster = -1
        self._entry: QueuedJob = FRESH
        self._known: dict[str, str] = {}
        self._size = 0

    def of(
        self, jobs: Sequence[JobId], entry: QueuedJob
    ) -> Iterator[tuple[Sequence[JobId], Sequence[JobEvent], Outcome]]:
        """See `DecideJobs`: each by itself, since what they had before may differ."""
        for job in jobs:
            yield [job], *self._of(job, entry)

    def _of(self, job: JobId, entry: QueuedJob) -> tuple[Sequence[JobEvent], Outcome]:
        """What is to be recorded of a job, and what to answer."""
        if entry.job.status in ("removed", "completed") and not entry.job.kept:
            return (), "bad_status"
        if self._denied(self._queue.universe(job)):
            return (), "denied"
        if self._where and self._is_decided(job, entry):
            return (), "denied"
        try:
            event = self._decided(job, entry)
        except Unacceptable:
            return (), "too_large"
        return ([event], "done") if event else ((), "already_done")

    def _is_decided(self, job: JobId, entry: QueuedJob) -> bool:
        """
        Whether this says where a job goes that a route has brought to a batch system: also what its route has left as it was has been looked
        at when it was chosen.
        """
        if entry.routed is None:
            return False
        return self._queue.universe(job) == Universe.GRID or any(map(entry.routed.is_of_route, self._where))

    def _decided(self, job: JobId, entry: QueuedJob) -> JobEdited | None:
        if job.cluster != self._cluster or entry is not self._entry:
            self._cluster, self._entry = job.cluster, entry
            self._known = {name.lower(): name for name in self._queue.ad(job)}
            self._size = len(_encode(entry.changed))
        priority = self._queue.priority(job) if self._edit.add_to_priority else 0
        owner = self._queue.owner(job)
        if (edit := self._sealed.get(owner)) is None:
            attributes = self._seal.sealed(self._edit.attributes, owner)
            edit = self._sealed[owner] = msgspec.structs.replace(self._edit, attributes=attributes)
        return job_edits.decide(edit, self._view.ad(job), self._known, priority, self._size)
