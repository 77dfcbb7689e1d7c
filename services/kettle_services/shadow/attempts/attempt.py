"""Looking after one attempt of one job, from its assignment to the record of its end."""

import asyncio
import hmac
import logging
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final, TypeVar, assert_never

import msgspec

from kettle.accounts.lookup import StrangerError
from kettle.bus.ports import BusError, RefusedError
from kettle.jobs.nodes import NUMBER
from kettle.transfer.submit_side_paths import destination, text
from kettle_services.shadow.attempts.preparation import Prepared, prepare
from kettle_services.shadow.attempts.submit_side import AttemptContext
from kettle_services.shadow.chirp.requests import Chirping
from kettle_services.shadow.connections.startd import OversizeError, StartdMessages
from kettle_services.shadow.domain.transfer_checks import limit
from kettle_services.shadow.file_transfer.input_files import Source
from kettle_services.shadow.file_transfer.output_files import OutputError, place
from kettle_services.shadow.file_transfer.output_streaming import Streaming
from kettle_services.shadow.file_transfer.queue import JobOnClaim, TransferTurn
from kettle_services.shadow.files.access import FileAccess
from kettle_services.shadow.spool.checkpoint_saving import Saving
from kettle_wire.attempts import AttemptResult, Ending, ExitRecord
from kettle_wire.codes import HoldCode, RefusalCode, VacateCode
from kettle_wire.commands import attempt_reports
from kettle_wire.commands.attempt_reports import AttemptReport, Began, Ended, Saved, Told, Used
from kettle_wire.commands.chirp import Chirped, Wish
from kettle_wire.commands.questions import StreamPiece
from kettle_wire.commands.shadow import Assignment
from kettle_wire.commands.startd import Activation
from kettle_wire.tasks import MOST_STEPS, Step
from kettle_wire.worker_reports import (
    Checkpointed,
    Continued,
    FinalReport,
    Measured,
    OutputFile,
    Report,
    ReportKey,
    Started,
    Stepped,
    Suspended,
)

_log: Final = logging.getLogger(__name__)

_ABOUT_THE_MESSAGE: Final = frozenset({RefusalCode.MALFORMED, RefusalCode.TOO_LARGE})
"""
Refusals that every machine would repeat, because they are about what was said and not about who was asked.
"""
_HEARD: Final = 100
"""Reports that wait to be looked at; what does not fit, the worker says again."""
_OUTPUT: Final = "Transfer output files failure at the access point:"
_REASON: Final = 4000
"""Characters of a reason: it is recorded permanently, and many of them share a message."""

T = TypeVar("T")


