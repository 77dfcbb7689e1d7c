"""
How fast the REST interface answers with a long queue and a long history: JSON on standard output.

    python -m tests.performance.gateway --queued=100000 --history=300000

The tables are filled by the statements of the projection and by copies of real ads; the questions go over real HTTP to the real
application, whose client shares its process, so that what a client needs itself (`healthz_ms`, an answer without a question) is in
every figure.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
from aiohttp import web

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.client import prepare
from kettle.jobs.history import Submission
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.projections import Jobs
from kettle.projections import prepare as make_tables
from kettle.projections.jobs.searchable_attributes import searchable
from kettle.runtime.authorization import Authorization
from kettle.runtime.http_server import serving
from kettle.runtime.people import People
from kettle.runtime.policy_in_force import PolicyInForce
from kettle.storage import Database, PgLog
from kettle.storage.migration import migrate
from kettle.storage.queries import load
from kettle.submit.known_attributes import KnownAttributes
from kettle.testing.measurements import say, summary
from kettle.testing.servers.embedded import servers
from kettle_services.gateway.pages.live import LiveParts
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.pages.serving import Pages
from kettle_services.gateway.pages.table_watch import TableWatch
from kettle_services.gateway.pages.wiring import PAGES, page_handlers
from kettle_services.gateway.rest.application import Answer, Asked, Front, RequestLimits
from kettle_services.gateway.rest.event_hub import EventHub
from kettle_services.gateway.rest.filters import Filters
from kettle_services.gateway.rest.freshness import Freshness
from kettle_services.gateway.rest.job_rows import Viewer
from kettle_services.gateway.rest.job_tables import JobTables, session_settings
from kettle_services.gateway.rest.jobs import JobQuestions
from kettle_services.gateway.rest.local_accounts import LocalAccounts
from kettle_services.gateway.rest.own_iam import OwnIam
from kettle_services.gateway.rest.persons import Persons
from kettle_services.gateway.rest.pool import PoolQuestions
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.rest.streams import Streams
from kettle_wire import events
from kettle_wire.events import ClusterSubmitted
from kettle_wire.identity import daemon
from kettle_wire.rest.catalogue import ROUTES
from kettle_wire.rest.jobs import GET_JOB, LIST_HISTORY, LIST_JOBS, Job
from kettle_wire.rest.pool import LIST_CLUSTERS
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.subjects import Subjects

SHARD: Final = "schedd.schedd"
CLUSTER: Final = 1000
"""Jobs of one."""
PIECE: Final = 50_000
"""Rows of one statement, which may not take longer than the database waits for one."""
OWNERS: Final = 50
STATES: Final = (1, 1, 1, 2, 5)
STATEMENTS: Final = load(Path(Jobs().directory) / "queries.sql")
QUESTIONS: Final = {
    "get_job": "/v2/jobs/7.5",
    "list_50": "/v2/jobs",
    "list_1000": "/v2/jobs?limit=1000",
    "list_1000_with_attributes": "/v2/jobs?limit=1000&fields=Cmd,Args,RequestMemory",
    "one_owner": "/v2/jobs?owner=user7&state=held",
    "filter_on_columns": "/v2/jobs?filter=JobStatus==5%26%26Owner==%22user7%22",
    "group_by": "/v2/jobs?group_by=owner,state",
    "history_50": "/v2/history",
    "history_one_owner": "/v2/history?owner=user7",
    "history_longest": "/v2/history?sort=-wall_time",
    "history_filter": "/v2/history?filter=ExitCode==3",
}


async def fill(database: Database, queued: int, history: int) -> None:
    """Put jobs into the tables."""
    made = prepare("executable = /bin/sleep\narguments = $(Process)\nqueue 1000\n", cwd=Path("/tmp"))
    now = await database.run(lambda c: c.fetchval("SELECT now()"))
    numbers = range(1, queued // CLUSTER + 1)
    submissions = [
        ClusterSubmitted(
            cluster=number, owner=f"user{number % OWNERS}", ad=made.ad, columns=made.columns, rows=made.rows
        )
        for number in numbers
    ]
    async with database.connection() as connection, connection.transaction():
        await connection.execute("SET LOCAL search_path TO jobs")
        columns = [
            [each.cluster for each in submissions],
            [each.owner for each in submissions],
            [now] * len(submissions),
            [CLUSTER] * len(submissions),
            [events.encode(each) for each in submissions],
        ]
        await connection.execute(STATEMENTS["submit"], SHARD, *columns, [], [])
        await connection.execute("UPDATE live SET status = ($1::integer[])[1 + proc % 5]", list(STATES))
        ad = Submission(0, submissions[0]).ads(0, "schedd") | {"ExitCode": 0, "RemoteWallClockTime": 5.0}
        _, document = searchable(ad)
        for first in range(1, history + 1, PIECE):
            await connection.execute(
                "INSERT INTO history (shard, cluster, proc, owner, status, submitted_at, left_at, frame, exit_code, "
                "wall_time, memory, queued, started, completed, search, ad) "
                "SELECT $1, 1000000 + n / 1000, n % 1000, 'user' || n % 50, 4, now() - n * interval '1 s', "
                "now() - n * interval '1 s', n, CASE WHEN n % 100 = 0 THEN 3 ELSE 0 END, n % 86400, n % 4096, n, n, n, "
                "$4::jsonb, CASE WHEN n % 100 = 0 THEN $6::bytea ELSE $5::bytea END FROM generate_series($2::integer, $3::integer) AS n",
                SHARD,
                first,
                min(first + PIECE - 1, history),
                document,
                msgspec.msgpack.encode(ad),
                msgspec.msgpack.encode(ad | {"ExitCode": 3}),
            )
        await connection.execute("ANALYZE live; ANALYZE history; ANALYZE cluster")


@asynccontextmanager
async def front(database: Database) -> AsyncGenerator[aiohttp.ClientSession]:
    """The application with its pages, and a client of it."""
    headers = {"Authorization": "Bearer bench"}
    async with (
        served(database) as port,
        aiohttp.ClientSession(f"http://127.0.0.1:{port}", headers=headers) as session,
    ):
        yield session


@asynccontextmanager
async def served(
    database: Database, *, watchers: int = 1, hub: EventHub | None = None
) -> AsyncGenerator[int]:
    """
    The application with its pages, which so many may watch, told of changes by the events of a hub; its port.
    """

    async def nothing(_asked: Asked) -> Answer:
        raise RequestRefused(503, ProblemCode.UNAVAILABLE, "there are no services here, only tables")

    async def as_of(text: str, moment: Any, viewer: Viewer) -> Job:
        raise NotImplementedError(text)

    tables = JobTables(database, most_seconds=60.0)
    nobody = MemoryBus(MemoryServer(), subjects=Subjects("bench"), identity=daemon("gateway"))
    filters = Filters(KnownAttributes())
    questions = JobQuestions(
        tables, filters, Freshness(nobody, "accounting", tables), as_of, AttributeSeal([])
    )
    pool = PoolQuestions(nobody, "collector", tables, filters)
    handlers = dict.fromkeys(ROUTES, nothing) | {
        LIST_CLUSTERS: pool.clusters,
        GET_JOB: questions.get,
        LIST_JOBS: questions.list,
        LIST_HISTORY: questions.list,
    }
    limits = RequestLimits(rate=1e6, burst=1e6, all_rate=1e6, all_burst=1e6, proxies=frozenset())
    policy = PolicyInForce("gateway", Authorization(domain="bench"), None)
    persons = Persons(policy, None, OwnIam(Path()), LocalAccounts(Path()), "bench", People())
    made = Front(persons, limits)
    application = made.application(handlers)
    shown = page_handlers(Questions(handlers, made.require))
    watch = TableWatch(tables, hub)
    parts = LiveParts(watch, Streams(watchers, watchers))
    Pages(PAGES, pool="bench").add_to(application, made, shown, parts)

    async def healthz(_request: web.Request) -> web.Response:
        return web.Response(text="ok")

    application.router.add_get("/healthz", healthz)
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(watch.run())
        async with serving(application, "127.0.0.1", 0) as port:
            yield port
        watching.cancel()


async def ask(session: aiohttp.ClientSession, path: str) -> float:
    """Milliseconds of one question."""
    began = time.perf_counter()
    async with session.get(path) as response:
        body = await response.read()
        assert response.status == 200, body
    return (time.perf_counter() - began) * 1000


async def measure(directory: Path, queued: int, history: int, rounds: int) -> dict[str, Any]:
    """All questions, in turn with each other."""
    async with servers(directory, durable=True) as running, PgLog.connect(running.postgres.dsn) as log:
        await log.database.run(migrate)
        await make_tables(Jobs(), log.database, [log])
        began = time.perf_counter()
        await fill(log.database, queued, history)
        say(f"  filled in {time.perf_counter() - began:.0f} s")
        times: dict[str, list[float]] = {name: [] for name in ("healthz", *QUESTIONS)}
        reading = Database.connect(running.postgres.dsn, session=session_settings(60.0))
        async with reading as database, front(database) as session:
            for _ in range(rounds):
                for name, path in {"healthz": "/healthz", **QUESTIONS}.items():
                    times[name].append(await ask(session, path))
        return {f"{name}_ms": summary(values, 2) for name, values in times.items()}


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queued", type=int, default=100_000)
    parser.add_argument("--history", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kettle-bench-") as directory:
        report = asyncio.run(measure(Path(directory), arguments.queued, arguments.history, arguments.rounds))
    print(json.dumps({"queued": arguments.queued, "history": arguments.history, **report}, indent=2))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
