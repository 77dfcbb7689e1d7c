"""What the REST interface reads from the tables, which real events have filled."""

from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from typing import Any, get_args

import msgspec
import pytest
import pytest_asyncio

from kettle.classad import ClassAd, Context, evaluate, is_true, parse
from kettle.projections import PROJECTIONS, prepare, rebuild
from kettle.submit.known_attributes import KnownAttributes
from kettle.testing.services import Backend, owned
from kettle_services.gateway.rest.filters import AdFilter, Filters
from kettle_services.gateway.rest.job_rows import Viewer
from kettle_services.gateway.rest.job_statements import MORE_TRIED
from kettle_services.gateway.rest.job_tables import JobTables
from kettle_services.gateway.rest.page_tokens import page_token, row_place
from kettle_services.gateway.rest.past_depths import counted, require_counted
from kettle_services.gateway.rest.past_queues import PastQueues, require_listed
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.attempts import ExitRecord, Usage
from kettle_wire.event_expansion import stream_of_cluster
from kettle_wire.events import (
    ClusterSubmitted,
    Event,
    JobAssigned,
    JobCompleted,
    JobEdited,
    JobHeld,
    JobKept,
    JobRemoved,
    JobsChanged,
    JobTold,
    Procs,
    encode,
)
from kettle_wire.rest.jobs import HistoryKey, Job, ListHistory, ListJobs, QueueKey

AT = 1_790_000_000_000_000
MINUTE = 60_000_000
ADA = Viewer.of("ada", [])


def cluster(number: int, owner: str, count: int) -> tuple[str, Event]:
    ad: Ad = {"Cmd": "/bin/true", "Environment": "SECRET=1", "RequestMemory": number * 100}
    event = ClusterSubmitted(
        cluster=number, owner=owner, ad=ad, columns=["Args"], rows=[[f"{n}"] for n in range(count)]
    )
    return f"cluster/{number}", event


def run(job: str, *, code: int | None, wall: float, signal: int | None = None) -> list[tuple[str, Event]]:
    begun = JobAssigned(attempt=1, claim=f"c#{job}", slot="slot1@ep", startd="ep")
    ended = JobCompleted(
        attempt=1,
        exit=ExitRecord(code=code, signal=signal),
        usage=Usage(wall=wall, memory_kib=int(wall) << 10),
    )
    return [(f"job/{job}", begun), (f"job/{job}", ended)]


