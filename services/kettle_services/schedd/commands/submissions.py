"""Submissions: what is submitted is examined, and recorded as one event for each cluster of jobs."""

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec

from kettle.accounts.lookup import Accounts, StrangerError
from kettle.bus.ports import RefusedError
from kettle.eventsourcing.command_pipeline import Decision, DecisionOfMany, Recording
from kettle.jobs.credential_attributes import credential_attributes
from kettle.jobs.lower_names import lower_names
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.jobs.submitted_on_hold import REASON, on_hold
from kettle.submit.submit_machine import machine_macros
from kettle_services.schedd.commands.entrypoint_door import EntrypointDoor
from kettle_services.schedd.domain.jobs.commands import Hold
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.jobs.factory import asked, begun, paused
from kettle_services.schedd.domain.jobs.job import Job
from kettle_services.schedd.domain.jobs.universes import at_home, universe_at_home, universe_with_all_rights
from kettle_services.schedd.domain.queue.fold import factory_stream
from kettle_services.schedd.domain.submission import bearers, job_sets, spooling
from kettle_services.schedd.domain.submission.accounting_group import completed
from kettle_services.schedd.domain.submission.admission import Admission, Admitted
from kettle_services.schedd.domain.submission.in_session import in_session
from kettle_services.schedd.domain.submission.submitted_together import recorded_as
from kettle_services.schedd.domain.submission.validation import (
    Unacceptable,
    check,
    check_count,
    with_user,
    without_owner,
)
from kettle_services.schedd.queue.backlog import Backlog
from kettle_services.schedd.queue.limits import QueueLimits
from kettle_services.schedd.queue.recorder import QueueRecorder
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.codes import HoldCode, RefusalCode
from kettle_wire.commands.schedd import AskRoom, Room, Submit, Submitted
from kettle_wire.commands.submissions import ManySubmitted, Outcome, SubmitAlike
from kettle_wire.endpoint import Position, Refusal
from kettle_wire.event_expansion import stream_of_span
from kettle_wire.events import ClusterSubmitted, FactorySubmitted, encode
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId
from kettle_wire.people import Shown
from kettle_wire.workflows import BY_TOKEN

_encode: Final = msgspec.msgpack.Encoder().encode
_log: Final = logging.getLogger(__name__)

SUBMISSION_BYTES: Final = 16 * 1024 * 1024
"""
A submission is one event, which is decided, committed and read as a whole: while that lasts, others wait.
"""
_MOST_EXAMINED: Final = 32
"""Submissions that may be examined or wait for it, each of which may be large."""
_EXAMINED_MS: Final = 1_000
ALIKE_BYTES: Final = 4 * 1024 * 1024
"""What submissions that are alike may come to: they are sent as a fraction of it."""
_ALONE: Final = frozenset({"jobstatus", "jobsetname", "jobsetid"})
"""What says that more is to be recorded of a submission than itself, or that it belongs to others."""
_OF_ALL: Final = frozenset({"jobuniverse", "shouldtransferfiles"})
"""By these it is decided what else has to be true of a job, so they are the same for all that are examined together."""
LONG: Final = 20_000
"""Jobs of a submission at which others no longer wait while it is examined."""


