"""
What pages ask of the tables, however much is there: wish 3 of who uses pages of a queue, fast with many.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from aiohttp.test_utils import make_mocked_request
from asyncpg.connection import LoggedQuery

from kettle.auth.mapping.policy import Mapped
from kettle.auth.mapping.principals import local
from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.projections import PROJECTIONS, rebuild
from kettle.storage import Database
from kettle.storage.database import Connection
from kettle.submit.known_attributes import KnownAttributes
from kettle.testing.services import Backend, owned
from kettle_services.gateway.pages.home_page import HomePage, HomeView
from kettle_services.gateway.pages.job_page import JobPage, JobView, ShowJob
from kettle_services.gateway.pages.jobs_page import QUEUES, JobsPage, JobsView, ShowJobs
from kettle_services.gateway.pages.page import FromThePast, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.application import Handler as Answers
from kettle_services.gateway.rest.filters import Filters
from kettle_services.gateway.rest.freshness import Freshness
from kettle_services.gateway.rest.job_tables import JobTables
from kettle_services.gateway.rest.jobs import JobQuestions
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.pool import PoolQuestions
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.ads.types import Ad
from kettle_wire.events import ClusterSubmitted, Event, JobEdited, JobHeld, JobRemoved
from kettle_wire.identity import daemon
from kettle_wire.rest.catalogue import ROUTES
from kettle_wire.rest.jobs import GET_JOB, LIST_HISTORY, LIST_JOBS
from kettle_wire.rest.past import GET_HISTORY_OF_JOB, GET_TIMELINE, GET_WHY
from kettle_wire.rest.pool import LIST_CLUSTERS
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.route import Route
from kettle_wire.subjects import Subjects

AT = 1_790_000_000_000_000
ADA = Person(local("ada"), Mapped(owner="ada", domain="pool"))


class CountingDatabase:
    """A database that counts what it is asked."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.asked = 0
        """Moments that were looked at, and statements."""

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection]:
        async with self._database.connection() as connection:
            self.asked += 1
            connection.add_query_logger(self._count)
            try:
                yield connection
            finally:
                connection.remove_query_logger(self._count)

    def _count(self, query: LoggedQuery) -> None:
        self.asked += "SELECT" in query.query


@pytest.fixture
def database(backend: Backend) -> CountingDatabase:
    return CountingDatabase(backend.log.database)


@pytest.fixture
def tables(database: CountingDatabase) -> JobTables:
    return JobTables(cast("Database", database), most_seconds=30.0)


async def submit(backend: Backend, *events: tuple[str, Event]) -> None:
    async with owned(backend, "schedd.ap1") as schedd:
        await schedd.record(*events, at_us=AT)
    await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])


def cluster(number: int, count: int) -> tuple[str, Event]:
    rows: list[list[Any]] = [[f"{proc}"] for proc in range(count)]
    ad: Ad = {"Cmd": "/opt/bin/sweep", "JobBatchName": f"batch {number}"}
    return f"cluster/{number}", ClusterSubmitted(
        cluster=number, owner="ada", ad=ad, columns=["Args"], rows=rows
    )


class Counted(Questions):
    """Questions that are noted."""

    def __init__(self, handlers: Mapping[Route, Answers]) -> None:
        super().__init__(handlers, lambda _person, _level: None)
        self.asked: list[Route] = []

    async def ask_tagged(self, asked: Asked, route: Route, *more: Any, **named: Any) -> Any:
        self.asked.append(route)
        return await super().ask_tagged(asked, route, *more, **named)


def asking(tables: JobTables) -> Counted:
    """Questions that have only tables to answer them."""

    async def nothing(_asked: Asked) -> Answer:
        raise RequestRefused(503, ProblemCode.UNAVAILABLE, "there are no services here, only tables")

    async def as_of(*_: Any) -> Any:
        raise AssertionError("nobody asks for the past")

    bus = MemoryBus(MemoryServer(), subjects=Subjects("test"), identity=daemon("gateway"))
    filters = Filters(KnownAttributes())
    of_jobs = JobQuestions(tables, filters, Freshness(bus, "accounting", tables), as_of, AttributeSeal([]))
    handlers = dict.fromkeys(ROUTES, nothing) | {
        GET_JOB: of_jobs.get,
        LIST_JOBS: of_jobs.list,
        LIST_HISTORY: of_jobs.list,
        LIST_CLUSTERS: PoolQuestions(bus, "collector", tables, filters).clusters,
    }
    return Counted(handlers)


