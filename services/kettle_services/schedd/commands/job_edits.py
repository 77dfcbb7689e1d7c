"""
Attributes that people set in the ads of jobs in the queue: one command for as many as they mean, one answer for each.
"""

import asyncio
from typing import Final

import msgspec

from kettle.bus.ports import RefusedError
from kettle_services.schedd.commands.queue_management import command_id, person_of
from kettle_services.schedd.domain.authorization import may_manage
from kettle_services.schedd.domain.queue.entry import FRESH, QueuedJob
from kettle_services.schedd.domain.queue.job_ads import QueuedJobAds
from kettle_services.schedd.domain.submission import job_edits
from kettle_services.schedd.domain.submission.job_edits import PRIORITY, Edit
from kettle_services.schedd.domain.submission.validation import Unacceptable
from kettle_services.schedd.queue.backlog import Backlog
from kettle_services.schedd.queue.chunked_recording import ChunkedRecording
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.queue.selection import condition, selected_jobs
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.schedd import Acted, EditJobs, JobOutcome, Outcome
from kettle_wire.endpoint import Position
from kettle_wire.events import JobEdited
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId

_encode: Final = msgspec.msgpack.Encoder().encode


class JobEdits:
    """Answers `edit_jobs`."""

    def __init__(self, recorder: QueueRecorder, backlog: Backlog, settings: ScheddSettings) -> None:
        self._recorder = recorder
        self._backlog = backlog
        self._queue = recorder.queue
        self._settings = settings
        self._under_way: dict[str, asyncio.Task[Acted]] = {}

    async def edit(self, request: EditJobs, caller: Identity) -> Acted:
        """
        Set attributes of jobs, once per id; nothing is recorded if one of them is nobody's to set (`refused`).
        """
        command = command_id(caller, "edit_jobs", request.id)
        if (first := self._recorder.shard.answer(command)) is not None:
            return msgspec.msgpack.decode(await first, type=Acted)
        edit = Edit(
            attributes=request.attributes,
            add_to_priority=request.add_to_priority,
            by=person_of(caller),
        )
        try:
            job_edits.check(edit)
        except Unacceptable as refusal:
            raise RefusedError(RefusalCode.REFUSED, str(refusal)) from refusal
        condition(request.select.constraint)  # before anything is recorded
        self._backlog.require_room()
        if command not in self._under_way:  # else it is repeated while we are at it
            self._under_way[command] = asyncio.create_task(self._carry_out(request, command, edit))
            self._under_way[command].add_done_callback(lambda _: self._under_way.pop(command))
        return await asyncio.shield(self._under_way[command])

    async def _carry_out(self, request: EditJobs, command: str, edit: Edit) -> Acted:
        """
        Piece by piece, as `People.act` does: whoever dies in between leaves it half done and unanswered.

        A repeat does the rest; an addition to priorities is done in one piece, since it would be done twice.
        """
        outcomes: list[JobOutcome] = []
        selected = await selected_jobs(self._queue, request.select)
        decisions, pieces = (
            _Decisions(self._recorder, edit),
            ChunkedRecording(self._recorder, most=self._settings.max_backlog // 2),
        )
        for job in selected:
            if pieces.full and not edit.add_to_priority:
                await pieces.record_chunk()
            if (entry := self._queue.jobs.get(job)) is not None:
                event, outcome = self._decided(job, entry, decisions)
                pieces.add(job, entry.job, [event] if event else [])
                outcomes.append(JobOutcome(job, outcome, entry.job.shown))
        found = {outcome.job for outcome in outcomes} if request.select.jobs else set[JobId]()
        outcomes += [JobOutcome(job, "not_found") for job in request.select.jobs if job not in found]

        def reply(frame: int) -> Acted:
            return Acted(outcomes=outcomes, position=Position(self._recorder.shard.name, frame))

        frame = await self._recorder.record(
            pieces.take_rest(), command=command, reply=lambda frame: _encode(reply(frame))
        )
        return reply(frame)

    def _decided(
        self, job: JobId, entry: QueuedJob, decisions: "_Decisions"
    ) -> tuple[JobEdited | None, Outcome]:
        person = decisions.edit.by
        if not may_manage(person, self._queue.owner(job), self._settings.queue_super_users):
            return None, "denied"
        if entry.job.status in ("removed", "completed") and not entry.job.kept:
            return None, "bad_status"
        try:
            event = decisions.of(job, entry)
        except Unacceptable:
            return None, "too_large"
        return event, "done" if event else "already_done"


class _Decisions:
    """What an edit comes to; what jobs that come one after the other have in common is worked out once."""

    def __init__(self, recorder: QueueRecorder, edit: Edit) -> None:
        self.edit = edit
        self._queue = recorder.queue
        self._view = QueuedJobAds(recorder.queue, [*edit.attributes, PRIORITY])
        self._cluster = -1
        self._entry: QueuedJob = FRESH
        self._known: dict[str, str] = {}
        self._size = 0

    def of(self, job: JobId, entry: QueuedJob) -> JobEdited | None:
        """What is to be recorded of a job; raises Unacceptable."""
        if job.cluster != self._cluster or entry is not self._entry:
            self._cluster, self._entry = job.cluster, entry
            self._known = {name.lower(): name for name in self._queue.ad(job)}
            self._size = len(_encode(entry.changed))
        priority = self._queue.priority(job) if self.edit.add_to_priority else 0
        return job_edits.decide(self.edit, self._view.ad(job), self._known, priority, self._size)
