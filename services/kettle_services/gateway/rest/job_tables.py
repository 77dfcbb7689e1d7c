"""Reads jobs from the tables of the projection `jobs`, each answer from one moment."""

import hashlib
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import asyncpg
import msgspec

from kettle.eventsourcing.log import LogUnavailableError
from kettle.jobs.history import Submission
from kettle.projections.jobs import Jobs as JobsProjection
from kettle.projections.jobs import QueuedAds
from kettle.storage import Database
from kettle.storage.database import Connection, is_away
from kettle.storage.queries import load
from kettle_services.gateway.rest import job_rows
from kettle_services.gateway.rest.cluster_verdicts import MOST_CLUSTERS, Narrowing, asks_for_common, narrowed
from kettle_services.gateway.rest.filters import AdFilter
from kettle_services.gateway.rest.job_rows import SCHEDD, STATES, Viewer
from kettle_services.gateway.rest.job_statements import (
    LIVE,
    MORE_TRIED,
    PAST,
    JobTable,
    Listed,
    clusters_statement,
    count_statement,
    list_statements,
    place_of,
    plan_statement,
)
from kettle_services.gateway.rest.page_tokens import RowPlace
from kettle_services.gateway.rest.query_plans import ExplainedPlan
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus
from kettle_wire.jobs import JobId
from kettle_wire.rest.jobs import GroupCount, Job, ListJobs, ListPlan
from kettle_wire.rest.problem import ProblemCode

MOST_GROUPS: Final = 10_000
"""More combinations than this nobody reads."""
_BATCH: Final = 200
"""Rows whose ads are looked at before the event loop gets its turn."""
QUERIES: Final = load(Path(__file__).parent.parent / "sql" / "queries.sql")


class Found(msgspec.Struct, frozen=True):
    """A page of jobs."""

    jobs: list[Job]
    more: RowPlace | None
    """Where the next page begins, if there may be one."""


def session_settings(most_seconds: float) -> Mapping[str, str]:
    """Connections that only read, plan each question for its own values, and end one that takes too long."""
    return {
        "default_transaction_read_only": "on",
        "plan_cache_mode": "force_custom_plan",
        "statement_timeout": str(int(most_seconds * 1000)),
    }


class JobTables:
    """What can be asked of the tables."""

    def __init__(self, database: Database, *, most_seconds: float) -> None:
        """
        `most_seconds`: how long a question may take; `database` was connected with `session_settings` of it.
        """
        self._database = database
        self._most_seconds = most_seconds
        self._ads = QueuedAds()
        self._version = JobsProjection().version

    async def ready(self) -> bool:
        """Whether questions can be answered."""
        try:
            async with self.read() as reading:
                await reading.frames()
        except RequestRefused:
            return False
        return True

    @asynccontextmanager
    async def read(self) -> AsyncGenerator["Reading"]:
        """
        One moment of the tables.

        Raises RequestRefused: the database or the tables are not there, or the question took too long.
        """
        try:
            async with (
                self._database.connection() as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                yield Reading(connection, self._ads, self._version, time.monotonic() + self._most_seconds)
        except asyncpg.QueryCanceledError as error:
            raise RequestRefused(
                503,
                ProblemCode.TOO_SLOW,
                f"the question took longer than {self._most_seconds:g} s: name fewer owners, or a span of time with since and until",
            ) from error
        except (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError) as error:
            raise RequestRefused(
                503,
                ProblemCode.UNAVAILABLE,
                "the tables of jobs have not been made yet: the service accounting makes them",
            ) from error
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, LogUnavailableError) as error:
            if not is_away(error) and not isinstance(error, LogUnavailableError):
                raise
            raise RequestRefused(
                503,
                ProblemCode.UNAVAILABLE,
                "the database does not answer at the moment; try again",
                retry_after=5,
            ) from error


