"""
What the REST interface tells of claims, failures, cycles and the log, from tables that real events have filled.
"""

import time
from collections.abc import AsyncGenerator
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import pytest_asyncio

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import Bus
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle.jobs.submitted_on_hold import REASON
from kettle.projections import PROJECTIONS, prepare, rebuild
from kettle.projections.stored_projection import instant
from kettle.testing.services import Backend, owned
from kettle.transfer.spooled_jobs import HELD_FOR
from kettle_services.gateway.rest.alerts import AlertQuestions
from kettle_services.gateway.rest.claims import ClaimQuestions
from kettle_services.gateway.rest.failures import FailureQuestions
from kettle_services.gateway.rest.job_tables import JobTables
from kettle_services.gateway.rest.log import LogQuestions
from kettle_services.gateway.rest.negotiations import NegotiationQuestions
from kettle_services.gateway.rest.refusals import NotModified, RequestRefused
from kettle_services.gateway.rest.standings import StandingQuestions
from kettle_wire.attempts import Ending, ExitRecord, Usage
from kettle_wire.codes import VacateCode
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClusterSubmitted,
    CycleNegotiated,
    Event,
    JobAssigned,
    JobCompleted,
    JobEdited,
    JobHeld,
    JobVacated,
    MachineJoined,
    MachineLeft,
    Match,
    Rejection,
)
from kettle_wire.identity import daemon
from kettle_wire.rest.alerts import ListAlerts
from kettle_wire.rest.claims import Claim, ListClaims
from kettle_wire.rest.failures import ListFailures
from kettle_wire.rest.log import ListLog, LogRecord
from kettle_wire.rest.negotiations import GetNegotiation, ListNegotiations
from kettle_wire.rest.standings import GetFairshareHistory
from kettle_wire.subjects import Subjects

from .answers import ask

AT = 1_790_000_000_000_000
MINUTE = 60_000_000
SEAL = AttributeSeal([bytes(32)])

Change = tuple[str, Event]


def when(minute: float) -> datetime:
    return instant(AT + int(minute * MINUTE))


def cluster(number: int, owner: str, count: int) -> Change:
    rows: list[list[Any]] = [[f"{proc}"] for proc in range(count)]
    submitted = ClusterSubmitted(
        cluster=number, owner=owner, ad={"Cmd": "/bin/true"}, columns=["Args"], rows=rows
    )
    return f"cluster/{number}", submitted


def granted(name: str, slot: str, submitter: str) -> Change:
    event = ClaimGranted(
        claim=name, startd="ep", slot=slot, slot_ad={}, submitter=submitter, autocluster=1, lease=60.0
    )
    return f"claim/{name}", event


def assigned(job: str, claim: str, slot: str, attempt: int = 1) -> Change:
    return f"job/{job}", JobAssigned(attempt=attempt, claim=claim, slot=slot, startd="ep")


HISTORY: list[list[Change]] = [
    [cluster(1, "ada", 4)],
    [granted("a", "slot1@ep", "ada"), granted("b", "slot2@ep", "ada")],
    [assigned("1.0", "a", "slot1@ep"), assigned("1.1", "b", "slot2@ep")],
    [
        ("job/1.0", JobCompleted(attempt=1, exit=ExitRecord(code=3), usage=Usage(wall=60.0))),
        assigned("1.2", "a", "slot1@ep"),
    ],
    [
        (
            "job/1.1",
            JobVacated(
                attempt=1, ending=Ending(code=VacateCode.StartdDraining, reason="drained"), usage=Usage()
            ),
        ),
        ("claim/b", ClaimEnded(claim="b", reason="drained")),
    ],
    [
        ("job/1.1", JobHeld(code=12, reason="no file /data/a/17")),
        ("job/1.3", JobHeld(code=12, reason="no file /data/b/4")),
    ],
    [
        ("job/1.3", JobEdited(attributes=SEAL.sealed({"Environment": "A=canary", "JobPrio": 1}, "ada"))),
        cluster(2, "cyd", 2),
        ("job/2.0", JobHeld(code=15, reason=REASON)),
        ("job/2.1", JobHeld(code=16, reason=HELD_FOR)),
    ],
]
"""One frame each minute."""


