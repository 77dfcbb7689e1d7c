"""
The tables of accounting, beside a fresh fold of the events.
"""

from collections.abc import Sequence
from typing import Final

import asyncpg
import msgspec

from kettle.audit.database import Connection
from kettle.audit.report import AuditReport
from kettle.jobs.past import Departed, Past, Spent, UnknownJobError
from kettle.wire.ads.types import Ad
from kettle.wire.events import Event
from kettle.wire.frames import Frame
from kettle.wire.jobs import JobId

_AT_ONCE: Final = 500
_decode: Final = msgspec.msgpack.Decoder(Ad).decode

_HISTORY: Final = """
SELECT h.cluster, h.proc, h.owner, h.status, h.frame, h.ad
  FROM unnest($2::integer[], $3::integer[]) AS w (cluster, proc)
  JOIN accounting.history_1 h ON h.shard = $1 AND h.cluster = w.cluster AND h.proc = w.proc
"""
_USAGE: Final = (
    "SELECT owner, jobs_completed, attempts, wall, slot_time, cpu FROM accounting.usage_1 WHERE shard = $1"
)


class PastFold:
    """
    Fed the frames up to the cursor of accounting, it says how history and usage differ.
    """

    def __init__(self, connection: Connection, shard: str, report: AuditReport, *, cursor: int) -> None:
        self._connection = connection
        self._shard = shard
        self._history = report.check("history")
        self._usage = report.check("usage")
        self._cursor = cursor
        self._past: Past | None = Past(shard.partition(".")[2])
        self._spent: dict[str, Spent] = {}
        self._departed: list[tuple[int, Departed]] = []
        self._count = 0

    async def feed(self, frame: Frame, events: Sequence[Event]) -> None:
        """
        Fold the next frame, unless accounting has not seen it.
        """
        if frame.number > self._cursor or self._past is None:
            return
        try:
            self._past.feed(frame, events)
        except UnknownJobError as error:
            self._history.found(self._shard, frame.position, str(error))
            self._past = None
            return
        changes = self._past.take()
        self._departed += [(frame.head, departed) for departed in changes.departed]
        for owner, spent in changes.spent.items():
            self._spent.setdefault(owner, Spent()).add(spent)
        if len(self._departed) >= _AT_ONCE:
            await self._compare()

    async def finish(self) -> None:
        """
        Compare what is left, and the sums.
        """
        if self._past is None:
            return
        await self._compare()
        stored = await self._connection.fetchval(
            "SELECT count(*) FROM accounting.history_1 WHERE shard = $1", self._shard
        )
        if stored > self._count:
            self._history.found(
                self._shard, 0, f"the history has {stored - self._count} jobs that never left the queue"
            )
        await self._compare_usage()

    async def _compare(self) -> None:
        departed, self._departed = self._departed, []
        jobs = [one.job for _, one in departed]
        rows = await self._connection.fetch(
            _HISTORY, self._shard, [job.cluster for job in jobs], [job.proc for job in jobs]
        )
        stored = {JobId(row["cluster"], row["proc"]): row for row in rows}
        self._history.examined += len(departed)
        self._count += len(stored)
        for position, one in departed:
            row = stored.get(one.job)
            if row is None:
                self._history.found(self._shard, position, f"the history lacks job {one.job}")
            elif difference := _difference(one, row):
                self._history.found(
                    self._shard, position, f"job {one.job} has another {difference} in the history"
                )

    async def _compare_usage(self) -> None:
        rows = await self._connection.fetch(_USAGE, self._shard)
        stored = {row["owner"]: Spent(*list(row.values())[1:]) for row in rows}
        for owner in sorted(stored.keys() | self._spent.keys()):
            self._usage.examined += 1
            ours, theirs = self._spent.get(owner, Spent()), stored.get(owner, Spent())
            if ours != theirs:
                self._usage.found(
                    self._shard, 0, f"{owner} has used {ours} by the log and {theirs} by the table"
                )


def _difference(departed: Departed, row: asyncpg.Record) -> str:
    for name in ("owner", "status", "frame"):
        if getattr(departed, name) != row[name]:
            return name
    stored = _decode(row["ad"])
    if stored == departed.ad:
        return ""
    names = sorted(n for n in stored.keys() | departed.ad.keys() if stored.get(n) != departed.ad.get(n))
    return f"ad ({', '.join(names[:5])})"