class Reading:
    """The tables at one moment."""

    def __init__(self, connection: Connection, ads: QueuedAds, version: int, deadline: float) -> None:
        self._connection = connection
        self._ads = ads
        self._version = version
        self._deadline = deadline

    async def frames(self) -> dict[str, int]:
        """By queue, the number of the last frame that is in the tables."""
        rows = await self._connection.fetch(QUERIES["frames"], "jobs", self._version)
        return {row["shard"]: row["frame"] for row in rows}

    async def jobs(
        self, asked: Listed, wanted: AdFilter | None, after: RowPlace | None, viewer: Viewer
    ) -> Found:
        """A page of a list; a filter that the tables cannot decide is tried on the ads, row by row."""
        table = LIVE if isinstance(asked, ListJobs) else PAST
        with_ads = wanted is not None or bool(asked.fields)
        found: list[Job] = []
        last: asyncpg.Record | None = None
        columns = _ad_column(table, every=with_ads)
        async for rows in self._rows(table, asked, wanted, after, columns, viewer):
            ads = await self._ads_of(table, rows)
            for row, ad in zip(rows, ads, strict=True):
                if len(found) == asked.limit:
                    assert last is not None
                    return Found(found, place_of(table, asked.sort, last))
                last = row
                if wanted is None or (ad is not None and viewer.finds(wanted, ad, row["owner"])):
                    shown = viewer.sees(ad, row["owner"]) if ad is not None and asked.fields else None
                    found.append(_job(table, row, shown, ad))
            if time.monotonic() > self._deadline:
                return Found(found, place_of(table, asked.sort, rows[-1]))
        return Found(found, None)

    async def _rows(
        self,
        table: JobTable,
        asked: Listed,
        wanted: AdFilter | None,
        after: RowPlace | None,
        more_columns: Sequence[str],
        viewer: Viewer,
    ) -> AsyncGenerator[Sequence[asyncpg.Record]]:
        """The rows of a list in its order, some at once; without a filter those of one page, and one more."""
        # What the database plans for a page takes milliseconds where the plan for all rows sorts them first.
        limits = (asked.limit + 1, *(() if wanted is None else (MORE_TRIED, None)))
        narrowing: Narrowing | None = None
        for number, limit in enumerate(limits):
            last: asyncpg.Record | None = None
            if number == 1:  # the filter is true of few, or of none
                narrowing = await self._narrowing(asked, wanted, viewer)
            for statement in list_statements(
                table, asked, wanted, after, limit=limit, more_columns=more_columns, narrowing=narrowing
            ):
                cursor = await self._connection.cursor(statement.text, *statement.arguments)
                count = 0
                while rows := await cursor.fetch(_BATCH if wanted is not None else asked.limit + 1):
                    yield rows
                    count += len(rows)
                    last = rows[-1]
                if count == limit:
                    break
            else:
                return
            assert last is not None, "as many rows as the limit"
            after = place_of(table, asked.sort, last)

    async def _narrowing(self, asked: Listed, wanted: AdFilter | None, viewer: Viewer) -> Narrowing | None:
        """
        Where jobs are that a filter may be true of; None: that is as much to find out as to try it on them.
        """
        if wanted is None or not isinstance(asked, ListJobs) or not asks_for_common(wanted):
            return None
        statement = clusters_statement(asked, MOST_CLUSTERS + 1)
        rows = await self._connection.fetch(statement.text, *statement.arguments)
        if len(rows) > MOST_CLUSTERS:
            return None
        keys = {(row["shard"], row["cluster"]) for row in rows}
        return narrowed(wanted, viewer, await self.submissions(keys))

    async def plan(self, asked: Listed, wanted: AdFilter | None, after: RowPlace | None) -> ListPlan:
        """How a list is looked for."""
        table = LIVE if isinstance(asked, ListJobs) else PAST
        statement, condition = plan_statement(table, asked, wanted, after)
        said = await self._connection.fetchval(statement.text, *statement.arguments)
        [explained] = msgspec.json.decode(said, type=list[ExplainedPlan])
        return ListPlan(
            condition=condition,
            values=[str(value) for value in statement.arguments],
            steps=list(explained.plan.steps()),
            rows=explained.plan.rows,
            tried=wanted is not None,
        )

    async def counts(self, asked: Listed, wanted: AdFilter | None, viewer: Viewer) -> list[GroupCount]:
        """How many jobs there are of each combination; raises RequestRefused if these are too many."""
        table = LIVE if isinstance(asked, ListJobs) else PAST
        if wanted is not None:
            return await self._counted(table, asked, wanted, viewer)
        statement = count_statement(table, asked, None)
        cursor = await self._connection.cursor(statement.text, *statement.arguments)
        rows = await cursor.fetch(MOST_GROUPS + 1)
        require_few(len(rows))
        return [GroupCount(key=_key(asked, row), count=row["count"]) for row in rows]

    async def _counted(
        self, table: JobTable, asked: Listed, wanted: AdFilter, viewer: Viewer
    ) -> list[GroupCount]:
        counts: Counter[tuple[str, ...]] = Counter()
        ordered = msgspec.structs.replace(asked, sort="-submitted" if table is LIVE else "-left")
        statements = list_statements(
            table,
            ordered,
            wanted,
            None,
            limit=None,
            more_columns=_ad_column(table),
            narrowing=await self._narrowing(asked, wanted, viewer),
        )
        for statement in statements:
            cursor = await self._connection.cursor(statement.text, *statement.arguments)
            while rows := await cursor.fetch(_BATCH):
                ads = await self._ads_of(table, rows)
                counts.update(
                    tuple(_key(asked, row).values())
                    for row, ad in zip(rows, ads, strict=True)
                    if ad is not None and viewer.finds(wanted, ad, row["owner"])
                )
                if time.monotonic() > self._deadline:
                    raise RequestRefused(
                        503,
                        ProblemCode.TOO_SLOW,
                        "there are too many jobs to try this filter on: name owners, states, or a span of time",
                    )
        require_few(len(counts))
        names = list(_key_names(asked))
        ordered_counts = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        return [
            GroupCount(key=dict(zip(names, values, strict=True)), count=count)
            for values, count in ordered_counts
        ]

    async def job(self, cluster: int, proc: int, schedd: str, viewer: Viewer) -> list[tuple[Job, str]]:
        """
        The jobs of this number, one for each access point that has one, each with a name of its state: an entity tag.
        """
        shard = SCHEDD + schedd if schedd else None
        rows = await self._connection.fetch(QUERIES["queued_job"], cluster, proc, shard)
        found: list[tuple[Job, str]] = []
        for row, ad in zip(rows, await self._ads.of(self._connection, rows), strict=True):
            found.append((job_rows.queued(row, viewer.sees(ad, row["owner"]), ad), state_tag(row)))
        if found and schedd:
            return found
        for row in await self._connection.fetch(QUERIES["departed_job"], cluster, proc, shard):
            ad = job_rows.stored_ad(row)
            tag = f'"{row["shard"]}:{row["frame"]}"'
            found.append((job_rows.departed(row, viewer.sees(ad, row["owner"])), tag))
        return found

    async def queued(self, cluster: int, proc: int, shard: str) -> tuple[str, Ad] | None:
        """The entity tag and the whole ad of a job in a queue; None: it is not there."""
        rows = await self._connection.fetch(QUERIES["queued_job"], cluster, proc, shard)
        if not rows:
            return None
        [ad] = await self._ads.of(self._connection, rows)
        return state_tag(rows[0]), ad

    async def schedds_of(self, job: JobId, schedd: str) -> list[str]:
        """The access points that have a job of this number, or had one."""
        shard = SCHEDD + schedd if schedd else None
        rows = await self._connection.fetch(QUERIES["shards_of_job"], job.cluster, job.proc, shard)
        return [row["shard"].removeprefix(SCHEDD) for row in rows]

    async def fetch(self, query: str, *arguments: object) -> list[asyncpg.Record]:
        """The rows of a statement."""
        return await self._connection.fetch(query, *arguments)

    async def submissions(self, clusters: set[tuple[str, int]]) -> dict[tuple[str, int], Submission]:
        """Of clusters in the queues, by shard and number."""
        return await self._ads.submissions(self._connection, clusters)

    async def _ads_of(self, table: JobTable, rows: Sequence[asyncpg.Record]) -> list[Ad | None]:
        """Of each row whose ad was asked for."""
        if table is LIVE:
            return await self.ads_of_queued(rows)
        return [job_rows.stored_ad(row) if "ad" in row else None for row in rows]

    @property
    def is_late(self) -> bool:
        """Whether a question has taken as long as it may."""
        return time.monotonic() > self._deadline

    async def ads_of_queued(
        self, rows: Sequence[asyncpg.Record], *, until: int | None = None
    ) -> list[Ad | None]:
        """
        The ads of jobs in queues, by one question for all of them; None for a row without what happened to one.

        `until`: as they were then, microseconds since the epoch; None: as they are.
        """
        there = [row for row in rows if row["happened"] is not None]
        found = iter(await self._ads.of(self._connection, there, until=until))
        return [None if row["happened"] is None else next(found) for row in rows]


