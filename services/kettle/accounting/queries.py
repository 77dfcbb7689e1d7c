"""What accounting answers, from its tables."""

from collections.abc import Callable
from typing import Final

import msgspec

from kettle.accounting.settings import AccountingSettings
from kettle.accounting.tables import QUERIES
from kettle.bus.ports import RefusedError
from kettle.eventsourcing.projection import Progress
from kettle.jobs.past import US
from kettle.storage import Database
from kettle.wire.ads.types import Ad
from kettle.wire.commands.accounting import History, OwnerUsage, QueryHistory, QueryUsage, UsageReport
from kettle.wire.endpoint import Position
from kettle.wire.identity import Identity

_decode: Final = msgspec.msgpack.Decoder(Ad).decode


class Answers:
    """Answers to everybody: what was used and what has run is no secret inside a pool."""

    def __init__(
        self,
        database: Database,
        progress: Progress,
        settings: AccountingSettings,
        *,
        look: Callable[[], None],
    ) -> None:
        self._look = look
        self._database = database
        self._progress = progress
        self._patience = settings.patience

    async def query_history(self, request: QueryHistory, caller: Identity) -> History:
        """Ads of jobs that have left the queue; waits for what the asker names, and refuses if it does not come."""
        del caller
        if request.at_least is not None:
            await self._see(request.at_least)
        limit = request.limit if request.limit > 0 else None
        if not (request.jobs or request.clusters or request.owners):
            rows = await self._database.run(
                lambda c: c.fetch(QUERIES["newest"], limit), patience=self._patience
            )
        else:
            rows = await self._database.run(
                lambda c: c.fetch(
                    QUERIES["newest_of"],
                    limit,
                    [job.cluster for job in request.jobs],
                    [job.proc for job in request.jobs],
                    request.clusters,
                    request.owners,
                ),
                patience=self._patience,
            )
        return History(jobs=[_decode(row["ad"]) for row in rows])

    async def _see(self, least: Position) -> None:
        if self._progress.frame(least.shard) < least.frame:
            self._look()  # a queue that nobody follows yet may be a new one
        if not await self._progress.caught_up(least.shard, least.frame, deadline=self._patience):
            raise RefusedError(
                "behind",
                f"the history has seen frame {self._progress.frame(least.shard)} of {least.shard} and not yet "
                f"{least.frame}; ask again",
            )

    async def query_usage(self, request: QueryUsage, caller: Identity) -> UsageReport:
        """Sums of all attempts by owner."""
        del caller
        rows = await self._database.run(
            lambda c: c.fetch(QUERIES["usage"], request.owners), patience=self._patience
        )
        return UsageReport(
            owners=[
                OwnerUsage(
                    owner=row["owner"],
                    jobs_completed=row["jobs_completed"],
                    attempts=row["attempts"],
                    wall=row["wall"] / US,
                    slot_time=row["slot_time"] / US,
                    cpu=row["cpu"] / US,
                )
                for row in rows
            ]
        )