class AttemptFollower:
    """One attempt; `run` returns when its end is recorded."""

    def __init__(self, assignment: Assignment, side: AttemptContext) -> None:
        self.assignment: Final = assignment
        self.settled: Final = asyncio.Event()
        """
        Set when the worker has said whether it runs: an order to end it that came before would find nothing.
        """
        self._side = side
        self._reports: asyncio.Queue[Report] = asyncio.Queue(_HEARD)
        self._heard: set[ReportKey] = set()
        self._saved: set[ReportKey] = set()
        """The newest checkpoint, if it is recorded: its worker may not have heard it."""
        self._newest = 0
        """Its number."""
        self._sources: dict[str, Source] = {}
        self._places: FileAccess | None = None
        self._on_claim: Final = JobOnClaim(assignment.job, assignment.key.claim)
        self._turn: Final = TransferTurn()
        fetch = side.workers.fetcher(assignment)
        self._saving: Final = Saving(
            assignment, side.spool, fetch, self._fetching, self.access, most=side.max_output
        )
        self._streaming: Final = Streaming(assignment.ad, self.access, side.file_work)
        self._began = False
        self._used: asyncio.Future[None] | None = None
        self._chirping: Chirping | None = None
        self._steps = 0
        """How many steps of the job's tasks were passed on."""

    async def run(self) -> None:
        """Activate the claim, follow the worker's reports, bring the results home, and have it recorded."""
        try:
            await self._run()
            await self._side.tokens.end(self.assignment)
        finally:
            self._side.queue.uploaded(self._on_claim)
            if self._chirping is not None:
                self._chirping.close()

    async def _run(self) -> None:
        with self._side.workers.used(self.assignment.startd) as worker:
            prepared = await self._guarded(self._prepare())
            ended: Ended | None
            if isinstance(prepared, AttemptResult):
                ended = await self._unless_it_runs(worker, prepared)
                if ended is not None and prepared.done:
                    await self._record(Told(id="skipped", notes=["Dataflow job was skipped."]))
            else:
                self._sources = {source.file.name: source for source in prepared.sources}
                ended = await self._activate(worker, prepared.activation)
            self.settled.set()
            if ended is not None:
                await self._tell(ended)
            else:
                await self._follow(worker)

    async def _prepare(self) -> Prepared | AttemptResult:
        try:
            return await prepare(self.assignment, self._side, await self.access())
        except StrangerError as refusal:
            return AttemptResult(ending=_stranger(refusal))

    async def access(self) -> FileAccess:
        """What the job may do with files here.  Raises StrangerError."""
        if self._places is None:
            self._places = await self._side.owners.access(self.assignment.job, self.assignment.ad)
        return self._places

    def receive_report(self, report: Report) -> None:
        """The worker said something; repeats of what was said do no harm."""
        if isinstance(report.body, Measured):
            self._measured(report.body)
            self._collect(report.body.told)
            return
        if isinstance(report.body, Checkpointed) and self._is_old(report.key, report.body.number):
            return
        if report.key in self._saved:
            self._side.workers[self.assignment.startd].confirm(report.key)
        if report.key in self._heard or self._reports.full():
            return
        self._heard.add(report.key)
        self._reports.put_nowait(report)

    def _is_old(self, key: ReportKey, number: int) -> bool:
        """
        Whether a newer checkpoint is known; one that is newer itself makes room: there may be very many of them.

        The worker has made it after it had heard that the one before is saved.
        """
        if number > self._newest:
            self._heard -= self._saved
            self._saved.clear()
            self._newest = number
        return number < self._newest

    def _measured(self, measured: Measured) -> None:
        """Pass on what the job uses, for its policies; while the schedd is away, once."""
        if self._used is None or self._used.done():
            self._used = self._side.reporter.queue_report(self._report(Used(usage=measured.usage)))

    async def grant(self, wish: Wish) -> Chirped:
        """What the program of a job wants of its submit side."""
        return await self._chirps().grant(wish)

    async def stream(self, piece: StreamPiece) -> Chirped:
        """Write what the job has printed.  Raises StrangerError."""
        return await self._streaming.take(piece)

    def _chirps(self) -> Chirping:
        if self._chirping is None:
            side = self._side
            self._chirping = Chirping(
                self.assignment.ad, self.access, side.terms, side.file_work, self._record
            )
        return self._chirping

    def _record(self, told: Told) -> asyncio.Future[None]:
        return self._side.reporter.queue_report(self._report(told))

    def _collect(self, told: dict[str, str], *, last: bool = False) -> None:
        if told or (last and self._chirping is not None):
            self._chirps().collect(told, last=last)

    def _fetching(self, outputs: list[OutputFile]) -> AbstractAsyncContextManager[None]:
        """The turn of this job, if any of its results has to be fetched."""
        if all(file.data is not None for file in outputs):
            return nullcontext()
        return self._side.queue.download(self._on_claim, self._user)

    @property
    def _user(self) -> str:
        """With whom others take turns."""
        return text(self.assignment.ad, "Owner")

    def source(self, secret: str, name: str) -> Source | None:
        """The input file that a worker asks for; None if it may not have it, or there is none."""
        if not self.trusts(secret):
            return None
        return self._sources.get(name)

    def may_read(self) -> bool:
        """Whether it is the worker's turn, who asks for input files."""
        given = self._side.queue.may_upload(self._on_claim, self._user)
        self._turn.ask(given=given)
        return given

    def part(self, claim: str) -> "AttemptFollower | None":
        """Who looks after what runs on a claim, as far as it is this one."""
        return self if self.assignment.key.claim == claim else None

    async def deactivate(self, ending: Ending, *, hard: bool) -> None:
        """End it, when its worker knows it.  Raises RefusedError."""
        await self.settled.wait()
        await self._side.workers.deactivate(self.assignment, ending, hard=hard)

    async def suspend(self, *, suspended: bool, number: int) -> None:
        """Suspend it, or continue it, when its worker knows it.  Raises RefusedError."""
        await self.settled.wait()
        await self._side.workers.suspend(self.assignment, suspended=suspended, number=number)

    def trusts(self, secret: str) -> bool:
        """Whether this is said by the machine that has the claim."""
        return hmac.compare_digest(secret.encode(), self.assignment.key.secret.encode())

    async def _guarded(self, step: Coroutine[Any, Any, T]) -> T | AttemptResult:
        """
        The result of a step, or, if it failed in a way that nobody thought of, the end of this attempt alone.

        This is the runner of attempts: as a process ends for a failure in its service, so an attempt does for one in
        what its job brought along, and the jobs of others go on. What is wrong with the bus is everybody's matter.
        """
        try:
            return await step
        except BusError:
            raise
        except Exception as error:  # noqa: BLE001 - see above
            job = self.assignment.job
            _log.exception("failed over job %s", job, extra={"attempt": self.assignment.attempt})
            reason = f"the shadow failed over this job: {type(error).__name__}: {error}"
            return AttemptResult(ending=Ending(code=HoldCode.JobShadowMismatch, reason=reason))

    async def _activate(self, worker: StartdMessages, activation: Activation) -> Ended | None:
        """Why it ended at once; None: it runs, or ran."""
        try:
            result = await worker.activate(activation)
        except OversizeError as error:
            ending = Ending(code=HoldCode.TransferInputError, reason=str(error))
            return await self._unless_it_runs(worker, AttemptResult(ending=ending))
        except RefusedError as refusal:
            _log.warning("activation refused", extra={"job": str(activation.job), "cause": str(refusal)})
            hold = refusal.code in _ABOUT_THE_MESSAGE
            code = HoldCode.JobShadowMismatch if hold else VacateCode.FailedToActivateClaim
            ending = Ending(code=code, reason=str(refusal))
            return await self._unless_it_runs(worker, AttemptResult(ending=ending))
        if result.code:
            lost = result.code == VacateCode.ActivationRefusedClaimNotFound
            ending = Ending(code=result.code, reason=result.reason)
            return Ended(result=AttemptResult(ending=ending), claim_lost=lost)
        return None

    async def _unless_it_runs(self, worker: StartdMessages, ended: AttemptResult) -> Ended | None:
        """
        The end of an attempt that was not activated, by us; None if the worker knows it nevertheless.

        Who looked after it before may have activated it: only the worker can tell, and it is asked until it does, or
        until the schedd says that the attempt is over because the worker's lease is.
        """
        assignment = self.assignment
        probe = Activation(
            key=assignment.key,
            job=assignment.job,
            attempt=assignment.attempt,
            ad={},
            inputs=[],
            shadow=self._side.shadow,
            probe=True,
            trace=assignment.trace,
        )
        while self._reports.empty():
            try:
                result = await worker.activate(probe)
            except RefusedError as refusal:
                _log.warning("probe refused", extra={"job": str(assignment.job), "cause": str(refusal)})
                await worker.peer.wait_after_refusal()
                continue
            if not result.code:
                return None
            return Ended(result=ended, claim_lost=result.code == VacateCode.ActivationRefusedClaimNotFound)
        return None

    async def _follow(self, worker: StartdMessages) -> None:
        while True:
            report = await self._reports.get()
            if not isinstance(report.body, FinalReport):
                await self._meanwhile(worker, report)
                continue
            await self._streaming.end()
            await self._all_told(report.body.told)
            self._pass_on(report.body.steps)
            result = await self._guarded(self._result(report.body))
            await self._tell(Ended(result=result, claim_lost=report.closing))
            worker.confirm(report.key)
            if result.done:
                self._side.spool.drop(self.assignment.job)
            return

    async def _all_told(self, told: dict[str, str]) -> None:
        """What a job has said of itself is recorded before its end is."""
        self._collect(told, last=True)
        if self._chirping is not None:
            await self._chirping.settled()

    async def _meanwhile(self, worker: StartdMessages, report: Report) -> None:
        """What happens to an attempt that goes on."""
        match report.body:
            case Started() as started:
                self._begin(Began(pid=started.pid, at=started.at, input=self._turn.of(started.input)))
            case Suspended(processes=processes, at=at):
                self._side.reporter.queue_report(
                    self._report(attempt_reports.Suspended(processes=processes, at=at))
                )
            case Continued(at=at):
                self._side.reporter.queue_report(self._report(attempt_reports.Continued(at=at)))
            case Checkpointed() as made:
                await self._keep(worker, report.key, made)
            case Measured():
                pass
            case Stepped(steps=steps):
                self._pass_on(steps)
            case FinalReport():
                raise AssertionError("the end of an attempt is no news of one that goes on")
            case _:
                assert_never(report.body)

    def _pass_on(self, steps: list[Step]) -> None:
        """
        Have those recorded that were not passed on yet; what the schedd has heard from who looked after it before is
        recorded once.
        """
        if new := steps[self._steps :]:
            self._side.reporter.queue_report(
                self._report(attempt_reports.Stepped(first=self._steps + 1, steps=new[:MOST_STEPS]))
            )
            self._steps = len(steps)

    async def _keep(self, worker: StartdMessages, key: ReportKey, made: Checkpointed) -> None:
        """
        Save a checkpoint, have it recorded, and let the job go on; if it cannot be saved, hold the job.

        A worker that does not hand it out may have been restarted and not know of it yet: its starter says it again.
        """
        try:
            trouble = await self._trouble_with(made)
        except RefusedError as refusal:
            _log.warning(
                "checkpoint not fetched", extra={"job": str(self.assignment.job), "cause": str(refusal)}
            )
            self._heard.discard(key)
            return
        if trouble:
            reason = _told(f"the job's checkpoint cannot be saved: {trouble}")
            ending = Ending(code=HoldCode.FailedToCheckpoint, reason=reason)
            await self._side.workers.deactivate(self.assignment, ending, hard=True)
            return
        saved = Saved(number=made.number, at=made.at, usage=made.usage)
        await self._side.reporter.queue_report(self._report(saved))
        self._saved.add(key)
        worker.confirm(key)

    async def _trouble_with(self, made: Checkpointed) -> str:
        if made.ending is not None:
            return made.ending.reason
        result = await self._guarded(self._saving.checkpoint(made))
        if isinstance(result, AttemptResult):
            return result.ending.reason if result.ending is not None else ""
        return result

    async def _result(self, final: FinalReport) -> AttemptResult:
        """
        What the schedd is told, with the results in their places.

        If the job was ended, that is what it left for its next run; if that fails, this begins where the last one did.
        """
        result = final.result
        if result.exit is None:
            await self._saving.leave(final.outputs)
            return result
        if not self._began and result.exit.at:
            self._begin(Began(pid=0, at=result.exit.at - result.usage.wall))
        placed = await self._placed(final.outputs, result.exit)
        if isinstance(placed, ExitRecord) and result.ending is None:
            return msgspec.structs.replace(result, exit=placed)
        # The exit of a job whose results are not where they should be does not count, but it may be why they are not.
        ending = placed if isinstance(placed, Ending) else result.ending
        assert ending is not None, "it is not done"
        return AttemptResult(ending=_after(result.exit, ending), usage=result.usage)

    async def _placed(self, outputs: list[OutputFile], ran: ExitRecord) -> ExitRecord | Ending:
        """The program's exit with the results where their owner wants them; or why they cannot be there."""
        fetch = self._side.workers.fetcher(self.assignment)
        node = self.assignment.ad.get(NUMBER, "")
        mark = f"{self.assignment.job}-{self.assignment.attempt}{node and f'-{node}'}"
        size = sum(file.size for file in outputs)
        if size > (most := limit(self.assignment.ad, "MaxTransferOutputMB", self._side.max_output)):
            reason = (
                f"{_OUTPUT} the results of the job have {size >> 20} MiB together, more than {most >> 20} MiB"
            )
            return Ending(code=HoldCode.MaxTransferOutputSizeExceeded, reason=reason)
        turn, moved = TransferTurn(), ran.output
        try:
            places = await self.access()
            turn.ask(given=False)
            async with self._fetching(outputs):
                turn.ask(given=True)
                await place(self.assignment.ad, outputs, fetch, places=places, mark=mark)
            if any(file.data is None for file in outputs):
                moved = turn.ended(moved)
        except StrangerError as refusal:
            return _stranger(refusal)
        except OutputError as error:
            return Ending(code=HoldCode.TransferOutputError, subcode=error.errno, reason=str(error))
        except (RefusedError, ValueError) as error:
            return Ending(code=HoldCode.TransferOutputError, reason=f"Transfer output files failure: {error}")
        core = str(destination(self.assignment.ad, ran.core) or "") if ran.core else ""
        return msgspec.structs.replace(ran, core=core, output=moved)

    def _begin(self, began: Began) -> None:
        if not self._began:
            self._began = True
            self._side.queue.uploaded(self._on_claim)
            self._side.reporter.queue_report(self._report(began))

    async def _tell(self, news: Ended) -> None:
        if (ending := news.result.ending) is not None:
            ending = msgspec.structs.replace(ending, reason=_told(ending.reason))
            news = msgspec.structs.replace(news, result=msgspec.structs.replace(news.result, ending=ending))
        await self._side.reporter.queue_report(self._report(news))

    def _report(
        self,
        news: Began
        | Saved
        | attempt_reports.Suspended
        | attempt_reports.Continued
        | attempt_reports.Stepped
        | Ended
        | Used
        | Told,
    ) -> AttemptReport:
        return AttemptReport(
            job=self.assignment.job,
            attempt=self.assignment.attempt,
            claim=self.assignment.key.claim,
            news=news,
        )


def _stranger(refusal: StrangerError) -> Ending:
    return Ending(code=HoldCode.FailedToAccessUserAccount, reason=str(refusal))


def _told(reason: str) -> str:
    """A reason as it can be said: names of files need not be text, nor short."""
    shown = reason.encode(errors="backslashreplace").decode().replace("\0", "\\0")
    return shown if len(shown) <= _REASON else f"{shown[:_REASON]} ..."


def _after(ran: ExitRecord, ending: Ending) -> Ending:
    """An ending whose reason says how the program had failed before, if it had."""
    if ran.code == 0:
        return ending
    how = f"exited with code {ran.code}" if ran.signal is None else f"been killed by signal {ran.signal}"
    return msgspec.structs.replace(ending, reason=f"{ending.reason} (its program had {how})")