async def shown(page: HomePage | JobsPage, parameters: Any) -> Any:
    answered = await page.show(Asked(ADA, parameters, None, make_mocked_request("GET", "/")))
    assert isinstance(answered, Shown)
    return answered.view


async def test_the_first_page_asks_as_much_for_many_clusters_as_for_one(
    tables: JobTables, database: CountingDatabase, backend: Backend
) -> None:
    """
    Wish 3: eight clusters with their names and commands, of which some are held and some have ended, are one question, not eight.
    """
    held: tuple[str, Event] = ("job/1.0", JobHeld(code=1, reason="wait"))
    ended: tuple[str, Event] = ("job/1.1", JobRemoved())
    counts: list[int] = []
    for numbers in ([1], [2, 3, 4, 5, 6, 7, 8, 9]):
        await submit(
            backend, *(cluster(number, 4) for number in numbers), *((held, ended) if 1 in numbers else ())
        )
        page = HomePage(asking(tables))
        await shown(page, FromThePast())  # submissions, which never change, are read once
        database.asked = 0
        view: HomeView = await shown(page, FromThePast())
        assert (min(8, len(numbers) + numbers[0] - 1), 1, 1) == (
            len(view.clusters),
            len(view.held),
            len(view.ended),
        )
        assert all(row.cluster.name == f"batch {row.cluster.cluster}" for row in view.clusters)
        assert {"sweep 0"} == {row.cluster.command for row in view.clusters}
        counts.append(database.asked)
    assert counts[0] == counts[1] > 5


async def test_a_page_of_jobs_asks_as_much_for_many_as_for_few(
    tables: JobTables, database: CountingDatabase, backend: Backend
) -> None:
    """Wish 3: a page with a thousand jobs of forty clusters is as many questions as one with a job."""
    counts: list[int] = []
    for numbers, count in ((range(1, 2), 1), (range(2, 42), 25)):
        await submit(backend, *(cluster(number, count) for number in numbers))
        database.asked = 0
        view: JobsView = await shown(JobsPage(asking(tables), QUEUES), ShowJobs(limit=1000))
        assert min(1000, len(numbers) * count) == len(view.rows)
        counts.append(database.asked)
    assert counts[0] == counts[1] > 2


async def test_a_cluster_is_called_as_its_jobs_are_now(tables: JobTables, backend: Backend) -> None:
    """An edited name is that of the list, and one whose first job has left is known by the next."""
    renamed: tuple[str, Event] = ("job/1.1", JobEdited(attributes={"JobBatchName": "other"}))
    await submit(backend, cluster(1, 3), renamed, ("job/1.0", JobRemoved()))
    view: HomeView = await shown(HomePage(asking(tables)), FromThePast())
    assert [("other", "sweep 1")] == [(row.cluster.name, row.cluster.command) for row in view.clusters]


async def test_who_watches_a_job_costs_little_while_nothing_happens_to_it(
    tables: JobTables, backend: Backend
) -> None:
    """
    The live page of a job asks its queue for the past and the reason only when something was recorded of the job, however much happens
    to others.
    """
    await submit(backend, cluster(1, 2))
    questions = asking(tables)
    page = JobPage(questions, again_s=1e9)
    watching = Asked(ADA, ShowJob(id="1.0"), None, make_mocked_request("GET", "/live/jobs/1.0"))
    first = await page.show(watching)
    assert {GET_JOB, GET_TIMELINE, GET_HISTORY_OF_JOB, GET_WHY} == set(questions.asked)
    questions.asked.clear()
    await submit(backend, ("job/1.1", JobRemoved()), cluster(2, 1))
    assert first is await page.show(watching)
    assert [GET_JOB] == questions.asked
    await submit(backend, ("job/1.0", JobHeld(code=1, reason="wait")))
    then = await page.show(watching)
    assert isinstance(then.view, JobView)
    assert "held" == then.view.job.state
