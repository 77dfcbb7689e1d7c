"""What people have done with their jobs."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import msgspec

from kettle.bus.ports import RefusedError
from kettle.jobs.submitted_on_hold import REASON, on_hold
from kettle_services.schedd.domain.authorization import may_manage
from kettle_services.schedd.domain.jobs.factory import asked, begun, paused
from kettle_services.schedd.domain.jobs.job import (
    Command,
    Hold,
    Job,
    Refused,
    Release,
    Remove,
    RemoveX,
    decide,
)
from kettle_services.schedd.domain.jobs.orders import Order
from kettle_services.schedd.domain.queue.fold import factory_stream
from kettle_services.schedd.domain.submission import job_sets, spooling
from kettle_services.schedd.domain.submission.accounting_group import completed
from kettle_services.schedd.domain.submission.admission import Admission, Admitted
from kettle_services.schedd.domain.submission.validation import Unacceptable, check
from kettle_services.schedd.jobs.factories import Factories
from kettle_services.schedd.queue.backlog import Backlog
from kettle_services.schedd.queue.chunked_recording import ChunkedRecording
from kettle_services.schedd.queue.limits import QueueLimits
from kettle_services.schedd.queue.recorder import QueueRecorder, Recording
from kettle_services.schedd.queue.selection import condition, selected_jobs
from kettle_services.schedd.settings import ScheddSettings
from kettle_services.schedd.shadows.dispatch import ShadowDispatch
from kettle_wire.codes import HoldCode, RefusalCode
from kettle_wire.commands.schedd import (
    Act,
    Acted,
    Action,
    JobOutcome,
    Outcome,
    Submit,
    Submitted,
)
from kettle_wire.endpoint import Position
from kettle_wire.events import (
    ClusterSubmitted,
    FactorySubmitted,
    JobEvent,
    encode,
)
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId

_log: Final = logging.getLogger(__name__)
_encode = msgspec.msgpack.Encoder().encode

SUBMISSION_BYTES: Final = 16 * 1024 * 1024
"""
A submission is one event, which is decided, committed and read as a whole: while that lasts, others wait.
"""
LONGEST_ID: Final = 64
_MOST_ADMITTED: Final = 32
"""Submissions that may wait for a look at them, each of which may be large."""
_ADMITTED_MS: Final = 1_000
LONG: Final = 20_000
"""Jobs of a submission at which others do not wait any more while it is looked at."""
_DONE_BY: Final[Mapping[Action, str]] = {
    "hold": "condor_hold",
    "release": "condor_release",
    "remove": "condor_rm",
    "remove_x": "condor_rm -forcex",
    "vacate": "condor_vacate_job",
    "vacate_fast": "condor_vacate_job -fast",
    "suspend": "condor_suspend",
    "continue": "condor_continue",
}
_COMMANDS: Final[Mapping[Action, Callable[[str, str], Command]]] = {
    "hold": Hold,
    "release": Release,
    "remove": Remove,
    "remove_x": RemoveX,
    "vacate": partial(Order, "vacate"),
    "vacate_fast": partial(Order, "vacate_fast"),
    "suspend": partial(Order, "suspend"),
    "continue": partial(Order, "continue"),
}
_OF_FACTORIES: Final = frozenset({"hold", "release", "remove"})
"""What can be done with jobs that are not made yet."""


class UserCommands:
    """Answers submit and act."""

    def __init__(
        self,
        recorder: QueueRecorder,
        shadows: ShadowDispatch,
        factories: Factories,
        limits: QueueLimits,
        backlog: Backlog,
        settings: ScheddSettings,
    ) -> None:
        self._recorder = recorder
        self._backlog = backlog
        self._queue = recorder.queue
        self._shadows = shadows
        self._factories = factories
        self._settings = settings
        self._admission = Admission(settings.job_transforms, settings.submit_requirements)
        self._admitting: dict[str, asyncio.Future[Admitted]] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="admission")
        self._limits = limits
        self._under_way: dict[str, asyncio.Task[Acted]] = {}

    @property
    def _shard(self) -> str:
        return self._recorder.shard.name

    async def submit(self, request: Submit, caller: Identity) -> Submitted:
        """Record a cluster of jobs, once per id; `denied`, `unacceptable` or `busy` if it cannot be."""
        command = command_id(caller, "submit", request.id)
        if (first := self._recorder.shard.answer(command)) is not None:
            return msgspec.msgpack.decode(await first, type=Submitted)
        owner = person_of(caller)
        self._backlog.require_room()
        admitted = await self._admitted(request, command, owner)
        if (first := self._recorder.shard.answer(command)) is not None:
            # It was said twice, and recorded meanwhile.
            return msgspec.msgpack.decode(await first, type=Submitted)
        late = asked(admitted.ad)
        self._make_room(owner, len(admitted.rows), late=late)
        number = self._queue.newest_cluster + 1
        try:
            ad = job_sets.numbered(
                admitted.ad, admitted.columns, self._queue.clusters.values(), owner=owner, number=number
            )
        except Unacceptable as refusal:
            raise RefusedError(RefusalCode.UNACCEPTABLE, str(refusal)) from refusal
        kind = FactorySubmitted if late else ClusterSubmitted
        event = kind(cluster=number, owner=owner, ad=ad, columns=admitted.columns, rows=admitted.rows)
        if (size := len(encode(event))) > SUBMISSION_BYTES:
            raise RefusedError(
                RefusalCode.UNACCEPTABLE,
                f"the submission takes {size:,} bytes, and at most {SUBMISSION_BYTES:,} may be submitted at once; "
                "submit it as several clusters",
            )

        def reply(frame: int) -> Submitted:
            position = Position(self._shard, frame)
            count = len(admitted.rows)
            return Submitted(cluster=number, count=count, position=position, warnings=admitted.warnings)

        held = self._spooling(event) if request.spool else self._on_hold(event)
        changes = [(f"cluster/{number}", event), *held]
        frame = await self._recorder.record(
            changes, command=command, reply=lambda frame: _encode(reply(frame))
        )
        return reply(frame)

    def _spooling(self, submitted: ClusterSubmitted) -> Recording:
        """What is to be recorded of jobs whose files are to be sent."""
        procs = range(len(submitted.rows))
        return self._recorder.record_grouped(
            [(JobId(submitted.cluster, proc), spooling.held()) for proc in procs]
        )

    def _on_hold(self, submitted: ClusterSubmitted) -> Recording:
        """
        What is to be recorded of jobs that are submitted on hold; of those still to be made, that none is made.
        """
        number, by = submitted.cluster, submitted.owner
        procs = list(on_hold(submitted.ad, submitted.columns, submitted.rows))
        if submitted.late and procs:
            stopped = paused(number, begun(submitted), reason=REASON, by=by)
            return [(factory_stream(number), event) for event in stopped]
        (event,) = decide(Job(), Hold(reason=REASON, by=by, code=HoldCode.SubmittedOnHold))
        return self._recorder.record_grouped([(JobId(number, proc), event) for proc in procs])

    async def _admitted(self, request: Submit, command: str, owner: str) -> Admitted:
        """What is to be recorded of a submission; looked at in a thread of its own if that takes long."""
        if not self._admission.needed and len(request.rows) < LONG:
            try:
                return self._admit(request, owner)
            except Unacceptable as refusal:
                raise RefusedError(RefusalCode.UNACCEPTABLE, str(refusal)) from refusal
        if command not in self._admitting:  # else it is repeated while we are at it
            if len(self._admitting) >= _MOST_ADMITTED:
                raise RefusedError(
                    RefusalCode.BUSY,
                    f"{len(self._admitting)} submissions are being looked at; try again in {_ADMITTED_MS // 1000} s",
                    retry_after_ms=_ADMITTED_MS,
                )
            work = asyncio.get_running_loop().run_in_executor(self._thread, self._admit, request, owner)
            self._admitting[command] = work
            work.add_done_callback(lambda _: self._admitting.pop(command))
        try:
            admitted = await asyncio.shield(self._admitting[command])
        except Unacceptable as refusal:
            if refusal.__cause__ is not None:
                _log.error("a job transform or submit requirement has failed", exc_info=refusal.__cause__)
            raise RefusedError(RefusalCode.UNACCEPTABLE, str(refusal)) from refusal
        for complaint in admitted.complaints:
            _log.warning("a statement of a job transform was skipped", extra={"cause": complaint})
        return admitted

    def _admit(self, request: Submit, owner: str) -> Admitted:
        settings = self._settings
        admitted = Admitted(
            ad=request.ad, columns=request.columns, rows=request.rows, warnings=[], complaints=[]
        )
        if self._admission.needed:
            check(request.ad, request.columns, request.rows, limit=settings.max_jobs_per_factory)
            admitted = self._admission.admit(
                owner, request.ad, request.columns, request.rows, now=time.time()
            )
        late = asked(admitted.ad)
        limit = settings.max_jobs_per_factory if late else settings.max_jobs_per_submission
        check(admitted.ad, admitted.columns, admitted.rows, limit=limit)
        ad, columns, rows = admitted.ad, admitted.columns, admitted.rows
        if request.spool:
            ad, columns, rows = spooling.placed((ad, columns, rows), settings.spool_path)
        ad, columns, rows = completed(ad, columns, rows, owner=owner, members=settings.accounting_groups)
        return msgspec.structs.replace(admitted, ad=ad, columns=columns, rows=rows)

    def _make_room(self, owner: str, jobs: int, *, late: bool) -> None:
        self._backlog.require_room()
        refused = self._limits.refusal_of_factory if late else self._limits.refusal
        if refusal := refused(owner, jobs):
            raise RefusedError(RefusalCode.UNACCEPTABLE, refusal)

    async def act(self, request: Act, caller: Identity) -> Acted:
        """Do one thing to some jobs, once per id."""
        command = command_id(caller, "act", request.id)
        if (first := self._recorder.shard.answer(command)) is not None:
            return msgspec.msgpack.decode(await first, type=Acted)
        person = person_of(caller)
        self._backlog.require_room()
        if command not in self._under_way:  # else it is repeated while we are at it
            self._under_way[command] = asyncio.create_task(self._carry_out(request, command, person))
            self._under_way[command].add_done_callback(lambda _: self._under_way.pop(command))
        return await asyncio.shield(self._under_way[command])

    async def _carry_out(self, request: Act, command: str, person: str) -> Acted:
        """
        Piece by piece, so that others get a word in; the last piece holds the answer.

        Whoever dies in between leaves it half done and unanswered: a repeat does the rest.
        """
        outcomes: list[JobOutcome] = []
        said = f"{request.reason or f'via {_DONE_BY[request.action]}'} (by user {person})"
        only_if = condition(request.select.constraint)
        factories = [
            self._factories.act(number, request, person=person, reason=said)
            for number in list(self._factories.selected(request.select, only_if))
            if request.action in _OF_FACTORIES
        ]
        selected = await selected_jobs(self._queue, request.select)
        command_of = _COMMANDS[request.action]
        if request.action == "hold" and request.subcode:
            command_of = partial(Hold, subcode=request.subcode)
        decisions = _Decisions(command_of(said, person))
        pieces = ChunkedRecording(self._recorder, most=self._settings.max_backlog // 2)
        for job in selected:
            if pieces.full:
                await pieces.record_chunk()
            if (entry := self._queue.jobs.get(job)) is not None:
                events, result = self._act_on(job, entry.job, decisions, person)
                pieces.add(job, entry.job, events)
                outcomes.append(JobOutcome(job, result, entry.job.shown))
        if request.select.jobs:
            found = {outcome.job for outcome in outcomes}
            outcomes += [JobOutcome(job, "not_found") for job in request.select.jobs if job not in found]

        def reply(frame: int) -> Acted:
            return Acted(outcomes=outcomes, position=Position(self._shard, frame), factories=factories)

        frame = await self._recorder.record(
            pieces.take_rest(), command=command, reply=lambda frame: _encode(reply(frame))
        )
        for outcome in outcomes:
            entry = self._queue.jobs.get(outcome.job)
            if outcome.outcome == "done" and entry is not None and entry.job.claim:
                self._shadows.deliver_orders(outcome.job)
        return reply(frame)

    def _act_on(
        self, job: JobId, state: Job, decisions: "_Decisions", person: str
    ) -> tuple[Sequence[JobEvent], Outcome]:
        if not may_manage(person, self._queue.owner(job), self._settings.queue_super_users):
            return (), "denied"
        return decisions.of(state)


class _Decisions:
    """What a command comes to, worked out once for jobs that are alike and come one after the other."""

    def __init__(self, command: Command) -> None:
        self._command = command
        self._state: Job | None = None
        self._last: tuple[Sequence[JobEvent], Outcome] = (), "bad_status"

    def of(self, state: Job) -> tuple[Sequence[JobEvent], Outcome]:
        """What is to be recorded of a job in this state, and what to answer."""
        if state is not self._state:
            self._state = state
            try:
                events = decide(state, self._command)
                self._last = events, "done" if events else "already_done"
            except Refused:
                self._last = (), "bad_status"
        return self._last


def person_of(caller: Identity) -> str:
    """Who asks; raises RefusedError for who is nobody."""
    if caller.kind != "user":
        raise RefusedError(
            RefusalCode.DENIED, f"{caller.name} is a service of the pool; only people own jobs"
        )
    return caller.name


def command_id(caller: Identity, verb: str, given: str) -> str:
    """
    Under what an answer is remembered: nobody gets another's, or that of another command.

    Raises RefusedError for an id that is none.
    """
    if not 0 < len(given) <= LONGEST_ID or not given.isascii() or not given.isprintable():
        raise RefusedError(
            RefusalCode.MALFORMED,
            f"the id of a command has between 1 and {LONGEST_ID} printable ASCII characters",
        )
    return f"{caller.token}:{verb}:{given}"