@pytest_asyncio.fixture
async def tables(backend: Backend) -> AsyncGenerator[JobTables]:
    """Two access points with jobs in all states, some of which were submitted at the same moment."""
    for shard, owner in (("schedd.ap1", "ada"), ("schedd.ap2", "bob")):
        async with owned(backend, shard) as schedd:
            history: list[list[tuple[str, Event]]] = [
                [cluster(1, owner, 3)],
                [cluster(2, owner, 4), ("job/1.1", JobHeld(code=1, reason="wait"))],
                [*run("2.0", code=3, wall=5.0), *run("2.1", code=0, wall=50.0)],
                [("job/2.2", JobRemoved(reason="no")), ("job/1.2", JobRemoved(reason="no"))],
            ]
            for minute, changes in enumerate(history):
                await schedd.record(*changes, at_us=AT + minute * MINUTE)
    await prepare(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    yield JobTables(backend.log.database, most_seconds=30.0)


async def walked(
    tables: JobTables, asked: ListJobs | ListHistory, wanted: AdFilter | None = None
) -> list[Job]:
    """All pages of a list."""
    found: list[Job] = []
    token = ""
    while True:
        after = row_place(asked, token) if token else None
        async with tables.read() as reading:
            page = await reading.jobs(asked, wanted, after, ADA)
        assert len(page.jobs) <= asked.limit
        found += page.jobs
        if page.more is None:
            return found
        token = page_token(asked, page.more)


async def test_every_order_has_each_job_once(tables: JobTables) -> None:
    """
    Whatever a list is sorted by, its pages have every job once and in order, those without a value at the end.
    """
    for key in get_args(QueueKey):
        jobs = await walked(tables, ListJobs(sort=key, limit=2))
        assert 6 == len({job.id for job in jobs}) == len(jobs), key
        require_order([getattr(job, key.removeprefix("-")) for job in jobs], descending=key.startswith("-"))
    for key in get_args(HistoryKey):
        jobs = await walked(tables, ListHistory(sort=key, limit=3))
        assert 8 == len({job.id for job in jobs}) == len(jobs), key
        if (name := key.removeprefix("-")) != "started":  # which is not shown
            require_order([getattr(job, name) for job in jobs], descending=key.startswith("-"))


def require_order(values: Sequence[object], *, descending: bool) -> None:
    there = [value for value in values if value is not None]
    assert there == sorted(there, reverse=descending)  # type: ignore[type-var]
    assert list(values) == there + [None] * (len(values) - len(there))


@pytest.mark.parametrize("key", ["-left", "exit_code", "-wall_time"])
async def test_a_filter_is_tried_on_every_row_in_order(
    tables: JobTables, backend: Backend, key: HistoryKey
) -> None:
    """
    However many pieces it takes until a page is full, no row is left out or tried twice, also those without the value that is sorted by.
    """
    count = MORE_TRIED + 200
    async with owned(backend, "schedd.ap1") as schedd:
        await schedd.record(cluster(5, "ada", count), at_us=AT + 20 * MINUTE)
        ends: list[tuple[str, Event]] = []
        for proc in range(count):
            job = f"5.{proc}"
            ends += run(job, code=proc % 3, wall=1.0) if proc % 40 else [(f"job/{job}", JobRemoved())]
        await schedd.record(*ends, at_us=AT + 21 * MINUTE)
    await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    asked = ListHistory(sort=key, limit=100, cluster=[5])
    wanted = Filters(KnownAttributes()).read("size(Args) > 0 && ProcId % 20 == 0")
    async with tables.read() as reading:
        page = await reading.jobs(asked, wanted, None, ADA)
    assert page.more is None
    every = [job for job in await walked(tables, asked) if job.proc % 20 == 0]
    assert [job.id for job in every] == [job.id for job in page.jobs]


async def test_pages_stay_where_they_are_while_jobs_come_and_go(tables: JobTables, backend: Backend) -> None:
    """Between two pages a job comes and one leaves: no other is left out or told twice."""
    asked = ListJobs(limit=2, schedd=["ap1"])
    async with tables.read() as reading:
        first = await reading.jobs(asked, None, None, ADA)
    assert first.more is not None
    async with owned(backend, "schedd.ap1") as schedd:
        await schedd.record(cluster(3, "ada", 2), ("job/2.3", JobRemoved()), at_us=AT + 9 * MINUTE)
    await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    async with tables.read() as reading:
        second = await reading.jobs(asked, None, first.more, ADA)
    assert ["2.3@ap1", "1.1@ap1"] == [job.id for job in first.jobs]
    assert ["1.0@ap1"] == [job.id for job in second.jobs]


@pytest.mark.parametrize(
    "text",
    [
        "JobStatus == 5",
        'Owner == "ADA" && ProcId >= 1',
        "RequestMemory > 100 || JobStatus =?= 5",
        f"QDate < {AT // 1_000_000 + 60}",
        'Owner != "bob" && ClusterId == 1',
        "HoldReasonCode == 1 && NumShadowStarts == 0",
        'Args == "3"',
    ],
)
async def test_what_the_tables_decide_of_a_filter_loses_nothing(tables: JobTables, text: str) -> None:
    """A list with a filter has exactly the jobs of whose ads the filter is true."""
    asked = ListJobs(filter=text, limit=1000)
    wanted = Filters(KnownAttributes()).read(text.replace("Args", "MY.Args"))
    assert wanted is not None
    expression, context = parse(text), Context(now=lambda: 0)
    async with tables.read() as reading:
        found = await reading.jobs(asked, wanted, None, ADA)
        everything = await reading.jobs(ListJobs(limit=1000, fields=["Anything"]), None, None, ADA)
        ads = {
            job.id: await reading.queued(job.cluster, job.proc, f"schedd.{job.schedd}")
            for job in everything.jobs
        }
    expected = {
        name
        for name, known in ads.items()
        if known and is_true(evaluate(expression, ClassAd.from_wire(known[1]), None, context))
    }
    assert expected == {job.id for job in found.jobs}
    assert expected


COMMON = (
    "RequestMemory == 300",
    "RequestMemory == 12345",
    "MY.Mark =?= 1",
    'Cmd == "/bin/true" && RequestMemory > 200',
    "RequestMemory * 2 == 600 || JobStatus == 5",
    'MY.Args == "1"',
    "Environment =!= undefined",
    "MY.Derived > 700",
    "ClusterId == 3 && time() > 0",
)


async def test_clusters_that_are_decided_at_once_lose_no_job(tables: JobTables, backend: Backend) -> None:
    """
    A search that takes more than one look finds the jobs of whose ads the filter is true, and no others: also those whose attributes
    somebody, or they themselves, have set.
    """
    derived = ClusterSubmitted(
        cluster=4,
        owner="bob",
        ad={"Cmd": "/bin/sh", "Derived": Expr("RequestMemory + 1")},
        columns=[],
        rows=[[]],
    )
    changes: list[tuple[str, Event]] = [
        cluster(3, "ada", 3),
        ("cluster/4", derived),
        ("job/4.0", JobEdited(attributes={"RequestMemory": 777})),
        ("job/3.1", JobEdited(attributes={"RequestMemory": 12345, "Mark": 1})),
        ("job/1.0", JobAssigned(attempt=1, claim="c#1", slot="slot1@ep", startd="ep")),
        ("job/1.0", JobTold(attempt=1, id="said", attributes={"Mark": 1})),
    ]
    async with owned(backend, "schedd.ap1") as schedd:
        await schedd.record(*changes, at_us=AT + 30 * MINUTE)
    await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    for text in COMMON:
        wanted = Filters(KnownAttributes()).read(text)
        assert wanted is not None
        async with tables.read() as reading:
            every = (await reading.jobs(ListJobs(limit=1000), None, None, ADA)).jobs
            expected: set[str] = set()
            for job in every:
                known = await reading.queued(job.cluster, job.proc, f"schedd.{job.schedd}")
                assert known is not None
                if ADA.finds(wanted, known[1], job.owner):
                    expected.add(job.id)
            counted = await reading.counts(ListJobs(group_by=["owner"]), wanted, ADA)
        assert expected, text
        assert len(expected) == sum(each.count for each in counted), text
        for key in get_args(QueueKey):
            found = await walked(tables, ListJobs(limit=1, sort=key), wanted)
            assert expected == {job.id for job in found}, (text, key)


async def test_what_is_its_owners_alone_is_shown_to_nobody_else(tables: JobTables) -> None:
    """
    The environment of a job is in the ads that its owner sees, in lists, alone and in the history, and in no others.
    """
    for proc, number in ((0, 1), (1, 2)):  # one in the queue, one in the history
        async with tables.read() as reading:
            found = await reading.job(number, proc, "", ADA)
        shown = {job.schedd: job.attributes or {} for job, _ in found}
        assert "Environment" in shown["ap1"]
        assert "Environment" not in shown["ap2"]
    for asked in (ListJobs(fields=["Environment"]), ListHistory(fields=["Environment"])):
        async with tables.read() as reading:
            listed = await reading.jobs(asked, None, None, Viewer.of("ada", asked.fields))
        assert {("ada", True), ("bob", False)} == {(job.owner, bool(job.attributes)) for job in listed.jobs}


async def test_a_filter_looks_at_nothing_that_is_somebody_elses_alone(tables: JobTables) -> None:
    """What is left out of an ad is not found by a filter either, in lists and in counts."""
    wanted = Filters(KnownAttributes()).read("Environment =!= undefined")
    assert wanted is not None
    for asked in (ListJobs(), ListHistory()):
        async with tables.read() as reading:
            found = await reading.jobs(asked, wanted, None, ADA)
            counted = await reading.counts(msgspec.structs.replace(asked, group_by=["owner"]), wanted, ADA)
        assert {"ada"} == {job.owner for job in found.jobs}
        assert [{"owner": "ada"}] == [each.key for each in counted]


async def test_rows_say_how_their_jobs_have_ended(tables: JobTables, backend: Backend) -> None:
    """
    A job that a signal has ended is told from one that went well: in the history and while it stays in its queue, in lists with and
    without attributes, and alone; an edited ad cannot break a list.
    """
    edited = JobEdited(attributes={"ExitSignal": "nine"})
    async with owned(backend, "schedd.ap1") as schedd:
        kept: list[tuple[str, Event]] = [(f"job/6.{proc}", JobKept()) for proc in range(4)]
        await schedd.record(cluster(6, "ada", 4), *kept, at_us=AT + 30 * MINUTE)
        for proc, (code, signal) in enumerate(((None, 9), (3, None), (0, None), (None, 11))):
            await schedd.record(*run(f"6.{proc}", code=code, signal=signal, wall=1.0), at_us=AT + 31 * MINUTE)
        await schedd.record(("job/6.3", edited), at_us=AT + 32 * MINUTE)
        await schedd.record(
            cluster(7, "ada", 1), *run("7.0", code=None, signal=15, wall=1.0), at_us=AT + 32 * MINUTE
        )
    await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    expected = {"6.0@ap1": (None, 9), "6.1@ap1": (3, None), "6.2@ap1": (0, None), "6.3@ap1": (None, None)}
    wanted = Filters(KnownAttributes()).read("RequestMemory > 0")
    async with tables.read() as reading:
        for asked in (ListJobs(cluster=[6]), ListJobs(cluster=[6], fields=["Cmd"])):
            for condition in (None, wanted):
                found = await reading.jobs(asked, condition, None, ADA)
                assert expected == {job.id: (job.exit_code, job.exit_signal) for job in found.jobs}
        [(alone, _)] = await reading.job(6, 0, "", ADA)
        [(departed, _)] = await reading.job(7, 0, "ap1", ADA)
        listed = await reading.jobs(ListHistory(cluster=[7]), None, None, ADA)
    assert (9, 15, 15) == (alone.exit_signal, departed.exit_signal, listed.jobs[0].exit_signal)


async def test_the_queues_of_the_past_are_counted(tables: JobTables) -> None:
    """
    By owner, state and access point as they were at the end of the last full minute; what was not counted is refused.
    """

    async def then(minute: float, **asked: Any) -> dict[tuple[str, ...], int]:
        moment = datetime.fromtimestamp(AT / 1e6 + minute * 60, UTC)
        parameters = ListJobs(as_of=moment, **asked)
        require_counted(parameters)
        async with tables.read() as reading:
            return {tuple(each.key.values()): each.count for each in await counted(reading, parameters)}

    assert {} == await then(-1, group_by=["owner"])
    assert {("ada",): 3, ("bob",): 3} == await then(1, group_by=["owner"])
    assert {("idle",): 12, ("held",): 2} == await then(2, group_by=["state"])
    assert {("held", "ap1"): 1} == await then(2, group_by=["state", "schedd"], state=["held"], schedd=["ap1"])
    assert {("bob",): 3} == await then(60 * 24, group_by=["owner"], owner=["bob"])
    for asked in ({}, {"group_by": ["cluster"]}, {"group_by": ["owner"], "filter": "true"}):
        with pytest.raises(RequestRefused, match="counts of the past"):
            await then(2, **asked)


async def at(tables: JobTables, minute: float, wanted: AdFilter | None = None, **asked: Any) -> list[Job]:
    """All pages of the queues as they were at a time."""
    moment = datetime.fromtimestamp(AT / 1e6 + minute * 60, UTC)
    parameters = ListJobs(as_of=moment, **asked)
    require_listed(parameters)
    viewer = Viewer.of("ada", parameters.fields)
    found: list[Job] = []
    token = ""
    while True:
        after = row_place(parameters, token) if token else None
        async with tables.read() as reading:
            page = await PastQueues(reading, parameters, viewer).page(wanted, after)
        assert len(page.jobs) <= parameters.limit
        found += page.jobs
        if page.more is None:
            return found
        token = page_token(parameters, page.more)


async def test_the_queues_of_the_past_are_listed(tables: JobTables, backend: Backend) -> None:
    """
    Every job that was there once, by submission, as it was: also those that have left since, what was recorded of many at once, and what
    a filter says of values that were changed later.
    """
    held = msgspec.Raw(encode(JobHeld(code=1, reason="all of them")))
    together = JobsChanged(cluster=8, type="job.held/1", data=held, jobs=[Procs(0, 3, 1)])
    gone = [(f"job/8.{proc}", JobRemoved(reason="no")) for proc in range(3)]
    async with owned(backend, "schedd.ap1") as schedd:
        await schedd.record(cluster(8, "ada", 4), at_us=AT + 40 * MINUTE)
        await schedd.record(("job/8.3", JobEdited(attributes={"RequestMemory": 1})), at_us=AT + 41 * MINUTE)
        await schedd.record((stream_of_cluster(8), together), at_us=AT + 42 * MINUTE)
        await schedd.record(*gone, at_us=AT + 43 * MINUTE)
        await schedd.record(*run("8.3", code=0, wall=1.0), at_us=AT + 44 * MINUTE)
    await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])

    assert [] == await at(tables, -1)
    for minute, number in ((0.5, 6), (1.5, 14), (2.5, 10), (3.5, 6)):
        for sort in ("submitted", "-submitted"):
            jobs = await at(tables, minute, sort=sort, limit=3)
            assert number == len({job.id for job in jobs}) == len(jobs), minute
            require_order([job.submitted for job in jobs], descending=sort.startswith("-"))
    assert {"1.1@ap1", "1.1@ap2"} == {job.id for job in await at(tables, 1.5, state=["held"])}
    assert [] == await at(tables, 0.5, state=["held"])
    assert 7 == len(await at(tables, 1.5, owner=["bob"], state=["idle", "held"], limit=1))

    eight: dict[str, Any] = {"schedd": ["ap1"], "cluster": [8]}
    assert ["idle"] * 4 == [job.state for job in await at(tables, 41.5, **eight)]
    assert ["idle", "held", "held", "held"] == [job.state for job in await at(tables, 42.5, **eight)]
    assert {"all of them"} == {job.hold_reason for job in await at(tables, 42.5, state=["held"], **eight)}
    assert ["8.3@ap1"] == [job.id for job in await at(tables, 43.5, **eight)]
    assert [] == await at(tables, 44.5, **eight)
    small = Filters(KnownAttributes()).read("RequestMemory == 1")
    assert [] == await at(tables, 40.5, small, **eight)
    [changed] = await at(tables, 41.5, small, fields=["RequestMemory"], **eight)
    assert ("8.3@ap1", {"RequestMemory": 1}) == (changed.id, changed.attributes)
    other: dict[str, Any]
    for other in ({"sort": "owner"}, {"explain": True}):
        with pytest.raises(RequestRefused, match="queues of the past"):
            await at(tables, 2, **other)
