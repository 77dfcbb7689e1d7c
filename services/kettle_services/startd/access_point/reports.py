"""
Telling schedds what happened to their attempts: at once, together when much happens, and until confirmed.
"""

import asyncio
import hmac
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from kettle.bus.ports import Bus, BusError, RefusedError, StreamSpec
from kettle.execution.attempts import stored_reports
from kettle.execution.attempts.job_spec import AttemptId, StoredReport
from kettle.execution.attempts.report_batches import cut, encoded, shortened
from kettle.execution.input_files.kept_outputs import KeptOutputs
from kettle.execution.sandbox.directory import remove_tree
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_services.startd.domain.report_pacing import BRIEF_S, ReportPacing
from kettle_wire.attempts import AttemptResult, Ending
from kettle_wire.codes import RefusalCode, VacateCode
from kettle_wire.commands.startd import ClaimKey
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects
from kettle_wire.worker_reports import FinalReport, Report, ReportKey, Started

_log: Final = logging.getLogger(__name__)
_BATCH_BYTES: Final = 256 * 1024
_ENVELOPE_BYTES: Final = 16 * 1024
"""What a message has beside its reports: its subject, its headers, the name of the startd."""
_IDLE_S: Final = 120.0
"""After so long without a report to a schedd its sender ends; the next report makes another."""
_APPEND_DEADLINE_S: Final = 5.0
_LAST_REPEAT_S: Final = 60.0
WORK_AGE_S: Final = 7 * 86400.0
WORK_BYTES: Final = 1 << 30
WORK_MESSAGES: Final = 1_000_000
"""As the shadow makes the stream; it has the settings of the first service that makes it."""
_BACKOFF: Final = Backoff(first=0.2, longest=5.0)


class _Waiting(msgspec.Struct):
    """A final report without confirmation, and when it is to be repeated."""

    stored: StoredReport
    repeats: int = 0
    due: float = float("inf")
    on_disk: bool = True


