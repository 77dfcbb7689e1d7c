"""
Telling schedds what happened to their jobs, until it is confirmed.

What is told is made of what is recorded, so nothing is kept for it: after a restart it is told again.
"""

import asyncio
import logging
from typing import Final

from kettle.bus.ports import Bus, BusError, RefusedError, StreamSpec
from kettle.execution.attempts.report_batches import cut, encoded, shortened
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_wire.codes import RefusalCode
from kettle_wire.subjects import Subjects
from kettle_wire.worker_reports import FinalReport, Report, ReportKey

_log: Final = logging.getLogger(__name__)
_BATCH_BYTES: Final = 256 * 1024
_ENVELOPE_BYTES: Final = 16 * 1024
"""What a message has beside its reports."""
_DEADLINE_S: Final = 5.0
_REPEAT_S: Final = 30.0
"""So long a final report waits for its confirmation before it is sent again."""
WORK_AGE_S: Final = 7 * 86400.0
WORK_BYTES: Final = 1 << 30
WORK_MESSAGES: Final = 1_000_000
"""As the shadow makes the stream; it has the settings of the first service that makes it."""
_BACKOFF: Final = Backoff(first=0.2, longest=5.0)


class Reporting:
    """All reports to one schedd; in order, together when much happens."""

    def __init__(
        self,
        bus: Bus,
        subjects: Subjects,
        *,
        startd: str,
        schedd: str,
    ) -> None:
        self._bus: Final = bus
        self._subject: Final = subjects.work(schedd, startd)
        self._spec: Final = StreamSpec(
            name=subjects.work_stream,
            subjects=[subjects.work_all],
            max_age=WORK_AGE_S,
            max_bytes=WORK_BYTES,
            max_messages=WORK_MESSAGES,
        )
        self._startd: Final = startd
        self._box: list[Report] = []
        self._filled: Final = asyncio.Event()
        self._unconfirmed: dict[ReportKey, Report] = {}

    def send(self, report: Report) -> None:
        """Send it; a final one until it is confirmed."""
        if isinstance(report.body, FinalReport):
            self._unconfirmed[report.key] = report
        self._box.append(report)
        self._filled.set()

    def confirmed(self, key: ReportKey) -> None:
        """It is recorded."""
        for each in [each for each in self._unconfirmed if _of(each) == _of(key)]:
            del self._unconfirmed[each]

    async def repeat(self) -> None:
        """Send again what nobody has confirmed; never returns."""
        while True:
            await asyncio.sleep(_REPEAT_S)
            waiting = {each.key for each in self._box}
            self._box += [each for key, each in self._unconfirmed.items() if key not in waiting]
            self._filled.set()

    async def run(self) -> None:
        """Send without end."""
        waits, joined = Waits(_BACKOFF), False
        while True:
            await self._filled.wait()
            limit = self._bus.payload_limit
            room = limit - min(_ENVELOPE_BYTES, limit // 4)
            batch = cut(self._box, min(_BATCH_BYTES, room))
            if len(batch) == 1 and len(batch[0]) > room:
                self._shorten(len(batch[0]))
                continue
            try:
                if not joined:
                    await self._bus.ensure_stream(self._spec)
                    joined = True
                await self._bus.append(self._subject, encoded(self._startd, batch), deadline=_DEADLINE_S)
            except BusError as error:
                if isinstance(error, RefusedError) and error.code == RefusalCode.TOO_LARGE:
                    self._shorten(len(batch[0]))
                    continue
                _log.info("reports wait", extra={"cause": str(error), "reports": len(self._box)})
                await waits.wait()
                continue
            waits.reset()
            del self._box[: len(batch)]
            if not self._box:
                self._filled.clear()

    def _shorten(self, size: int) -> None:
        """What no message can carry can still say that it is lost."""
        report = self._box.pop(0)
        short = shortened(report, size)
        _log.error("a report is too large for the bus", extra={"job": str(report.job), "bytes": size})
        if short is not None:
            self._box.insert(0, short)
            if report.key in self._unconfirmed:
                self._unconfirmed[report.key] = short
        elif not self._box:
            self._filled.clear()


def _of(key: ReportKey) -> tuple[str, object, int]:
    return key.claim, key.job, key.attempt
