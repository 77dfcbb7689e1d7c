"""How the parts of accounting hang together."""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kettle import VERSION
from kettle.archive import FileArchives, keep_archived
from kettle.bus.ports import Bus, Served
from kettle.eventsourcing.distant_log import DistantLog
from kettle.eventsourcing.log import IMPORTED, ReadableLog
from kettle.eventsourcing.projection import Progress
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.projections import PROJECTIONS, ProjectionFailure, StoredProjection, follow, prepared, shards_of
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle.runtime import Runtime
from kettle.runtime.expression_budgets import watch_budgets
from kettle.runtime.pool_connections import join_bus, join_log
from kettle.storage import Database, PgLog
from kettle_services.accounting.queries import Answers
from kettle_services.accounting.settings import AccountingSettings
from kettle_wire.commands.accounting import QUERY_HISTORY, QUERY_PROGRESS, QUERY_USAGE, REPORT_USAGE
from kettle_wire.subjects import Subjects
from kettle_wire.telemetry.pool_metrics import PROJECTION_LAG, PROJECTIONS_STOPPED

_SELDOM: Final = 5
"""The longest time between looks for new shards, in times of that between the first ones."""


async def serve(rt: Runtime, settings: AccountingSettings) -> None:
    """Fill the tables of all projections, answer, until the process is asked to stop."""
    watch_budgets(rt.telemetry)
    log = await join_log(rt, settings)
    archives = FileArchives(settings.archive_path)
    logs = [log, *[await rt.enter(PgLog.connect(dsn, archives=archives)) for dsn in settings.databases]]
    bus = await join_bus(rt, settings)
    distant = DistantLog(bus, [f"schedd.{name}" for name in settings.access_points])
    following = _Following(rt, log.database, [*logs, distant], bus, settings)
    rt.readiness("projections", lambda: not following.trouble)
    for kind in sorted({kind for make in PROJECTIONS.values() for kind in make().kinds}):
        await bus.listen(following.subjects.notices(kind), lambda _subject, _data: following.look())
    for make in PROJECTIONS.values():
        await following.begin(make())
    answers = Answers(
        log.database,
        following.progress,
        following.trouble,
        settings,
        seal=AttributeSeal.of_directory(
            Path(settings.seal_directory) if settings.seal_directory else settings.home_path / "credentials"
        ),
        look=following.look,
        recorded=following.recorded,
    )
    await bus.serve(
        "accounting",
        settings.name,
        [
            Served(QUERY_HISTORY, answers.query_history),
            Served(QUERY_PROGRESS, answers.query_progress),
            Served(QUERY_USAGE, answers.query_usage),
            Served(REPORT_USAGE, answers.report_usage),
        ],
        version=VERSION,
        shared=True,
    )
    rt.telemetry.observe(PROJECTION_LAG, following.lags)
    rt.telemetry.observe(PROJECTIONS_STOPPED, lambda: following.trouble.count)
    if settings.retention_days:
        first = Database.connect(settings.archiver_url or settings.database_url, connections=1)
        databases = [await rt.enter(first), *(other.database for other in logs[1:])]
        keeping = keep_archived(databases, settings.archive_path, retention_days=settings.retention_days)
        rt.loop(keeping, name="retention")
    if settings.store_url:
        await _feed(rt, settings, following, log, bus)
    rt.ready()
    await rt.stopping.wait()


async def _feed(
    rt: Runtime, settings: AccountingSettings, following: "_Following", log: PgLog, bus: Bus
) -> None:
    """Feed the accounting store, beside all else: it may be away."""
    from kettle_services.accounting.adstash import Feed
    from kettle_services.accounting.elasticsearch import (
        BulkStore,  # an HTTP client, which most pools do without
    )
    from kettle_services.accounting.lease_feed import LeaseFeed

    store = await rt.enter(
        BulkStore.open(
            settings.store_url,
            credentials=Path(settings.store_credentials) if settings.store_credentials else None,
            ca=Path(settings.store_ca) if settings.store_ca else None,
        )
    )
    feed = Feed(log.database, bus, store, settings, progress=following.progress)
    rt.loop(feed.run(following.served), name="store")
    if settings.store_leases:
        leases = LeaseFeed(log, feed, settings.store_leases, poll=settings.shard_poll)
        rt.loop(leases.run(), name="store leases")


class _Following:
    """All projections in all shards, also in those that come later."""

    def __init__(
        self,
        rt: Runtime,
        database: Database,
        logs: Sequence[ReadableLog],
        bus: Bus,
        settings: AccountingSettings,
    ) -> None:
        """`database` has the tables, `logs` the shards."""
        self.subjects = Subjects(settings.pool)
        self.progress = Progress()
        self.trouble = ProjectionFailure()
        self._rt = rt
        self._database = database
        self.logs = logs
        self._bus = bus
        self._poll = settings.shard_poll
        self._news: list[asyncio.Event] = []
        self._imported: set[str] = set()

    def look(self) -> None:
        """There may be a new shard."""
        for new in self._news:
            new.set()

    async def served(self) -> list[str]:
        """The shards of schedds that there are, or were: not what was imported from files."""
        found = await shards_of(PROJECTIONS["jobs"](), self.logs)
        tenures = [(shard, await log.tenure(shard)) for shard, log in found.items()]
        return [shard for shard, tenure in tenures if tenure is not None and tenure.owner != IMPORTED]

    async def recorded(self, shard: str) -> int:
        """The last frame of a shard that is on the bus, or of an imported one that is in the tables."""
        if shard in self._imported:
            return self.progress.frame(shard)
        return await self._bus.last_sequence(self.subjects.event_stream(shard)) or 0

    async def lags(self) -> dict[tuple[str, ...], float]:
        """By shard: how many frames are on the bus that the tables do not have."""
        shards = self.progress.shards
        heads = await asyncio.gather(*map(self.recorded, shards))
        return {
            (shard,): max(0, head - self.progress.frame(shard))
            for shard, head in zip(shards, heads, strict=True)
        }

    async def begin(self, projection: StoredProjection) -> None:
        """Have the tables, and fill them from now on; if that fails, try again in the background."""
        ready = await prepared(projection, self._database, self.logs, self.trouble)
        self._rt.loop(self._keep(projection, ready=ready), name=projection.name)

    async def _keep(self, projection: StoredProjection, *, ready: bool) -> None:
        waits = Waits(Backoff(first=1.0, longest=30.0))
        while not ready:
            await waits.wait()
            ready = await prepared(projection, self._database, self.logs, self.trouble)
        new = asyncio.Event()
        self._news.append(new)
        followed: set[str] = set()
        pause = self._poll
        async with asyncio.TaskGroup() as tasks:
            while True:
                new.clear()
                found = await shards_of(projection, self.logs)
                more = found.keys() - followed
                for shard in sorted(more):
                    followed.add(shard)
                    tasks.create_task(
                        self._follow(projection, shard, found[shard]), name=f"{projection.name} {shard}"
                    )
                # A service that begins says so; while nothing new comes, it is looked for less often.
                pause = self._poll if more else min(2 * pause, _SELDOM * self._poll)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await new.wait()

    async def _follow(self, projection: StoredProjection, shard: str, log: ReadableLog) -> None:
        tenure = await log.tenure(shard)
        if tenure is not None and tenure.owner == IMPORTED:
            self._imported.add(shard)  # the bus knows nothing of it
        await follow(
            projection,
            shard,
            database=self._database,
            log=log,
            bus=self._bus,
            subjects=self.subjects,
            progress=self.progress,
            trouble=self.trouble,
        )
