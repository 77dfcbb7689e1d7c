"""The table of usage, beside the sum of the attempts."""

from collections.abc import Sequence

from kettle.audit.attempt_sums import Sum, Sums
from kettle.audit.database import Tables
from kettle.audit.report import AuditReport
from kettle_wire.events import Event
from kettle_wire.frames import Frame


class UsageSums:
    """Fed the frames up to the cursor of the table, it says whose usage differs."""

    names: Sequence[str] = ("usage",)
    one_by_one = True

    def __init__(self, tables: Tables, report: AuditReport, *, shard: str, cursor: int) -> None:
        self._tables = tables
        self._shard = shard
        self._check = report.check("usage")
        self._cursor = cursor
        self._sums = Sums()
        self._last: dict[str, int] = {}

    async def feed(self, frame: Frame, events: Sequence[Event]) -> None:
        """See `Follower.feed`."""
        if frame.number > self._cursor:
            return
        for index, (entry, event) in enumerate(zip(frame.entries, events, strict=True)):
            if owner := self._sums.feed(entry.stream, event):
                self._last[owner] = frame.position_of(index)

    async def finish(self) -> None:
        """See `Follower.finish`."""
        stored = {owner: Sum(*used) for owner, used in await self._tables.usage(self._shard)}
        ours = self._sums.owners
        for owner in sorted(stored.keys() | ours.keys(), key=lambda owner: self._last.get(owner, 0)):
            self._check.examined += 1
            by_log, by_table = ours.get(owner, Sum()), stored.get(owner, Sum())
            if by_log != by_table:
                self._check.found(
                    self._shard,
                    self._last.get(owner, 0),
                    f"{owner} has used {by_log} by the attempts and {by_table} by the table",
                )
