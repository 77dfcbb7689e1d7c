"""The audit of a log: its shards one after the other, each from one snapshot of its database."""

from collections.abc import Sequence
from contextlib import AsyncExitStack

import asyncpg

from kettle.archive import ArchiveError, verify
from kettle.audit.database import Snapshot, Tables, snapshot, tables
from kettle.audit.follower import Follower
from kettle.audit.projections import projection_folds
from kettle.audit.report import AuditReport
from kettle.audit.row_origins import Whereabouts
from kettle.audit.scope import AuditScope
from kettle.audit.shard import ShardWalk, Told
from kettle.audit.usage import UsageSums
from kettle.audit.working_set import WorkingSetFold
from kettle.bus.ports import Bus, BusError
from kettle.eventsourcing.log import IMPORTED, LogError, Tenure
from kettle.storage.database import Database
from kettle_wire.subjects import Subjects

_USAGE: str = "jobs"
"""The projection that has the table of usage."""


class AuditError(Exception):
    """The audit could not be made."""


async def check(
    databases: str | Sequence[str],
    bus: Bus | None = None,
    *,
    subjects: Subjects | None = None,
    wanted: AuditScope | None = None,
    told: Told | None = None,
) -> AuditReport:
    """
    Audit the shards in these databases, and the bus if there is one (then `subjects` says which pool's).

    Raises:
        AuditError: a database or the bus cannot be read, or there is no log, or no shard that is wanted.
    """
    addresses = [databases] if isinstance(databases, str) else databases
    auditor = _Auditor(addresses, bus, subjects, wanted or AuditScope(), told)
    try:
        return await auditor.run()
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, LogError) as error:
        raise AuditError(f"the log cannot be read: {error}") from error
    except BusError as error:
        raise AuditError(f"the bus cannot be compared with the log: {error}") from error


class _Auditor:
    def __init__(
        self,
        addresses: Sequence[str],
        bus: Bus | None,
        subjects: Subjects | None,
        wanted: AuditScope,
        told: Told | None,
    ) -> None:
        self._addresses = addresses
        self._bus = bus
        self._subjects = subjects
        self._wanted = wanted
        self._told = told
        self._report = AuditReport.empty()
        self._known: set[str] = set()

    async def run(self) -> AuditReport:
        for address in self._addresses:
            for shard in await self._shards(address):
                async with AsyncExitStack() as stack:
                    await self._shard(address, shard, stack)
            await self._archives(address)
            if self._bus is not None and self._subjects is not None:
                await self._not_ahead(address, self._bus, self._subjects)
        if missing := self._wanted.shards - {shard.shard for shard in self._report.shards}:
            raise AuditError(
                f"there is no shard {', '.join(sorted(missing))}; there are: {', '.join(sorted(self._known))}"
            )
        return self._report

    async def _shards(self, address: str) -> list[str]:
        async with snapshot(address, self._wanted.archives()) as db:
            tenures = await db.shards()
        self._known.update(tenure.shard for tenure in tenures)
        return [tenure.shard for tenure in tenures if self._wanted.takes(tenure)]

    async def _shard(self, address: str, shard: str, stack: AsyncExitStack) -> None:
        """The tables are looked at before the log, so that they cannot have more than it."""
        stored: list[Tables] = []
        if self._wanted.full:
            stored = [await stack.enter_async_context(tables(each)) for each in self._addresses]
            for each in stored:
                await each.projections(shard)  # the snapshot begins with the first query
        db = await stack.enter_async_context(snapshot(address, self._wanted.archives()))
        tenure = next(tenure for tenure in await db.shards() if tenure.shard == shard)
        followers = await self._followers(db, stored, tenure) if self._wanted.full else []
        walk = ShardWalk(
            db,
            self._report,
            tenure,
            after=self._wanted.after(tenure),
            followers=followers,
            told=self._told,
        )
        try:
            await walk.run(self._bus, self._subjects)
        except ArchiveError as error:
            self._report.check("archives").found(shard, 0, str(error))
            self._report.check("positions").skipped.append(f"{shard}: its archive cannot be read")

    async def _followers(self, db: Snapshot, stored: Sequence[Tables], tenure: Tenure) -> list[Follower]:
        """Fresh folds, each as far as the stored one has come."""
        shard, report, wanted = tenure.shard, self._report, self._wanted
        kind = shard.partition(".")[0]
        sample = wanted.sampled(await db.beginnings(shard)) if wanted.sample else None
        where = Whereabouts(db, shard)
        found: list[Follower] = [where]
        cursor = await db.cursor("working_set", shard)
        if kind in wanted.folds and cursor is not None:
            rows = await db.working_set(shard)
            fold = wanted.folds[kind](shard)
            found.append(WorkingSetFold(shard, fold, report, rows, cursor=cursor, sample=sample))
        for each in stored:
            for projected in await projection_folds(
                each, report, where, shard=shard, frame=tenure.frame, sample=sample
            ):
                found.append(projected)
                if projected.name == _USAGE:
                    found.append(UsageSums(each, report, shard=shard, cursor=projected.cursor))
            await each.seal()
        return found

    async def _archives(self, address: str) -> None:
        """Every file that the log relies on, by its hash."""
        if self._wanted.archive is None or not self._wanted.full:
            return
        check = self._report.check("archives")
        async with Database.connect(address, patience=10.0) as database:
            found = await verify(database, self._wanted.archive)
        check.examined += found.files
        for problem in found.problems:
            check.found(problem.shard, 0, f"{problem.file}: {problem.sentence}")

    async def _not_ahead(self, address: str, bus: Bus, subjects: Subjects) -> None:
        """
        The bus is asked before the database: what is committed in between cannot make the bus look ahead.
        """
        async with snapshot(address, self._wanted.archives()) as db:
            tenures = await db.shards()
        names = [one.shard for one in tenures if self._wanted.takes(one) and one.owner != IMPORTED]
        last = {shard: await bus.last_sequence(subjects.event_stream(shard)) or 0 for shard in names}
        async with snapshot(address, self._wanted.archives()) as db:
            for tenure in await db.shards():
                if last.get(tenure.shard, 0) > tenure.frame:
                    self._report.check("bus").found(
                        tenure.shard,
                        tenure.frame + 1,
                        f"the bus has frame {last[tenure.shard]}, the database ends with frame {tenure.frame}",
                    )
