"""The startd: decisions are recorded in the journal, then they take effect."""

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from kettle.accounts.lookup import StrangerError
from kettle.bus.ports import Bus
from kettle.execution.attempts.job_spec import Account, AttemptId, Input, Isolation, StoredReport
from kettle.execution.attempts.messages import AccessReply, Question
from kettle.execution.input_files.cache import InputCache
from kettle.execution.input_files.download import InputError
from kettle.execution.system.cgroup_layout import CgroupLayout
from kettle.execution.system.linux import boottime
from kettle.runtime import Telemetry
from kettle.transfer.plugin import Plugin
from kettle_services.startd.access_point.questions import QuestionRelay
from kettle_services.startd.access_point.reports import ReportDelivery
from kettle_services.startd.advertiser import Advertiser
from kettle_services.startd.domain.claims import activation as attempts
from kettle_services.startd.domain.claims import requests as claims
from kettle_services.startd.domain.state.changes import (
    AttemptAccepted,
    AttemptContinued,
    AttemptFinished,
    AttemptStopped,
    AttemptSuspended,
    Change,
    ClaimClosing,
    Claimed,
    ClaimRemoved,
    ClaimWaiting,
    Drained,
    Draining,
    OwnerOrderChanged,
    Renewed,
    Reopened,
    StarterConnected,
)
from kettle_services.startd.domain.state.claim import Claim, Now, RunningAttempt, StopOrder
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.file_transfer.checkpoints import Checkpoints
from kettle_services.startd.machine import host
from kettle_services.startd.machine.container_offer import ContainerOffer
from kettle_services.startd.machine.job_accounts import JobAccounts
from kettle_services.startd.policy.backfill import Backfilling
from kettle_services.startd.policy.evaluation import PolicyEvaluator
from kettle_services.startd.policy.health import Health
from kettle_services.startd.policy.load_and_keyboard import Observer
from kettle_services.startd.settings import StartdSettings
from kettle_services.startd.starters.cleanup_tasks import CleanupTasks
from kettle_services.startd.starters.orders import StarterOrders
from kettle_services.startd.starters.pool import StarterPool
from kettle_services.startd.starters.supervisor import StarterSupervisor
from kettle_services.startd.state.recorder import Recorder
from kettle_wire.attempts import Ending, Transfer
from kettle_wire.codes import HoldCode, VacateCode
from kettle_wire.commands.startd import Activation, ClaimKey
from kettle_wire.telemetry.traces import STARTD_ATTEMPT
from kettle_wire.worker_reports import FinalReport, Report, ReportKey

_log: Final = logging.getLogger(__name__)
_USUAL_LEASE_S: Final = 1800.0
"""What schedds ask for by default: the lease of a claim that is gone, until its schedd has said more."""


def moment() -> Now:
    """Now, on both clocks."""
    return Now(clock=boottime(), time=time.time())


