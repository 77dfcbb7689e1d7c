"""
Telling schedds what happened to their attempts: at once, in batches while a message is under way, and until confirmed.
"""

import asyncio
import hmac
import logging
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from kettle.bus.ports import Bus, BusError, StreamSpec
from kettle.execution import reports
from kettle.execution.attempt import AttemptId, StoredReport
from kettle.execution.sandbox import remove_tree
from kettle.wire.jobs import JobId
from kettle.wire.subjects import Subjects
from kettle.wire.work import Exited, Failed, Report, ReportKey, Reports

_log: Final = logging.getLogger(__name__)
_encode: Final = msgspec.msgpack.Encoder().encode
_BATCH_BYTES: Final = 256 * 1024
_ROUGH_BYTES: Final = 200
"""Size of a report without its files, for cutting batches."""
_APPEND_DEADLINE_S: Final = 5.0
_LAST_REPEAT_S: Final = 60.0
_RETRY_S: Final = 0.2
WORK_AGE_S: Final = 7 * 86400.0
WORK_BYTES: Final = 1 << 30
"""As the shadow makes the stream; it belongs to whoever comes first."""
_LAST_RETRY_S: Final = 5.0


class _Waiting(msgspec.Struct):
    """
    A final report without confirmation, and when it is to be repeated.
    """

    stored: StoredReport
    pause: float
    due: float = float("inf")


