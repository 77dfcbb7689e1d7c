"""
What the REST interface tells of job sets, and of machines that are not there, from tables that real events have filled.
"""

from typing import Any, cast

import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import Bus
from kettle.projections import PROJECTIONS, rebuild
from kettle.projections.stored_projection import instant
from kettle.testing.services import Backend, owned
from kettle_services.gateway.rest.freshness import Freshness
from kettle_services.gateway.rest.job_sets import JobSetQuestions
from kettle_services.gateway.rest.job_tables import JobTables
from kettle_services.gateway.rest.machine_what_if import MachineWhatIfQuestions
from kettle_services.gateway.rest.refusals import NotModified, RequestRefused
from kettle_wire.ads import Ad, Expr
from kettle_wire.attempts import ExitRecord, Usage
from kettle_wire.commands.collector import Ads as FoundAds
from kettle_wire.commands.collector import QueryAds
from kettle_wire.events import ClusterSubmitted, Event, JobAssigned, JobCompleted, JobHeld
from kettle_wire.identity import daemon
from kettle_wire.rest.job_sets import ListJobSets
from kettle_wire.rest.machine_what_if import AskMachineWhatIf, MachineChange
from kettle_wire.subjects import Subjects

from .answers import ask

AT = 1_790_000_000_000_000
MINUTE = 60_000_000
Change = tuple[str, Event]


@pytest.fixture
def tables(backend: Backend) -> JobTables:
    return JobTables(backend.log.database, most_seconds=30.0)


def of_set(number: int, owner: str, name: str, first: int, count: int = 2) -> Change:
    rows: list[list[Any]] = [[f"{proc}"] for proc in range(count)]
    submitted = ClusterSubmitted(
        cluster=number,
        owner=owner,
        ad={"Cmd": "/bin/true", "JobSetName": name, "JobSetId": first},
        columns=["Args"],
        rows=rows,
    )
    return f"cluster/{number}", submitted


async def test_job_sets_are_listed_with_how_their_jobs_stand(tables: JobTables, backend: Backend) -> None:
    """
    Clusters of one name and owner are one set, page by page, by name in any case; of jobs that have left it says how many; clusters
    without a set are in none, and more than can be read are refused with what to do.
    """
    async with owned(backend, "schedd.ap1") as schedd:
        sets = [of_set(20, "ada", "Scan", 20), of_set(21, "ada", "scan", 20), of_set(22, "ada", "fit", 22)]
        await schedd.record(*sets, of_set(23, "cyd", "scan", 23, 1), at_us=AT + 20 * MINUTE)
        await schedd.record(("job/20.1", JobHeld(code=1, reason="wait")), at_us=AT + 21 * MINUTE)
        await schedd.record(
            ("job/21.0", JobAssigned(attempt=1, claim="a", slot="slot1@ep", startd="ep")),
            at_us=AT + 21 * MINUTE,
        )
        ended = JobCompleted(attempt=1, exit=ExitRecord(code=0), usage=Usage(wall=1.0))
        await schedd.record(("job/21.0", ended), at_us=AT + 22 * MINUTE)
    await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    nobody = MemoryBus(MemoryServer(), subjects=Subjects("test"), identity=daemon("gateway"))
    freshness = Freshness(nobody, "accounting", tables)
    listed = JobSetQuestions(tables, freshness).list
    found, etag = await ask(listed, ListJobSets())
    scan, fit, other = found.jobsets
    assert ("20@ap1", "Scan", "ada", [20, 21], 1, instant(AT + 20 * MINUTE)) == (
        scan.id,
        scan.name,
        scan.owner,
        scan.clusters,
        scan.ended,
        scan.submitted,
    )
    assert [{"idle": 2, "held": 1}, {"idle": 2}, {"idle": 1}] == [each.states for each in (scan, fit, other)]
    assert [scan] == (await ask(listed, ListJobSets(owner=["ada"], name=["SCAN"])))[0].jobsets
    assert [] == (await ask(listed, ListJobSets(schedd=["ap2"])))[0].jobsets
    paged = []
    page = ""
    for _ in range(3):
        one, _ = await ask(listed, ListJobSets(limit=1, page=page))
        paged += one.jobsets
        page = one.next or ""
    assert (found.jobsets, "") == (paged, page)
    with pytest.raises(NotModified):
        await ask(listed, ListJobSets(), headers={"If-None-Match": etag})
    with pytest.raises(RequestRefused, match="name owners"):
        await ask(JobSetQuestions(tables, freshness, most=3).list, ListJobSets())


class Collector:
    """
    A bus on which a collector tells of the slots of one machine: what is left of it, and a part that is in use.
    """

    async def call(self, _command: object, _name: str, request: QueryAds) -> FoundAds:
        """What it says of a machine by its name."""
        whole: Ad = {"TotalSlotCpus": 8, "TotalSlotMemory": 4096, "TotalSlotDisk": 1 << 30}
        common: Ad = {"StartdName": "ep", "State": "Unclaimed", "Activity": "Idle", "Requirements": True}
        free: Ad = {"Name": "slot1@ep", "PartitionableSlot": True, "Cpus": 1, "Memory": 128, "Disk": 1 << 20}
        part: Ad = {"Name": "slot1_1@ep", "DynamicSlot": True, "Cpus": 7, "Memory": 3968, "Disk": 1 << 20}
        there = [{**common, **whole, **free}, {**common, **part}]
        return FoundAds(ads=there if '"ep"' in request.constraint else [])


async def test_a_machine_that_is_not_there_is_asked_which_jobs_it_could_run(
    tables: JobTables, backend: Backend
) -> None:
    """
    Of the jobs that wait those could run on a machine that fit into the whole of it, as it is or as it would be; the others say what is
    against it, and a machine that nobody knows and an attribute that is no expression are refused.
    """
    async with owned(backend, "schedd.ap1") as schedd:
        for number, memory in ((30, 2048), (31, 65536)):
            submitted = ClusterSubmitted(
                cluster=number,
                owner="dan",
                ad={
                    "Cmd": "/bin/true",
                    "RequestCpus": 2,
                    "RequestMemory": memory,
                    "RequestDisk": 1,
                    "Requirements": True,
                },
                columns=["Args"],
                rows=[["1"]] * (number - 28),
            )
            await schedd.record((f"cluster/{number}", submitted), at_us=AT + 20 * MINUTE)
    await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
    asked = MachineWhatIfQuestions(cast("Bus", Collector()), "collector", tables).ask
    of_dan = AskMachineWhatIf(name="ep", owner=["dan"])
    small, _ = await ask(asked, of_dan, body=MachineChange())
    assert [("31@ap1", 3, False), ("30@ap1", 2, True)] == [
        (each.id, each.jobs, each.able) for each in small.clusters
    ]
    assert "65536" in small.clusters[0].refused
    assert (5, 2, "2 of 5 jobs that wait could run there, one after the other") == (
        small.waiting,
        small.able,
        small.sentence,
    )
    large, _ = await ask(asked, of_dan, body=MachineChange(attributes={"memory": 131072}))
    assert (5, 5) == (large.waiting, large.able)
    closed, _ = await ask(
        asked, of_dan, body=MachineChange(attributes={"Requirements": Expr('TARGET.Owner == "eve"')})
    )
    assert (0, 0) == (closed.able, closed.more)
    with pytest.raises(RequestRefused, match="there is no machine gone"):
        await ask(asked, AskMachineWhatIf(name="gone"), body=MachineChange())
    with pytest.raises(RequestRefused, match="no ClassAd expression"):
        await ask(asked, of_dan, body=MachineChange(attributes={"Requirements": Expr("1 +")}))