class Startd:
    """The machine with everything that acts on it.  `record` is the only way to change it."""

    def __init__(
        self,
        machine: Machine,
        settings: StartdSettings,
        *,
        execute: Path,
        recorder: Recorder,
        starter_pool: StarterPool,
        cgroups: CgroupLayout | None,
        containers: ContainerOffer,
        plugins: list[Plugin],
        isolation: Isolation,
        reporter: ReportDelivery,
        advertiser: Advertiser,
        cache: InputCache,
        bus: Bus,
        observer: Observer,
        tasks: asyncio.TaskGroup,
        telemetry: Telemetry,
    ) -> None:
        self.machine: Final = machine
        self.reporter: Final = reporter
        self._settings = settings
        self._recorder = recorder
        self._evictions = CleanupTasks(execute, cgroups, containers, tasks)
        self._advertiser = advertiser
        self._cache = cache
        self._tasks = tasks
        self._telemetry = telemetry
        self._hurry: float | None = None
        """Seconds that jobs have to end because the startd is being stopped; None: as long as usual."""
        self._awaited_until = 0.0
        """When the last of the leases ends of those whose results wait here, seconds since boot."""
        self.checkpoints: Final = Checkpoints(execute)
        self._fetching: dict[AttemptId, asyncio.Task[None]] = {}
        self._deadlines = asyncio.Event()
        self._starters = StarterSupervisor(starter_pool, self)
        self._questions = QuestionRelay(bus, tasks, key=self._key, reply=self._starters.reply)
        self._starter_pool = starter_pool
        self._accounts = JobAccounts(settings)
        self._specs = StarterOrders(machine, settings, execute, cgroups, containers, plugins, isolation)
        self._backfilling = Backfilling(
            machine,
            settings,
            execute=execute,
            cgroups=cgroups,
            containers=containers,
            isolation=isolation,
            starter_pool=starter_pool,
            evictions=self._evictions,
            moment=moment,
            told=self._backfill_changed,
        )
        self.overseer: Final = PolicyEvaluator(
            machine,
            self.record,
            moment,
            advertiser,
            observer,
            self._backfilling,
            interval=settings.polling_interval,
            ends=settings.lease_ends,
        )
        self.health: Final = Health(machine, settings, self.overseer.drain)

    def _backfill_changed(self) -> None:
        self._advertiser.now()
        self.overseer.wake()

    def probed(self) -> None:
        """Probes, or trials of containers, have found something else than before."""
        self._advertiser.now()
        self.overseer.wake()

    async def advertised(self) -> None:
        """Wait until the ads of the machine are published: from then on it can be seen and matched."""
        await self._advertiser.told.wait()

    # -- deciding, recording, acting ---------------------------------------------------------------------------------

    def record(self, changes: Sequence[Change]) -> None:
        """
        Write changes down, make them true, and let them take effect.

        Raises:
            NotRecordedError: they would begin something, and cannot be recorded: nothing has happened.
        """
        if not changes:
            return
        before = self.machine.trouble
        try:
            self._recorder.record(changes)
        finally:
            if before != self.machine.trouble:
                self._advertiser.now()
        for change in changes:
            self._act(change)
        self.health.changed()

    def _act(self, change: Change) -> None:
        match change:
            case Claimed() | ClaimClosing() | Reopened():
                if isinstance(change, Claimed):
                    self._advertiser.note_claim(change.claim)
                self._advertiser.now()
                self._deadlines.set()
                self._backfilling.evaluate()
            case Draining() | Drained() | ClaimRemoved() | ClaimWaiting():
                if isinstance(change, ClaimRemoved):
                    self._specs.forget(change.claim)
                self._advertiser.now()
                self.overseer.wake()
            case Renewed(claims=names, deadline=deadline):
                for attempt in self._attempts_of(names):
                    self._starters.renew_lease(attempt, deadline)
                self._deadlines.set()
            case AttemptAccepted() | AttemptFinished():
                self._advertiser.soon()
            case AttemptSuspended(claim=name) | AttemptContinued(claim=name) | OwnerOrderChanged(claim=name):
                self._still(name)
                self._advertiser.soon()
            case AttemptStopped(claim=name, stop=stop):
                self._end(name, stop)
            case _:
                pass

    def _attempts_of(self, claims: Sequence[str]) -> list[AttemptId]:
        found = (self.machine.claims.get(name) for name in claims)
        return [
            attempt for claim in found if claim is not None and (attempt := claim.attempt_id()) is not None
        ]

    def _still(self, name: str) -> None:
        claim = self.machine.claims.get(name)
        if claim is not None and claim.attempt is not None:
            for attempt in self._attempts_of([name]):
                self._starters.set_suspended(attempt, suspended=claim.attempt.stands_still)

    def _end(self, name: str, stop: StopOrder) -> None:
        for attempt in self._attempts_of([name]):
            fetching = self._fetching.pop(attempt, None)
            if fetching is not None:
                fetching.cancel()
                self._report_lost_attempt(attempt, stop.ending)
            else:
                limit = self._specs.kill_timeout(self.machine.claims[name], moment())
                self._starters.stop_attempt(
                    attempt, stop, limit=limit if self._hurry is None else min(limit, self._hurry)
                )

    # -- attempts ----------------------------------------------------------------------------------------------------

    def begin(self, activation: Activation, change: AttemptAccepted) -> None:
        """Run an attempt that was accepted and recorded just now."""
        claim = self.machine.claims[change.claim]
        attempt = AttemptId(change.claim, activation.job, activation.attempt)
        self._starters.expect(attempt)
        self._backfilling.evaluate()
        here = _is_here(activation)
        if here and not self._backfilling.is_leaving(claim.parent) and not self._accounts.are_asked(claim):
            account = host.account(self._settings, claim.slot)
            self._start(claim, activation, account, [self._cache.input(file) for file in activation.inputs])
            return
        fetching = self._tasks.create_task(self._fetch(attempt, activation), name=f"inputs {attempt.name}")
        self._fetching[attempt] = fetching

    async def _fetch(self, attempt: AttemptId, activation: Activation) -> None:
        """Get the input files, then start; the files stay in the cache until the starter has copied them."""
        began = time.time()
        try:
            account = await self._accounts.find(self.machine.claims[attempt.claim], activation.ad)
            async with self._cache.gathered(activation) as inputs:
                await self._backfilling.left(self.machine.claims[attempt.claim].parent)
                claim = self.machine.claims[attempt.claim]
                self._fetching.pop(attempt, None)
                came = None if _is_here(activation) else Transfer(began=began, ended=time.time())
                self._start(claim, activation, account, inputs, came)
                await self._starters.settled(attempt)
        except InputError as error:
            self._fetching.pop(attempt, None)
            # Of this machine's disk: another machine may have more room.
            code = VacateCode.ScratchDirError if error.errno else HoldCode.TransferInputError
            ending = Ending(code=code, subcode=error.errno, reason=str(error))
            self._report_lost_attempt(attempt, ending)
        except StrangerError as refusal:
            self._fetching.pop(attempt, None)
            ending = Ending(code=HoldCode.FailedToAccessUserAccount, reason=str(refusal))
            self._report_lost_attempt(attempt, ending)

    def _start(
        self,
        claim: Claim,
        activation: Activation,
        account: Account | None,
        inputs: list[Input],
        fetched: Transfer | None = None,
    ) -> None:
        spec = self._specs.of(claim, activation, account, inputs, moment())
        self._starters.start(msgspec.structs.replace(spec, fetched=fetched))

    def _attempt(self, attempt: AttemptId) -> RunningAttempt | None:
        claim = self.machine.claims.get(attempt.claim)
        return claim.attempt if claim is not None and claim.attempt_id() == attempt else None

    async def ask(self, attempt: AttemptId, verb: str, body: bytes) -> AccessReply | None:
        """Ask the starter of an attempt; None: it is not there, or not any more."""
        return await self._starters.ask(attempt, verb, body)

    # -- messages of the starters
    # ---------------------------------------------------------------------------------------

    def starter_connected(self, attempt: AttemptId, pid: int, started: int) -> None:
        """A starter has registered."""
        self.record([StarterConnected(attempt.claim, pid, started)])

    def record_report(self, report: Report) -> None:
        """The job runs, or uses so much."""
        claim = self.machine.claims.get(report.claim)
        if claim is not None:
            self.checkpoints.said(report, claim.key.secret)
            self.reporter.send_once(claim.schedd, report)

    def repeat_begun(self, activation: Activation) -> None:
        """
        Say once again that the program of an attempt runs, if it does: who looked after it may have died when it had heard that,
        and its successor, which activates the attempt again, finds nobody else who knows.
        """
        attempt = AttemptId(activation.key.claim, activation.job, activation.attempt)
        if (report := self._starters.begun(attempt)) is not None:
            self.record_report(report)

    def forward_question(self, attempt: AttemptId, question: Question) -> None:
        """A starter asks the submit side of its job."""
        self._questions.add(attempt, question)

    def _key(self, attempt: AttemptId) -> ClaimKey | None:
        claim = self.machine.claims.get(attempt.claim)
        return claim.key if claim is not None and claim.attempt_id() == attempt else None

    def confirm(self, keys: Sequence[ReportKey]) -> None:
        """
        These reports are recorded: final ones are forgotten, and jobs whose checkpoints are saved go on.
        """
        self.reporter.confirm(keys)
        if self.machine.draining:
            self._advertiser.soon()
        for attempt, number in self.checkpoints.saved(keys):
            self._starters.confirm_checkpoint(attempt, number)

    def record_exit(self, stored: StoredReport) -> None:
        """A final report is on disk."""
        if stored.id in self._evictions:
            return  # its slot is free when the eviction is done, and not before: `_evicted` finds the report
        known = self._attempt(stored.id)
        changes = attempts.over(self.machine, stored.report, moment())
        self.checkpoints.over(stored.id)
        self.reporter.send_until_confirmed(_closing(stored, changes))
        self.note_awaited([stored.id.claim])
        self._trace(stored.report)
        self._starters.forget(stored.id)
        self.record(changes)
        if known is not None:
            self.health.ended(stored.report, asked=known.stop is not None)

    def note_awaited(self, claims: Iterable[str], deadline: float | None = None) -> None:
        """
        Results of these claims wait here, and their schedds wait for them as long as the claims' leases last: until `deadline`,
        if a claim is gone; None: nobody has said until when.
        """
        now = boottime()
        usual = now + self.machine.lease(_USUAL_LEASE_S)
        gone = usual if deadline is None else min(deadline, now + self.machine.facts.max_lease)
        for name in claims:
            claim = self.machine.claims.get(name)
            self._awaited_until = max(self._awaited_until, gone if claim is None else claim.deadline)

    def _trace(self, report: Report) -> None:
        if isinstance(report.body, FinalReport) and report.trace:
            ended = time.time()
            self._telemetry.finished(
                STARTD_ATTEMPT.name,
                began=ended - report.body.result.usage.wall,
                ended=ended,
                parent={"traceparent": report.trace},
                job=str(report.job),
                attempt=report.attempt,
            )

    def starter_lost(self, attempt: AttemptId, *, ran: bool) -> None:
        """A starter has ended: either it was done, or we clean up after it."""
        stored = self.reporter.on_disk(attempt)
        if stored is not None:
            self.record_exit(stored)
        elif not ran:
            self._lose(attempt, "no starter could be made")
        else:
            claim = self.machine.claims.get(attempt.claim)
            account = host.account(self._settings, claim.slot) if claim is not None else None
            self._evictions.begin(attempt, account, partial(self._evicted, attempt))

    def _evicted(self, attempt: AttemptId) -> None:
        """
        Nothing of the attempt lives any more; if its starter did after all, it may have left its report meanwhile.
        """
        stored = self.reporter.on_disk(attempt)
        if stored is not None:
            self.record_exit(stored)
        else:
            self._lose(attempt, "the starter died")

    def _lose(self, attempt: AttemptId, reason: str) -> None:
        _log.warning("starter gone", extra={"attempt": attempt.name, "reason": reason})
        known = self._attempt(attempt)
        stop = known.stop if known is not None else None
        failed = Ending(code=VacateCode.StarterError, reason=reason)
        self._report_lost_attempt(attempt, stop.ending if stop is not None else failed)

    def _report_lost_attempt(self, attempt: AttemptId, ending: Ending) -> None:
        """Write the final report of an attempt that has no starter to write it."""
        claim, known = self.machine.claims.get(attempt.claim), self._attempt(attempt)
        self._starters.forget(attempt)
        self.checkpoints.over(attempt)
        if claim is None or known is None:
            return
        report = attempts.lost_report(claim, known, ending)
        changes = attempts.over(self.machine, report, moment())
        stored = StoredReport(schedd=claim.schedd, secret=claim.key.secret, report=report)
        self.reporter.store_and_send(_closing(stored, changes))
        self.record(changes)
        self.health.ended(report, asked=known.stop is not None)

    # -- life --------------------------------------------------------------------------------------------------------

    async def take_over(self) -> None:
        """Go on where a former startd stopped, and clean up what it can no longer."""
        self._cache.restore()
        self.reporter.restore()
        self.note_awaited(self.reporter.claims())
        known: set[str] = self.reporter.kept()
        for claim in list(self.machine.claims.values()):
            attempt = claim.attempt_id()
            if attempt is None or claim.attempt is None:
                if claim.ending:
                    self.record([ClaimRemoved(claim.key.claim)])
                continue
            known.add(attempt.sandbox)
            stored = self.reporter.on_disk(attempt)
            if stored is not None:
                self.record_exit(stored)
                continue
            patience = self._settings.adoption_patience
            self._starters.readopt(attempt, claim.attempt, deadline=claim.deadline, patience=patience)
            if claim.attempt.stop is not None:
                self._end(claim.key.claim, claim.attempt.stop)
        self._starter_pool.listen(self._starters.arrive)
        await self._evictions.leftovers(known)

    async def watch_leases(self) -> None:
        """End claims whose lease has ended; never returns."""
        while True:
            self._deadlines.clear()
            deadline = self.machine.next_deadline()
            try:
                async with asyncio.timeout(None if deadline is None else max(0.0, deadline - boottime())):
                    await self._deadlines.wait()
            except TimeoutError:
                self.record(claims.expire(self.machine, moment()))

    async def watch_disk(self) -> None:
        """Accept nothing while there is no room, and accept again when there is; never returns."""
        await self._recorder.watch(self._advertiser.now)

    async def finish(self, hurried: asyncio.Event) -> None:
        """
        Begin nothing any more; returns when the last job has ended by itself and its results have arrived, or as soon as it is
        `hurried`.
        """
        self.machine.stopping = True
        self._advertiser.now()
        waiting = [asyncio.ensure_future(self._arrived()), asyncio.ensure_future(hurried.wait())]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()

    async def _arrived(self) -> None:
        """
        Wait for the confirmations of all reports, as long as they are of use: after a job's lease its schedd has it run again,
        whatever we have of it.
        """
        await self._starters.emptied()
        while self.reporter.unconfirmed and (left := self._awaited_until - boottime()) > 0:
            with suppress(TimeoutError):  # the leases may be renewed meanwhile
                async with asyncio.timeout(left):
                    await self.reporter.confirmed()

    async def drain(self, *, fast: bool = False) -> None:
        """
        End all jobs and claims, and say so; returns when the bus knows.  `fast`: jobs are not given time to end.
        """
        self.machine.stopping = True
        self._hurry = 0.0 if fast else self._settings.shutdown_kill_timeout
        self._evictions.hurry()
        self._advertiser.now()
        self.record(claims.shut_down(self.machine, moment(), hard=fast))
        self._backfilling.evaluate()
        await self._backfilling.emptied()
        await self._starters.emptied()
        self.record([ClaimRemoved(name) for name in self.machine.claims])
        await self.reporter.sent()

    def close(self) -> None:
        """Release everything; running jobs continue."""
        self._questions.close()
        for task in self._fetching.values():
            task.cancel()
        self._starters.close()
        self._backfilling.close()
        self._evictions.close()
        self._starter_pool.close()
        self._recorder.close()


def _closing(stored: StoredReport, changes: Sequence[Change]) -> StoredReport:
    """The report as it is sent, with the mark that its claim is over too, if it is."""
    if not any(isinstance(change, ClaimRemoved) for change in changes):
        return stored
    return msgspec.structs.replace(stored, report=msgspec.structs.replace(stored.report, closing=True))


def _is_here(activation: Activation) -> bool:
    """Whether all input files came with the order to start."""
    return all(file.data is not None for file in activation.inputs)