class Reporter:
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
    ) -> None:
        self._bus = bus
        self._subjects = subjects
        self._tasks = tasks
        self._startd = startd
        self._directory = str(state / "reports")
        self._execute = execute
        self._repeat = repeat
        self._unconfirmed: dict[ReportKey, _Waiting] = {}
        self._boxes: dict[str, list[Report]] = {}
        self._filled: dict[str, asyncio.Event] = {}
        self._senders: list[asyncio.Task[None]] = []
        self._loop = asyncio.get_running_loop()
        self._quiet = asyncio.Event()
        self._quiet.set()
        bus.on_return(self._repeat_all)

    def tell(self, schedd: str, report: Report) -> None:
        """
        Send a report once; it is lost if this process dies before the bus has it.
        """
        if schedd not in self._boxes:
            self._boxes[schedd], self._filled[schedd] = [], asyncio.Event()
            sender = self._tasks.create_task(self._send(schedd), name=f"reports to {schedd}")
            self._senders.append(sender)
        self._boxes[schedd].append(report)
        self._filled[schedd].set()
        self._quiet.clear()

    def finish(self, stored: StoredReport) -> None:
        """
        Send a final report until it is confirmed.
        """
        if stored.key not in self._unconfirmed:
            self._unconfirmed[stored.key] = _Waiting(stored, self._repeat)
            self.tell(stored.schedd, stored.report)

    def write(self, stored: StoredReport) -> None:
        """
        The same for a report of our own, which is not on disk yet.
        """
        reports.store(self._directory, stored)
        self.finish(stored)

    def on_disk(self, attempt: AttemptId) -> StoredReport | None:
        """
        The final report of an attempt that its starter may have left.
        """
        return reports.load(self._directory, attempt)

    def confirm(self, keys: Iterable[ReportKey]) -> None:
        """
        Forget reports that are recorded, and what was kept for them.
        """
        for key in keys:
            waiting = self._unconfirmed.pop(key, None)
            if waiting is None:
                continue
            attempt = waiting.stored.id
            reports.forget(self._directory, attempt)
            if waiting.stored.sandbox:
                tree = str(self._execute / attempt.sandbox)
                self._tasks.create_task(asyncio.to_thread(remove_tree, tree), name=f"remove {tree}")

    def output(self, claim: str, job: JobId, attempt: int, secret: str, name: str) -> Path | None:
        """
        The path of an output file that waits to be fetched; None if there is none, or the secret is wrong.
        """
        for waiting in self._unconfirmed.values():
            stored = waiting.stored
            report = stored.report
            if (
                (report.claim, report.job, report.attempt) == (claim, job, attempt)
                and hmac.compare_digest(stored.secret.encode(), secret.encode())
                and isinstance(report.body, Exited)
                and any(file.name == name and file.data is None for file in report.body.outputs)
            ):
                return self._execute / stored.id.sandbox / name
        return None

    def kept(self) -> set[str]:
        """
        Names of the sandboxes that are kept for unconfirmed reports.
        """
        return {waiting.stored.id.sandbox for waiting in self._unconfirmed.values() if waiting.stored.sandbox}

    def restore(self) -> None:
        """
        Take up what a former startd has left.  A report whose outputs are gone is worth nothing: it is forgotten, and
        its attempt counts as lost.
        """
        for stored in reports.load_all(self._directory):
            if stored.sandbox and not (self._execute / stored.id.sandbox).is_dir():
                reports.forget(self._directory, stored.id)
                self.write(_lost(stored))
            else:
                self.finish(stored)

    def close(self) -> None:
        """
        Send no more; what is not confirmed stays on disk.
        """
        for sender in self._senders:
            sender.cancel()

    async def sent(self) -> None:
        """
        Wait until the bus has everything that was said so far.
        """
        await self._quiet.wait()

    async def repeat(self) -> None:
        """
        Say again what nobody confirms; for ever.
        """
        while True:
            await asyncio.sleep(min(1.0, self._repeat / 2))
            now = self._loop.time()
            for waiting in self._unconfirmed.values():
                if waiting.due <= now:
                    waiting.due = float("inf")
                    waiting.pause = min(2 * waiting.pause, _LAST_REPEAT_S)
                    self.tell(waiting.stored.schedd, waiting.stored.report)

    def _repeat_all(self) -> None:
        """
        The bus came back, perhaps without what it had stored.
        """
        for waiting in self._unconfirmed.values():
            if waiting.due < float("inf"):
                waiting.due = 0.0

    async def _have_stream(self) -> None:
        spec = StreamSpec(
            name=self._subjects.work_stream,
            subjects=[self._subjects.work_all],
            max_age=WORK_AGE_S,
            max_bytes=WORK_BYTES,
        )
        await self._bus.ensure_stream(spec)

    async def _send(self, schedd: str) -> None:
        box, filled = self._boxes[schedd], self._filled[schedd]
        subject = self._subjects.work(schedd, self._startd)
        pause, joined = _RETRY_S, False
        while True:
            await filled.wait()
            batch = _cut(box)
            message = _encode(Reports(startd=self._startd, reports=batch))
            try:
                if not joined:
                    await self._have_stream()
                    joined = True
                await self._bus.append(subject, message, deadline=_APPEND_DEADLINE_S)
            except BusError as error:
                _log.info("reports wait", extra={"schedd": schedd, "cause": str(error), "reports": len(box)})
                await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - jitter
                pause = min(2 * pause, _LAST_RETRY_S)
                continue
            pause = _RETRY_S
            del box[: len(batch)]
            self._said(batch)
            if not box:
                filled.clear()
                if not any(self._boxes.values()):
                    self._quiet.set()

    def _said(self, batch: list[Report]) -> None:
        now = self._loop.time()
        for report in batch:
            waiting = self._unconfirmed.get(report.key)
            if waiting is not None:
                waiting.due = now + waiting.pause


def _lost(stored: StoredReport) -> StoredReport:
    report = stored.report
    failed = Failed(hold=False, code=1024, reason="the output files were lost before they could be fetched")
    again = msgspec.structs.replace(report, sequence=report.sequence + 1, body=failed)
    return msgspec.structs.replace(stored, report=again, sandbox=False)


def _cut(box: list[Report]) -> list[Report]:
    """
    As much from the front as goes into one message; at least one.
    """
    size = 0
    for count, report in enumerate(box):
        body = report.body
        size += _ROUGH_BYTES
        if isinstance(body, Exited):
            size += sum(len(file.data or b"") + len(file.name) + 50 for file in body.outputs)
        if size > _BATCH_BYTES and count:
            return box[:count]
    return list(box)