@pytest_asyncio.fixture
async def tables(backend: Backend) -> AsyncGenerator[JobTables]:
    async with owned(backend, "schedd.ap1") as schedd:
        for minute, changes in enumerate(HISTORY):
            await schedd.record(*changes, at_us=AT + minute * MINUTE)
    async with owned(backend, "collector") as collector:
        joined = MachineJoined(machine="ep", cpus=2, memory=100)
        await collector.record(("machine/ep", joined), at_us=AT + MINUTE // 2)
    async with owned(backend, "negotiator") as negotiator:
        for number in range(3):
            given = Match(submitter="ada", schedd="ap1", autocluster=1, slot="slot1@ep", startd="ep", count=1)
            refused = Rejection(
                submitter="bob",
                schedd="ap1",
                autocluster=2,
                count=5 + number,
                reason="no match found",
                slots=2,
            )
            cycle = CycleNegotiated(
                cycle=number,
                started=AT / 1e6 + number,
                duration=0.1,
                slots=2,
                idle=4,
                matches=[given] if number != 1 else [],
                rejections=[refused],
            )
            await negotiator.record((f"cycle/{number}", cycle), at_us=AT + number * MINUTE)
    for name in ("jobs", "negotiation", "machines"):
        await prepare(PROJECTIONS[name](), backend.log.database, [backend.log])
    yield JobTables(backend.log.database, most_seconds=30.0)


async def test_claims_with_what_runs_on_them_now_and_then(tables: JobTables) -> None:
    """
    Claims are listed with the job that runs on each, and as they were at a moment with what ran then; those that ended say why.
    """
    asked = ClaimQuestions(tables).list

    async def listed(parameters: ListClaims) -> list[Claim]:
        found: list[Claim] = (await ask(asked, parameters))[0].claims
        return found

    def jobs(claims: list[Claim]) -> dict[str, str | None]:
        return {claim.id: claim.job.id if claim.job else None for claim in claims}

    assert {"a": "1.2@ap1"} == jobs(await listed(ListClaims()))
    [ended] = await listed(ListClaims(state=["ended"]))
    assert ("b", when(4), "drained", None) == (ended.id, ended.ended, ended.reason, ended.job)
    assert {"a": "1.0@ap1", "b": "1.1@ap1"} == jobs(await listed(ListClaims(as_of=when(2.5))))
    assert {"a": "1.2@ap1", "b": "1.1@ap1"} == jobs(await listed(ListClaims(as_of=when(3.5))))
    assert {"a": None, "b": None} == jobs(await listed(ListClaims(as_of=when(1.5))))
    assert {} == jobs(await listed(ListClaims(as_of=when(0.5))))
    assert [] == await listed(ListClaims(submitter=["bob"]))


@pytest.mark.parametrize("sort", ["granted", "-granted", "ended", "-ended", "slot", "-submitter"])
async def test_pages_of_claims_have_each_once(tables: JobTables, sort: Any) -> None:
    """
    Pages of one claim each are the list, in any order, and the next page of another question is refused.
    """
    asked = ClaimQuestions(tables).list
    everything = ListClaims(state=["held", "ended"], sort=sort)
    whole, etag = await ask(asked, everything)
    one, _ = await ask(asked, msgspec.structs.replace(everything, limit=1))
    two, _ = await ask(asked, msgspec.structs.replace(everything, limit=1, page=one.next))
    assert [claim.id for claim in whole.claims] == [claim.id for claim in (*one.claims, *two.claims)]
    assert two.next is None
    with pytest.raises(RequestRefused, match="another question"):
        await ask(asked, ListClaims(page=one.next))
    with pytest.raises(NotModified):
        await ask(asked, everything, headers={"If-None-Match": etag})
    counted, _ = await ask(asked, msgspec.structs.replace(everything, group_by=["machine", "submitter"]))
    assert [({"machine": "ep", "submitter": "ada"}, 2)] == [(each.key, each.count) for each in counted.groups]


async def test_failures_are_grouped_by_their_cause(tables: JobTables) -> None:
    """
    Reasons that differ in a path or a number are one cause with its count and its first and last time; exits and lost attempts are
    beside them.  Jobs that were submitted on hold, or wait for their files, have not failed.
    """
    asked = FailureQuestions(tables).list
    found, etag = await ask(asked, ListFailures(since=when(0), until=when(10)))
    seen = {(each.kind, each.cause): (each.count, each.owners, each.example) for each in found.failures}
    expected = {
        ("held", "no file …"): (2, 1, "1.3@ap1"),
        ("exit", "exit code 3"): (1, 1, "1.0@ap1"),
        ("attempt", "The machine is being drained"): (1, 1, "1.1@ap1"),
    }
    assert expected == seen
    with pytest.raises(NotModified):
        await ask(asked, ListFailures(since=when(0), until=when(10)), headers={"If-None-Match": etag})
    early, _ = await ask(asked, ListFailures(since=when(0), until=when(3.5)))
    assert ["exit"] == [each.kind for each in early.failures]
    cut, _ = await ask(asked, ListFailures(since=when(0), until=when(10), limit=1))
    assert (1, 2) == (len(cut.failures), cut.more)
    others, _ = await ask(asked, ListFailures(since=when(0), until=when(10), owner=["bob"]))
    assert [] == others.failures


async def test_jobs_that_a_signal_ended_are_failures(tables: JobTables, backend: Backend) -> None:
    """The number of the signal and its name are the cause, also where the job has no exit code."""
    killed = JobCompleted(attempt=1, exit=ExitRecord(signal=9), usage=Usage(wall=1.0))
    async with owned(backend, "schedd.ap1") as schedd:
        await schedd.record(cluster(7, "ada", 2), at_us=AT + 20 * MINUTE)
        for job in ("7.0", "7.1"):
            await schedd.record(assigned(job, "a", "slot1@ep"), at_us=AT + 21 * MINUTE)
            await schedd.record((f"job/{job}", killed), at_us=AT + 22 * MINUTE)
    await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    found, _ = await ask(FailureQuestions(tables).list, ListFailures(since=when(20), until=when(23)))
    [failure] = found.failures
    assert ("signal", "signal 9 (SIGKILL)", 9, 2) == (
        failure.kind,
        failure.cause,
        failure.code,
        failure.count,
    )


async def test_the_gateway_tells_itself_what_to_look_at(
    tables: JobTables, backend: Backend, tmp_path: Path
) -> None:
    """
    Without a Prometheus it names machines that were lost and not drained, and very many jobs that the system has held, but not those that
    people held; and it says what it cannot tell, here because there is no collector.
    """
    now = int(time.time() * 1_000_000)
    held: list[Change] = [(f"job/50.{proc}", JobHeld(code=12, reason="no file '/x'")) for proc in range(101)]
    meant: list[Change] = [
        (f"job/51.{proc}", JobHeld(code=1, reason="wait (by user ada)")) for proc in range(101)
    ]
    async with owned(backend, "schedd.ap1") as schedd:
        await schedd.record(cluster(50, "ada", 101), cluster(51, "ada", 101), *meant, at_us=now - MINUTE)
    async with owned(backend, "collector") as collector:
        for name, reason in (("gone", "expired"), ("empty", "drained")):
            joined = MachineJoined(machine=name, cpus=2, memory=100)
            await collector.record((f"machine/{name}", joined), at_us=now - 2 * MINUTE)
            left = MachineLeft(machine=name, reason=reason)
            await collector.record((f"machine/{name}", left), at_us=now - MINUTE)
    for name in ("jobs", "machines"):
        await rebuild(PROJECTIONS[name](), backend.log.database, [backend.log])
    bus = MemoryBus(MemoryServer(), subjects=Subjects("test"), identity=daemon("gateway"))
    asked = AlertQuestions(bus, "collector", tables, home=tmp_path, prometheus=None).list

    async def told() -> list[str]:
        answer, _ = await ask(asked, ListAlerts())
        assert ("gateway", True) == (answer.source, "nobody knows which daemons run" in answer.trouble)
        return [each.summary for each in answer.alerts if each.name != "KettleDiskNearlyFull"]

    lost = "gone has told nothing of itself any more"
    assert [lost] == await told()
    async with owned(backend, "schedd.ap1") as schedd:
        await schedd.record(*held, at_us=now)
    await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    assert [lost, "101 jobs were held within an hour, the last because no file …"] == await told()


async def test_cycles_say_what_was_refused_and_why(tables: JobTables) -> None:
    """
    Cycles come with their reasons, those of a submitter alone, page by page, and one with all that it decided.
    """
    questions = NegotiationQuestions(tables)
    whole, _ = await ask(questions.list, ListNegotiations())
    assert [2, 1, 0] == [each.cycle for each in whole.negotiations]
    newest = whole.negotiations[0]
    assert ("no match found", 7, 2) == (newest.refusals[0].reason, newest.refusals[0].jobs, newest.submitters)
    one, _ = await ask(questions.list, ListNegotiations(limit=1))
    rest, _ = await ask(questions.list, ListNegotiations(limit=2, page=one.next))
    assert [1, 0] == [each.cycle for each in rest.negotiations]
    hers, _ = await ask(questions.list, ListNegotiations(submitter=["ada"]))
    assert [2, 0] == [each.cycle for each in hers.negotiations]
    then, _ = await ask(questions.list, ListNegotiations(as_of=when(1)))
    assert [1, 0] == [each.cycle for each in then.negotiations]
    detail, _ = await ask(questions.get, GetNegotiation(cycle=2, submitter=["bob"]))
    assert ([], 7) == (detail.matches, detail.rejections[0].jobs)
    with pytest.raises(RequestRefused, match="no cycle 9"):
        await ask(questions.get, GetNegotiation(cycle=9))


async def walked(tables: JobTables, parameters: ListLog) -> list[LogRecord]:
    """All pages of the log."""
    asked = LogQuestions(tables, SEAL, most_seconds=30.0).list
    found: list[LogRecord] = []
    while True:
        page, _ = await ask(asked, parameters)
        found += page.records
        if page.next is None:
            return found
        parameters = msgspec.structs.replace(parameters, page=page.next)


async def test_the_log_is_read_from_now_to_the_beginning(tables: JobTables) -> None:
    """
    Whatever the size of a page, the log has every event of all shards once, by time; a moment of the past has only what was recorded by then.
    """
    whole = await walked(tables, ListLog(limit=1000))
    assert sum(map(len, HISTORY)) + 4 == len({each.id for each in whole}) == len(whole)
    times = [each.at for each in whole]
    assert sorted(times, reverse=True) == times
    assert whole == await walked(tables, ListLog(limit=2))
    then = await walked(tables, ListLog(limit=3, as_of=when(2)))
    assert [each for each in whole if each.at <= when(2)] == then
    between = await walked(tables, ListLog(limit=3, since=when(1), until=when(3)))
    assert [each for each in whole if when(1) <= each.at < when(3)] == between


async def test_the_log_is_searched_by_kind_job_machine_and_fields(tables: JobTables) -> None:
    """
    Each way to narrow the log has exactly the events that it names, and a name that nothing has is refused.
    """
    held = await walked(tables, ListLog(kind=["job.held"]))
    assert [HELD_FOR, REASON, "no file /data/b/4", "no file /data/a/17"] == [
        each.event["reason"] for each in held
    ]
    job = await walked(tables, ListLog(job="1.1", limit=2))
    assert ["job.held/1", "job.vacated/2", "job.assigned/1", "cluster.submitted/1"] == [
        each.type for each in job
    ]
    machine = await walked(tables, ListLog(machine="ep"))
    assert ["claim/b", "claim/b", "claim/a", "machine/ep"] == [each.stream for each in machine]
    found = await walked(tables, ListLog(filter='Kind == "job.held" && regexp("/b/", Reason)', limit=1))
    assert ["job/1.3"] == [each.stream for each in found]
    asked = LogQuestions(tables, SEAL, most_seconds=30.0).list
    with pytest.raises(RequestRefused, match=r"nothing is recorded as schedd.ap9"):
        await ask(asked, ListLog(shard=["schedd.ap9"]))
    with pytest.raises(RequestRefused, match="no job 7"):
        await ask(asked, ListLog(job="7.0"))


async def test_the_log_shows_an_environment_to_its_owner_alone(tables: JobTables) -> None:
    """
    What is sealed is opened for the owner of the job; others, and models that ask for the owner, have neither it nor a filter that finds it.
    """
    asked = LogQuestions(tables, SEAL, most_seconds=30.0).list
    for name, expected in (("ada", {"Environment": "A=canary", "JobPrio": 1}), ("eve", {"JobPrio": 1})):
        page, _ = await ask(asked, ListLog(kind=["job.edited"]), name=name)
        assert expected == page.records[0].event["attributes"]
        assert "canary" not in page.records[0].sentence
    page, _ = await ask(asked, ListLog(kind=["job.edited"]), by_model=True)
    assert {"JobPrio": 1} == page.records[0].event["attributes"]


async def test_jobs_of_owners_over_time_are_those_of_the_minutes_before(tables: JobTables) -> None:
    """
    At each moment a history has what was last written: nothing before the first job, and what is now at the end.
    """
    nobody = cast("Bus", None)
    asked = StandingQuestions(nobody, "negotiator", "collector", tables).history
    span = GetFairshareHistory(since=when(-4), until=when(10), points=15)
    found, _ = await ask(asked, span)
    ada = next(each for each in found.owners if each.owner == "ada")
    assert ("ada", 15) == (ada.owner, len(found.times))
    assert 0 == ada.idle[0] == ada.running[0]
    assert (0, 1, 2) == (ada.idle[-1], ada.running[-1], ada.held[-1])
    assert 2 == max(ada.running)
    named, _ = await ask(asked, msgspec.structs.replace(span, owner=["eve", "ada", "eve"]))
    assert ["ada", "eve"] == [each.owner for each in named.owners]
    with pytest.raises(RequestRefused, match="before until"):
        await ask(asked, GetFairshareHistory(since=when(1), until=when(1)))
