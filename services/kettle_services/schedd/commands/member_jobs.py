"""
Jobs of interactive sessions: the service that decides about sessions has them submitted, removed and released as their owners.

It may do so to these jobs alone. Whatever limits, rules and groups there are for their owner are theirs too.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.command_pipeline import Decision
from kettle_services.schedd.commands.explanations import Explanations
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_wire.ads import Ad
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.member_jobs import ActOnMembers, ExplainMembers, SubmitMembers
from kettle_wire.commands.queue import Act, Acted, EditJobs, Select, Submit, Submitted
from kettle_wire.commands.schedd import ExplainJobs, JobsExplained
from kettle_wire.identity import Identity, user
from kettle_wire.jobs import JobId
from kettle_wire.session_attributes import BATCH, ID, NUMBER, SHARED_WITH

Doing = Callable[[Act, Identity], Awaitable[Decision[Acted]]]
Editing = Callable[[EditJobs, Identity], Awaitable[Decision[Acted]]]
Submitting = Callable[[Submit, Identity], Awaitable[Decision[Submitted]]]
_EDITED: Final = frozenset({SHARED_WITH})
"""What of its jobs a session may change later."""


class MemberJobs:
    """Decides what is asked of them."""

    def __init__(
        self,
        recorder: QueueRecorder,
        submit: Submitting,
        act: Doing,
        edit: Editing,
        reasons: Explanations,
    ) -> None:
        self._queue = recorder.queue
        self._submit = submit
        self._act = act
        self._edit = edit
        self._reasons = reasons

    async def submit(self, request: SubmitMembers, caller: Identity) -> Decision[Submitted]:
        """One batch of members: a cluster, of which each job says which member it is."""
        del caller
        marks: Ad = {ID: request.session, BATCH: request.batch}
        numbered = [[*row, request.first + place] for place, row in enumerate(request.rows)]
        described = Submit(
            id=request.id,
            ad={**request.ad, **marks},
            columns=[*request.columns, NUMBER],
            rows=numbered,
            spool=True,
        )
        return await self._submit(described, user(request.owner))

    async def act(self, request: ActOnMembers, caller: Identity) -> Decision[Acted]:
        """Remove, release or edit jobs of one session; those that have left the queue are `not_found`."""
        del caller
        select = Select(jobs=self._own(request.session, request.owner, request.clusters, request.jobs))
        owner = user(request.owner)
        if not select.jobs:
            return Decision(lambda position: Acted(runs=[], position=position))
        if request.action != "edit":
            act = Act(id=request.id, action=request.action, select=select, reason=request.reason)
            return await self._act(act, owner)
        if others := request.attributes.keys() - _EDITED:
            raise RefusedError(
                RefusalCode.DENIED, f"a session sets {', '.join(_EDITED)} of its jobs, not {min(others)}"
            )
        edit = EditJobs(id=request.id, select=select, attributes=request.attributes)
        return await self._edit(edit, owner)

    async def explain(self, request: ExplainMembers, caller: Identity) -> JobsExplained:
        """Why they are where they are, those together that have one reason."""
        del caller
        jobs = self._own(request.session, request.owner, request.clusters, [])
        if not jobs:
            return JobsExplained(groups=[])
        return await self._reasons.explain_jobs(ExplainJobs(select=Select(jobs=jobs)), user(request.owner))

    def _own(self, session: str, owner: str, clusters: list[int], jobs: list[JobId]) -> list[JobId]:
        """Those in the queue, of which each is of the session.  Raises RefusedError for one that is not."""
        wanted = set(clusters)
        found = [job for job in jobs if job in self._queue.jobs]
        for number in sorted(wanted & self._queue.clusters.keys()):
            rows = len(self._queue.clusters[number].submitted.rows)
            found += (job for proc in range(rows) if (job := JobId(number, proc)) in self._queue.jobs)
        for number in {job.cluster for job in found}:
            submitted = self._queue.clusters[number].submitted
            if (submitted.ad.get(ID), submitted.owner) != (session, owner):
                raise RefusedError(
                    RefusalCode.DENIED,
                    f"the jobs of cluster {number} are none of session {session} of {owner}",
                )
        return found