class ReportDelivery:
    """
    All reports of this machine.  Final ones are on disk before they come here, and leave it when they are confirmed.
    """

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        tasks: asyncio.TaskGroup,
        *,
        startd: str,
        state: Path,
        execute: Path,
        repeat: float,
        kept_outputs: KeptOutputs | None = None,
    ) -> None:
        """`kept_outputs`: where results stay of jobs that want that; None: none do."""
        self._kept_outputs = kept_outputs
        self._bus = bus
        self._subjects = subjects
        self._tasks = tasks
        self._startd = startd
        self._directory = str(state / "reports")
        self._execute = execute
        self._repeat = repeat
        self._repeats = Backoff(first=repeat, longest=max(repeat, _LAST_REPEAT_S), spread=0.0)
        self._unconfirmed: dict[ReportKey, _Waiting] = {}
        self._boxes: dict[str, list[Report]] = {}
        self._filled: dict[str, asyncio.Event] = {}
        self._rushes: dict[str, ReportPacing] = {}
        self._senders: dict[str, asyncio.Task[None]] = {}
        self._loop = asyncio.get_running_loop()
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._all_confirmed = asyncio.Event()
        self._all_confirmed.set()
        bus.on_return(self._repeat_all)

    @property
    def schedds(self) -> set[str]:
        """Who was told something lately, or is still to be told."""
        return {*self._boxes, *self._filled, *self._senders}

    def send_once(self, schedd: str, report: Report) -> None:
        """
        Send a report once; it is lost if this process dies before the bus has it.

        That a job runs is sent with the next report, which may be of its end, or after `BRIEF_S`.
        """
        if schedd not in self._boxes:
            self._boxes[schedd], self._filled[schedd], self._rushes[schedd] = (
                [],
                asyncio.Event(),
                ReportPacing(),
            )
            sender = self._tasks.create_task(self._send(schedd), name=f"reports to {schedd}")
            self._senders[schedd] = sender
        self._boxes[schedd].append(report)
        self._rushes[schedd].came(self._loop.time())
        self._quiet.clear()
        if isinstance(report.body, Started):
            self._loop.call_later(BRIEF_S, self._send_now, schedd)
        else:
            self._send_now(schedd)

    def _send_now(self, schedd: str) -> None:
        """Have what there is for a schedd sent, if it was not sent meanwhile."""
        if self._boxes.get(schedd):
            self._filled[schedd].set()

    @property
    def unconfirmed(self) -> int:
        """How many final reports wait for their confirmation."""
        return len(self._unconfirmed)

    def send_until_confirmed(self, stored: StoredReport) -> None:
        """Send a final report until it is confirmed."""
        if stored.key not in self._unconfirmed:
            self._unconfirmed[stored.key] = _Waiting(stored)
            self._all_confirmed.clear()
            if stored.keeps and self._kept_outputs is not None:
                self._kept_outputs.expect(stored.schedd, stored.report.job)
            self.send_once(stored.schedd, stored.report)

    def store_and_send(self, stored: StoredReport) -> None:
        """Keep a report of our own, which is not on disk yet."""
        self.send_until_confirmed(stored)
        self._store(self._unconfirmed[stored.key])

    def _store(self, waiting: _Waiting) -> None:
        """
        Without room on the disk a report waits in memory; a startd that dies with it writes the same one again.
        """
        try:
            stored_reports.store(self._directory, waiting.stored)
            waiting.on_disk = True
        except OSError as error:
            if waiting.on_disk:
                _log.error(
                    "a report waits in memory", extra={"attempt": waiting.stored.id.name, "cause": str(error)}
                )
            waiting.on_disk = False

    def on_disk(self, attempt: AttemptId) -> StoredReport | None:
        """The final report of an attempt that its starter may have left."""
        return stored_reports.load(self._directory, attempt)

    def confirm(self, keys: Iterable[ReportKey]) -> None:
        """Forget reports that are recorded, and what was kept for them."""
        for key in keys:
            waiting = self._unconfirmed.pop(key, None)
            if waiting is None:
                continue
            attempt = waiting.stored.id
            stored_reports.forget(self._directory, attempt)
            self._discard(waiting.stored)
        if not self._unconfirmed:
            self._all_confirmed.set()

    def _discard(self, stored: StoredReport) -> None:
        """Remove the outputs that were kept, but for those that stay for other jobs."""
        if stored.sandbox:
            tree = self._execute / stored.id.sandbox
            self._tasks.create_task(self._remove(stored, tree), name=f"remove {tree}")

    async def _remove(self, stored: StoredReport, tree: Path) -> None:
        body = stored.report.body
        if stored.keeps and self._kept_outputs is not None:
            outputs = body.outputs if isinstance(body, FinalReport) else ()
            names = [file.name for file in outputs if file.data is None]
            await self._kept_outputs.keep(stored.schedd, stored.report.job, tree, names)
        await asyncio.to_thread(_remove, str(tree))

    def knows(self, claim: str, job: JobId, attempt: int, secret: str) -> bool:
        """Whether the attempt's final report waits here; the claim may be gone since."""
        return any(
            waiting.stored.id == AttemptId(claim, job, attempt)
            and hmac.compare_digest(waiting.stored.secret.encode(), secret.encode())
            for waiting in self._unconfirmed.values()
        )

    def claims(self) -> set[str]:
        """The claims of which a final report waits here."""
        return {waiting.stored.id.claim for waiting in self._unconfirmed.values()}

    def claims_of(self, keys: Iterable[ClaimKey]) -> set[str]:
        """Of these claims, those of which a final report waits here."""
        secrets = {waiting.stored.id.claim: waiting.stored.secret for waiting in self._unconfirmed.values()}
        return {
            key.claim
            for key in keys
            if key.claim in secrets and hmac.compare_digest(key.secret.encode(), secrets[key.claim].encode())
        }

    def sandbox_with(self, claim: str, job: JobId, attempt: int, secret: str, name: str) -> Path | None:
        """
        The sandbox with an output file that waits to be fetched; None if there is none, or the secret is wrong.
        """
        for waiting in self._unconfirmed.values():
            stored = waiting.stored
            report = stored.report
            if (
                (report.claim, report.job, report.attempt) == (claim, job, attempt)
                and hmac.compare_digest(stored.secret.encode(), secret.encode())
                and isinstance(report.body, FinalReport)
                and any(file.name == name and file.data is None for file in report.body.outputs)
            ):
                return self._execute / stored.id.sandbox
        return None

    def kept(self) -> set[str]:
        """Names of the sandboxes that are kept for unconfirmed reports."""
        return {waiting.stored.id.sandbox for waiting in self._unconfirmed.values() if waiting.stored.sandbox}

    def restore(self) -> None:
        """
        Take up what a former startd has left.  A report whose outputs are gone is worth nothing: it is forgotten, and
        its attempt counts as lost.
        """
        for stored in stored_reports.load_all(self._directory):
            if stored.sandbox and not (self._execute / stored.id.sandbox).is_dir():
                stored_reports.forget(self._directory, stored.id)
                self.store_and_send(_lost(stored))
            else:
                self.send_until_confirmed(stored)

    def close(self) -> None:
        """Send no more; what is not confirmed stays on disk."""
        for sender in self._senders.values():
            sender.cancel()

    async def sent(self) -> None:
        """Wait until the bus has everything that was said so far."""
        await self._quiet.wait()

    async def confirmed(self) -> None:
        """Wait until all final reports are confirmed: what their jobs made has arrived where it belongs."""
        await self._all_confirmed.wait()

    async def repeat(self) -> None:
        """Repeat what nobody has confirmed; never returns."""
        while True:
            await asyncio.sleep(min(1.0, self._repeat / 2))
            now = self._loop.time()
            for waiting in self._unconfirmed.values():
                if waiting.due <= now:
                    waiting.due = float("inf")
                    waiting.repeats += 1
                    self.send_once(waiting.stored.schedd, waiting.stored.report)
                if not waiting.on_disk:
                    self._store(waiting)

    def _repeat_all(self) -> None:
        """The bus came back, perhaps without what it had stored."""
        for waiting in self._unconfirmed.values():
            if waiting.due < float("inf"):
                waiting.due = 0.0

    async def _have_stream(self) -> None:
        spec = StreamSpec(
            name=self._subjects.work_stream,
            subjects=[self._subjects.work_all],
            max_age=WORK_AGE_S,
            max_bytes=WORK_BYTES,
            max_messages=WORK_MESSAGES,
        )
        await self._bus.ensure_stream(spec)

    async def _send(self, schedd: str) -> None:
        """Send what is told to one schedd, in order, until it has been told nothing for a while."""
        box, filled, rush = self._boxes[schedd], self._filled[schedd], self._rushes[schedd]
        subject = self._subjects.work(schedd, self._startd)
        waits, joined, alone = Waits(_BACKOFF), False, False
        while await self._wanted(filled) or box:
            if gathering := rush.wait:
                await asyncio.sleep(gathering)
            limit = self._bus.payload_limit
            room = limit - min(_ENVELOPE_BYTES, limit // 4)
            batch = cut(box, 1 if alone else min(_BATCH_BYTES, room))
            if len(batch) == 1 and len(batch[0]) > room:
                self._shorten(schedd, box, len(batch[0]))
                continue
            message = encoded(self._startd, batch)
            try:
                if not joined:
                    await self._have_stream()
                    joined = True
                await self._bus.append(subject, message, deadline=_APPEND_DEADLINE_S)
            except BusError as error:
                if isinstance(error, RefusedError) and error.code == RefusalCode.TOO_LARGE:
                    if len(batch) == 1:
                        self._shorten(schedd, box, len(message))
                    alone = True
                    continue
                _log.info("reports wait", extra={"schedd": schedd, "cause": str(error), "reports": len(box)})
                await waits.wait()
                continue
            waits.reset()
            alone = False
            self._said(box[: len(batch)])
            del box[: len(batch)]
            self._emptied(schedd)
        del self._boxes[schedd], self._filled[schedd], self._rushes[schedd], self._senders[schedd]

    async def _wanted(self, filled: asyncio.Event) -> bool:
        """
        Wait for something to send; false if there has been nothing for so long that the schedd may be gone.
        """
        try:
            async with asyncio.timeout(_IDLE_S):
                await filled.wait()
        except TimeoutError:
            pass
        return filled.is_set()

    def _emptied(self, schedd: str) -> None:
        if not self._boxes[schedd]:
            self._filled[schedd].clear()
            if not any(self._boxes.values()):
                self._quiet.set()

    def _shorten(self, schedd: str, box: list[Report], size: int) -> None:
        """
        A report that no message can carry would stop all behind it: what it can still say is that it is lost.

        It keeps its number: nobody has heard it.
        """
        report = box.pop(0)
        extra = {"schedd": schedd, "job": str(report.job), "bytes": size}
        waiting = self._unconfirmed.get(report.key)
        short = shortened(report, size)
        if short is None or (waiting is None and isinstance(report.body, FinalReport)):
            _log.error("a report is too large for the bus: dropped", extra=extra)
            self._emptied(schedd)
            return
        _log.error("a report is too large for the bus: replaced", extra=extra)
        if waiting is not None:
            self._discard(waiting.stored)
            waiting.stored = msgspec.structs.replace(waiting.stored, report=short, sandbox=False)
            self._store(waiting)
        box.insert(0, short)

    def _said(self, batch: list[Report]) -> None:
        now = self._loop.time()
        for report in batch:
            waiting = self._unconfirmed.get(report.key)
            if waiting is not None:
                waiting.due = now + self._repeats.length(waiting.repeats)


def _lost(stored: StoredReport) -> StoredReport:
    report = stored.report
    ending = Ending(
        code=VacateCode.ScratchDirError, reason="the output files were lost before they could be fetched"
    )
    lost = FinalReport(result=AttemptResult(ending=ending))
    again = msgspec.structs.replace(report, sequence=report.sequence + 1, body=lost)
    return msgspec.structs.replace(stored, report=again, sandbox=False)


def _remove(tree: str) -> None:
    try:
        remove_tree(tree)
    except OSError as error:  # the next startd tries again
        _log.warning("a sandbox cannot be removed", extra={"sandbox": tree, "cause": str(error)})