class Submissions:
    """Decides `submit`."""

    def __init__(
        self,
        recorder: QueueRecorder,
        limits: QueueLimits,
        backlog: Backlog,
        settings: ScheddSettings,
        accounts: Accounts,
        seal: AttributeSeal,
        group_of: Callable[[str], Awaitable[str]] | None = None,
        door: EntrypointDoor | None = None,
    ) -> None:
        """
        `accounts`: whose files this access point can use; `group_of`: the accounting group that a person's jobs are in unless
        they name another; `door`: through which jobs come for a compute entrypoint.
        """
        self._door = door
        self._seal = seal
        self._group_of = group_of
        self._recorder = recorder
        self._backlog = backlog
        self._queue = recorder.queue
        self._settings = settings
        self._admission = Admission(
            settings.transforms,
            settings.submit_requirements,
            {**machine_macros(), "COLLECTOR_NAME": settings.pool},
        )
        self._examined = 0
        """Submissions in the hands of the thread."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="admission")
        self._limits = limits
        self._accounts = accounts
        self._domain = settings.uid_domain or socket.gethostname()

    async def submit(self, request: Submit, caller: Identity) -> Decision[Submitted]:
        """
        A cluster of jobs; `unacceptable` if it cannot be, or `busy`, or `denied` to a token if it would run on the access point.
        """
        return await self._submit(request, caller, by_job=False)

    async def submit_from_job(self, request: Submit, caller: Identity) -> Decision[Submitted]:
        """As `submit`, by a running job; also `unacceptable` if these jobs would run on the access point."""
        return await self._submit(request, caller, by_job=True)

    async def submit_members(self, request: Submit, caller: Identity) -> Decision[Submitted]:
        """
        As `submit_from_job`, of an interactive session: results are kept in the spool, and no input files are waited for.
        """
        return await self._submit(request, caller, by_job=True, members=True)

    async def _submit(
        self, request: Submit, caller: Identity, *, by_job: bool, members: bool = False
    ) -> Decision[Submitted]:
        owner = caller.name
        admitted = await self._acceptable(request, caller, by_job=by_job, members=members)
        late = asked(admitted.ad)
        self._backlog.require_room()
        self._require_places(owner, len(admitted.rows), late=late)
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

        def reply(position: Position) -> Submitted:
            count = len(admitted.rows)
            return Submitted(cluster=number, count=count, position=position, warnings=admitted.warnings)

        held = self._spooling(event) if request.spool else self._on_hold(event)
        if members:
            held = [*held, *self._all_there(event)]
        return Decision(reply, [(f"cluster/{number}", event), *held])

    async def submit_alike(
        self, request: SubmitAlike, caller: Identity, *, by_job: bool
    ) -> DecisionOfMany[Submitted] | None:
        """
        Clusters that have most in common, examined and recorded as one; None: they are to be submitted one by one, because one of
        them may be refused, or they are more than plain jobs, to the site or to themselves. Refuses them if all of them are too much.
        """
        if (size := len(_encode(request.ad)) * len(request.ids)) > ALIKE_BYTES:
            raise RefusedError(
                RefusalCode.UNACCEPTABLE,
                f"{len(request.ids)} submissions take {size:,} bytes, and at most {ALIKE_BYTES:,} may come together; send fewer at a time",
            )
        if self._admission.needed or self._door is not None or caller.bearer:
            return None
        table = Submit(id=request.ids[0], ad=request.ad, columns=request.columns, rows=request.rows)
        try:
            admitted = await self._acceptable(table, caller, by_job=by_job)
            self._require_places(caller.name, len(admitted.rows), late=False)
        except RefusedError:
            return None
        ad, columns, rows = admitted.ad, admitted.columns, admitted.rows
        differing = set(map(str.lower, columns))
        if asked(ad) or not _ALONE.isdisjoint(differing | lower_names(ad).keys()) or _OF_ALL & differing:
            return None
        self._backlog.require_room()
        first = self._queue.newest_cluster + 1
        events = recorded_as(first, caller.name, ad, columns, rows)

        def replies(position: Position) -> list[Submitted]:
            numbers = range(first, first + len(rows))
            return [Submitted(cluster=number, count=1, position=position) for number in numbers]

        return DecisionOfMany(replies, [(stream_of_span(event.first), event) for event in events])

    async def _acceptable(
        self, request: Submit, caller: Identity, *, by_job: bool, members: bool = False
    ) -> Admitted:
        """What is to be recorded of it, if nothing speaks against it but how many jobs there are."""
        owner, request = caller.name, _in_session(request)
        if not request.spool:
            await self._refuse_stranger(owner, "submit it with its files: condor_submit -spool")
        shown = None if self._door is None else await self._door.shown_by(owner)
        admitted = await self._admitted(request, owner, shown, members=members)
        if self._door is not None:
            self._door.require_welcome(owner, shown, admitted, spool=request.spool)
        if by_job:
            _refuse_at_home(admitted, owner)
        elif caller.bearer:
            admitted = self._for_bearer(request, admitted, owner)
        if request.spool and self._accounts.privileged and at_home(admitted.ad.get("JobUniverse", 0)):
            await self._refuse_stranger(
                owner, "a program that runs on it needs one: submit it as vanilla job"
            )
        return admitted

    def _for_bearer(self, request: Submit, admitted: Admitted, owner: str) -> Admitted:
        """
        A DAG job says of itself that it came by a token; raises RefusedError for others that would run here.
        """
        universe = universe_at_home(admitted.ad, admitted.columns, admitted.rows)
        if not universe:
            return admitted
        asked, home = (request.ad, request.columns, request.rows), self._settings.home_path
        if why := bearers.refusal_of_submission(asked, universe, owner=owner, home=home, spool=request.spool):
            raise RefusedError(RefusalCode.DENIED, why)
        return msgspec.structs.replace(admitted, ad={**admitted.ad, BY_TOKEN: True})

    async def ask_room(self, request: AskRoom, caller: Identity) -> Room:
        """
        Raises RefusedError, as `submit` would, for more jobs than the caller may submit; so nobody makes them for nothing.
        """
        if not self._admission.needed:  # a transform may have the jobs come little by little, or not
            try:
                check_count(request.jobs, self._most_at_once(late=request.late))
            except Unacceptable as refusal:
                raise RefusedError(RefusalCode.UNACCEPTABLE, str(refusal)) from refusal
            self._require_places(caller.name, request.jobs, late=request.late)
        return Room()

    def _most_at_once(self, *, late: bool) -> int:
        return self._settings.max_jobs_per_factory if late else self._settings.max_jobs_per_submission

    async def _refuse_stranger(self, owner: str, instead: str) -> None:
        """
        Files that are here already are used with their owner's rights, and local jobs have them: both need an account.
        """
        try:
            await self._accounts.find(owner)
        except StrangerError as error:
            raise RefusedError(RefusalCode.UNACCEPTABLE, f"{error}; {instead}") from error

    def _spooling(self, submitted: ClusterSubmitted) -> Recording:
        """What is to be recorded of jobs whose files are to be sent."""
        procs = range(len(submitted.rows))
        return self._recorder.record_grouped(
            [(JobId(submitted.cluster, proc), spooling.held()) for proc in procs]
        )

    def _all_there(self, submitted: ClusterSubmitted) -> Recording:
        """What is to be recorded of jobs in the spool that have no input files to be waited for."""
        procs = range(len(submitted.rows))
        return self._recorder.record_grouped(
            [(JobId(submitted.cluster, proc), spooling.all_there()) for proc in procs]
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

    async def _admitted(self, request: Submit, owner: str, shown: Shown | None, *, members: bool) -> Admitted:
        """What is to be recorded of a submission; examined in a thread of its own if that takes long."""
        group = "" if self._group_of is None else await self._group_of(owner)
        if not self._admission.needed and len(request.rows) < LONG:
            try:
                return self._admit(request, owner, group, shown, members)
            except Unacceptable as refusal:
                raise RefusedError(RefusalCode.UNACCEPTABLE, str(refusal)) from refusal
        if self._examined >= _MOST_EXAMINED:
            raise RefusedError(
                RefusalCode.BUSY,
                f"{self._examined} submissions are being examined; try again in {_EXAMINED_MS // 1000} s",
                retry_after_ms=_EXAMINED_MS,
            )
        self._examined += 1
        try:
            admitted = await asyncio.get_running_loop().run_in_executor(
                self._thread, self._admit, request, owner, group, shown, members
            )
        except Unacceptable as refusal:
            if refusal.__cause__ is not None:
                _log.error("a job transform or submit requirement has failed", exc_info=refusal.__cause__)
            raise RefusedError(RefusalCode.UNACCEPTABLE, str(refusal)) from refusal
        finally:
            self._examined -= 1
        for complaint in admitted.complaints:
            _log.warning("a statement of a job transform was skipped", extra={"cause": complaint})
        return admitted

    def _admit(
        self,
        request: Submit,
        owner: str,
        group: str,
        shown: Shown | None,
        members: bool,  # noqa: FBT001 - an executor calls it
    ) -> Admitted:
        settings = self._settings
        own = without_owner(request.ad, owner)
        admitted = Admitted(ad=own, columns=request.columns, rows=request.rows, warnings=[], complaints=[])
        if self._admission.needed:
            check(
                own,
                request.columns,
                request.rows,
                limit=settings.max_jobs_per_factory,
                grid=settings.entrypoint,
                members=members,
            )
            if shown is not None:
                own = {**own, **credential_attributes(shown)}
            admitted = self._admission.admit(owner, own, request.columns, request.rows, now=time.time())
        limit = self._most_at_once(late=asked(admitted.ad))
        check(
            admitted.ad,
            admitted.columns,
            admitted.rows,
            limit=limit,
            grid=settings.entrypoint,
            marked=self._admission.needed,
            members=members,
        )
        ad, columns, rows = admitted.ad, admitted.columns, admitted.rows
        if request.spool:
            ad, columns, rows = spooling.placed((ad, columns, rows), settings.spool_path)
        ad, columns, rows = completed(
            ad, columns, rows, owner=owner, members=settings.accounting_groups, usual=group
        )
        ad = self._seal.sealed(with_user(ad, owner, self._domain), owner)
        columns, rows = self._seal.sealed_table(columns, rows, owner)
        return msgspec.structs.replace(admitted, ad=ad, columns=columns, rows=rows)

    def _require_places(self, owner: str, jobs: int, *, late: bool) -> None:
        refused = self._limits.refusal_of_factory if late else self._limits.refusal
        if refusal := refused(owner, jobs):
            raise RefusedError(RefusalCode.LIMIT, refusal)


def _in_session(request: Submit) -> Submit:
    """The request without what only this access point says of sessions."""
    try:
        return in_session(request)
    except Unacceptable as refusal:
        raise RefusedError(RefusalCode.UNACCEPTABLE, str(refusal)) from refusal


def _refuse_at_home(admitted: Admitted, owner: str) -> None:
    """
    Jobs here have all that their owner's account has, a credential without an end too: more than was given to the one that asks.
    """
    if universe := universe_with_all_rights(admitted.ad, admitted.columns, admitted.rows):
        raise RefusedError(
            RefusalCode.UNACCEPTABLE,
            f"a running job may not submit jobs of the {universe.lower()} universe, because they run with all "
            f"rights of {owner}: submit a vanilla job, or submit it yourself, with a credential of your own",
        )


def outcomes(found: list[Submitted | RefusedError]) -> ManySubmitted:
    """The answer to many submissions."""
    return ManySubmitted(
        outcomes=[
            Outcome(refusal=Refusal(each.code, str(each)))
            if isinstance(each, RefusedError)
            else Outcome(submitted=each)
            for each in found
        ]
    )
