"""What accounting answers, from its tables."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec

from kettle.bus.ports import BusError, RefusedError
from kettle.classad import ClassAdError, Node, parse
from kettle.eventsourcing.log import LogUnavailableError
from kettle.eventsourcing.projection import Progress as Applied
from kettle.jobs.attempts import US
from kettle.jobs.private_attributes import for_others
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.projections import ProjectionFailure
from kettle.storage import Database
from kettle.storage.queries import load
from kettle_services.accounting.history_search import search
from kettle_services.accounting.settings import AccountingSettings
from kettle_services.accounting.usage_reports import TooManyRowsError, report
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.accounting import (
    History,
    OwnerUsage,
    Progress,
    QueryHistory,
    QueryProgress,
    QueryUsage,
    ReportedUsage,
    ReportUsage,
    UsageReport,
)
from kettle_wire.endpoint import Position
from kettle_wire.identity import Identity

QUERIES: Final[Mapping[str, str]] = load(Path(__file__).parent / "sql" / "queries.sql")

_JOBS: Final = "jobs"


class Answers:
    """Answers to everybody: what was used and what has run is no secret inside a pool."""

    def __init__(
        self,
        database: Database,
        progress: Applied,
        trouble: ProjectionFailure,
        settings: AccountingSettings,
        *,
        seal: AttributeSeal,
        look: Callable[[], None],
        recorded: Callable[[str], Awaitable[int]],
    ) -> None:
        """
        `seal`: opens environments of jobs. `look`: there may be a new shard. `recorded`: the last frame of one.
        """
        self._seal = seal
        self._look = look
        self._recorded = recorded
        self._database = database
        self._progress = progress
        self._trouble = trouble
        self._one_of_each_name = not settings.access_points
        """Else root of an access point that has joined makes people of all names, and we see names."""
        self._patience = settings.patience
        self._search_time = settings.search_time
        self._report_time = settings.report_time

    async def query_history(self, request: QueryHistory, caller: Identity) -> History:
        """
        Ads of jobs that have left the queue; waits for what the asker names, and refuses if it does not come.
        """
        constraint = _parsed(request.constraint) if request.constraint else None
        self._usable()
        if request.at_least is not None:
            await self._see(request.at_least)
        try:
            found = await self._database.run(
                lambda c: search(c, request, constraint, most_seconds=self._search_time),
                patience=self._patience + self._search_time,
            )
        except LogUnavailableError as error:
            raise RefusedError(
                RefusalCode.UNAVAILABLE, f"the history did not answer: {error}; name a span of time"
            ) from error
        return msgspec.structs.replace(
            found,
            jobs=[
                for_others(ad)
                if ad.get("Owner") != caller.name
                else self._seal.opened(ad, caller.name)
                if self._one_of_each_name
                else ad
                for ad in found.jobs
            ],
            behind=await self._behind() if request.after is None else 0,
        )

    async def _behind(self) -> int:
        """How many frames are recorded and not applied, as far as the bus knows."""
        seen = {shard: self._progress.frame(shard) for shard in self._progress.shards}
        try:
            last = await asyncio.gather(*map(self._recorded, seen))
        except BusError:
            return 0
        return sum(max(0, frame - seen[shard]) for shard, frame in zip(seen, last, strict=True))

    def _usable(self) -> None:
        """Tables that nobody has made, or that another release has, answer nothing."""
        if (why := self._trouble.of(_JOBS)) is not None:
            raise RefusedError(RefusalCode.UNAVAILABLE, f"there is no history at the moment: {why}")

    async def _see(self, least: Position) -> None:
        if self._progress.frame(least.shard) < least.frame:
            self._look()  # a queue that nobody follows yet may be a new one
        if (why := self._trouble.of(_JOBS, least.shard)) is not None:
            raise RefusedError(RefusalCode.UNAVAILABLE, why)
        if not await self._progress.caught_up(least.shard, least.frame, deadline=self._patience):
            raise RefusedError(
                RefusalCode.BEHIND,
                f"the history has seen frame {self._progress.frame(least.shard)} of {least.shard} and not yet "
                f"{least.frame}; ask again",
            )

    async def query_progress(self, request: QueryProgress, caller: Identity) -> Progress:
        """Wait for a frame, for those who read the tables themselves."""
        del caller
        self._usable()
        await self._see(request.at_least)
        return Progress(frame=self._progress.frame(request.at_least.shard))

    async def query_usage(self, request: QueryUsage, caller: Identity) -> UsageReport:
        """Sums of all attempts by owner."""
        del caller
        self._usable()
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

    async def report_usage(self, request: ReportUsage, caller: Identity) -> ReportedUsage:
        """Usage of attempts by one or two things, between moments."""
        del caller
        if any(until <= since for since, until in pairwise(request.cuts)):
            raise RefusedError(
                RefusalCode.MALFORMED, "the moments of a report rise: one of them is not after the one before"
            )
        if len(set(request.by)) < len(request.by):
            raise RefusedError(
                RefusalCode.MALFORMED,
                f"a report by {request.by[0]} and {request.by[0]} is one by {request.by[0]}",
            )
        self._usable()
        if request.at_least is not None:
            await self._see(request.at_least)
        try:
            return await self._database.run(
                lambda c: report(c, request), patience=self._patience + self._report_time
            )
        except TooManyRowsError as error:
            raise RefusedError(RefusalCode.TOO_LARGE, str(error)) from error
        except LogUnavailableError as error:
            raise RefusedError(
                RefusalCode.TOO_SLOW, f"the report was not ready: {error}; name a shorter time"
            ) from error


def _parsed(constraint: str) -> Node:
    try:
        return parse(constraint)
    except ClassAdError as error:
        raise RefusedError(
            RefusalCode.MALFORMED, f"the constraint '{constraint}' cannot be read: {error}"
        ) from error