def frames_tag(frames: Mapping[str, int]) -> str:
    """An entity tag of everything that follows from the tables: the frames that are in them."""
    return '"' + ",".join(f"{shard}:{frame}" for shard, frame in frames.items()) + '"'


def state_tag(row: asyncpg.Record) -> str:
    """An entity tag of a row of `live`, which changes with everything that is recorded of the job."""
    seen = hashlib.blake2b(row["happened"], digest_size=8)
    seen.update(f"{row['shard']} {row['cluster']}.{row['proc']}".encode())
    return f'"{seen.hexdigest()}"'


def _ad_column(table: JobTable, *, every: bool = True) -> tuple[str, ...]:
    """
    What ads are made of: of every row, or of those that do not tell how a job has ended, which are of jobs that stay in their queue.
    """
    if every:
        return ("happened",) if table is LIVE else ("ad",)
    return (
        (f"CASE WHEN status = {JobStatus.COMPLETED:d} THEN happened END AS happened",)
        if table is LIVE
        else ()
    )


def _job(table: JobTable, row: asyncpg.Record, shown: Ad | None, whole: Ad | None) -> Job:
    return job_rows.queued(row, shown, whole) if table is LIVE else job_rows.departed(row, shown)


def _key_names(asked: Listed) -> list[str]:
    names = list(asked.group_by)
    return ["schedd", *names] if "cluster" in names and "schedd" not in names else list(names)


def _key(asked: Listed, row: asyncpg.Record) -> dict[str, str]:
    return {name: _KEYS[name](row) for name in _key_names(asked)}


_KEYS: Final[Mapping[str, Callable[[asyncpg.Record], str]]] = {
    "owner": lambda row: row["owner"],
    "state": lambda row: STATES[row["status"]],
    "schedd": lambda row: row["shard"].removeprefix(SCHEDD),
    "cluster": lambda row: str(row["cluster"]),
}


def require_few(groups: int) -> None:
    """Raises RequestRefused: there are more groups than anybody reads."""
    if groups > MOST_GROUPS:
        raise RequestRefused(
            422,
            ProblemCode.TOO_SLOW,
            f"there are more than {MOST_GROUPS} groups: group by less, or name owners, states or a span of time",
        )
