"""What is answered about jobs in the queue."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.bus.ports import RefusedError
from kettle.classad import ClassAd, parse
from kettle.client.connections.transport import Requests
from kettle.client.jobs.queue import JobQueue
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.jobs.sealed_attributes import AttributeSeal
from kettle_services.schedd.commands.queries import Queries
from kettle_services.schedd.domain import evaluation
from kettle_services.schedd.domain.jobs.commands import Assign, Continue, Hold, Remove, Suspend, Tell
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_services.schedd.domain.queue.job_ads import QueuedJobAds
from kettle_services.schedd.jobs.factories import Factories
from kettle_services.schedd.queue.ad_reader import AdReader
from kettle_services.schedd.queue.constraint import Constraint
from kettle_services.schedd.queue.encoded_ads import EncodedAds
from kettle_services.schedd.queue.recorder import QueueRecorder, restore
from kettle_services.schedd.settings import ScheddSettings
from kettle_wire.ads import Ad, Expr, Scalar
from kettle_wire.commands.schedd import JobAds, QueryJobs, Select
from kettle_wire.endpoint import Endpoint
from kettle_wire.events import (
    ClaimGranted,
    ClusterSubmitted,
    FactoryMaterialized,
    FactorySubmitted,
    JobEdited,
    Usage,
)
from kettle_wire.identity import user
from kettle_wire.jobs import JobId

AD: Ad = {"Cmd": "/bin/x", "jobprio": 3, "Note": Expr("1 + $(ClusterId)"), "RequestCpus": 2}
STATUSES = {1: "idle", 2: "running", 3: "removed", 4: "completed", 5: "held", 7: "suspended"}

SEAL = AttributeSeal([bytes(32)])


def filled() -> Queue:
    """A queue in which each job is in another state."""
    queue = Queue("ap")
    rows: list[list[Scalar]] = [[f"{proc}-$(ClusterId)", 7] for proc in range(7)]
    queue.apply(
        "cluster/1",
        ClusterSubmitted(cluster=1, owner="anna", ad=AD, columns=["Args", "Nice"], rows=rows),
        10**12,
    )
    queue.apply(
        "cluster/2",
        FactorySubmitted(
            cluster=2,
            owner="bert",
            ad={**AD, "JobMaterializeMaxIdle": 2},
            columns=["Args"],
            rows=[["a"], ["b"], ["c"]],
        ),
        10**12,
    )
    queue.apply("factory/2", FactoryMaterialized(cluster=2, owner="bert", first=0, count=2), 10**12)

    def do(proc: int, *commands: Any) -> None:
        for command in commands:
            for event in decide(queue.jobs[JobId(1, proc)].job, command):
                queue.apply(job_stream(JobId(1, proc)), event, 2 * 10**12)

    def run(proc: int) -> None:
        claim = f"c{proc}"
        granted = ClaimGranted(
            claim=claim, startd=f"m{proc}", slot="s@m", slot_ad={}, submitter="anna", autocluster=1, lease=9.0
        )
        queue.apply(f"claim/{claim}", granted, 10**12)
        do(proc, Assign(claim, "s@m", f"m{proc}"))

    do(1, Hold("why", "anna"))
    for proc in range(2, 7):
        run(proc)
    do(3, Suspend(1, "c3", 1, 1.0))
    do(
        4,
        Suspend(1, "c4", 1, 1.0),
        Continue(1, "c4", 2.0),
        Tell(1, "c4", "i", {"args": "told", "Mine": 1.5}, []),
    )
    do(5, Hold("stop", "anna"))
    do(6, Remove("gone", "anna"))
    queue.live.measured[JobId(1, 2)] = Usage(wall=3.0, user_cpu=2.0)
    queue.live.renewed["m2"] = 3 * 10**6
    queue.live.reconnecting[JobId(1, 3)] = 4
    return queue


NAMES = sorted({name for job in filled().jobs for name in filled().ad(job)})


@given(
    st.lists(st.sampled_from([*NAMES, "Nothing"]).flatmap(lambda name: st.sampled_from([name, name.lower()])))
)
def test_some_attributes_are_those_of_the_whole_ad(names: list[str]) -> None:
    """Whatever has happened to a job and however the names are spelled; without names it is the whole."""
    queue = filled()
    view, wanted = QueuedJobAds(queue, names), {name.lower() for name in names}
    for job in queue.jobs:
        whole = queue.ad(job)
        assert {n: v for n, v in whole.items() if not names or n.lower() in wanted} == view.ad(job)


def test_what_is_known_of_attempts_is_in_the_ad() -> None:
    """
    What was measured, the last renewal of the machine and the tries to reach it, beside what was recorded.
    """
    queue = filled()
    assert 2.0 == queue.ad(JobId(1, 2))["RemoteUserCpu"]
    assert 3 * 10**6 == queue.ad(JobId(1, 2))["LastJobLeaseRenewal"]
    assert 4 == queue.ad(JobId(1, 3))["JobCurrentReconnectAttempt"]
    assert {"Args": "b", "JobMaterializeNextRow": 2} == QueuedJobAds(
        queue, ["args", "jobmaterializenextrow"]
    ).ad(JobId(2, 1))


@asynccontextmanager
async def asked(queue: Queue) -> AsyncGenerator[Queries]:
    """Somebody who answers about a queue that is nobody's."""
    log, settings = MemoryLog(), ScheddSettings(name="ap")
    async with Shard.own(log, "schedd.ap", owner="me") as shard, asyncio.TaskGroup() as tasks:
        committing = tasks.create_task(shard.run())
        recorder = QueueRecorder(
            shard, queue, await restore(log, MemoryWorkingSet(log), shard, Queue("ap"), interval=1.0)
        )
        yield Queries(log, recorder, Factories(recorder, settings), SEAL)
        committing.cancel()


async def answer(asks: Queries, request: QueryJobs) -> JobAds:
    """What the caller may read."""
    data = msgspec.msgpack.encode(await asks.query_jobs(request, user("eve")))
    return msgspec.msgpack.decode(data, type=JobAds)


@pytest.mark.parametrize(
    "select",
    [
        Select(),
        Select(owners=["bert"]),
        Select(owners=["anna", "nobody", "anna"]),
        Select(constraint=" True"),
        Select(owners=["anna"], constraint="false"),
        Select(owners=["bert"], jobs=[JobId(1, 3)]),
        Select(clusters=[2], jobs=[JobId(1, 3), JobId(1, 0), JobId(9, 9)]),
        Select(clusters=[1], constraint="JobStatus != 5"),
        Select(jobs=[JobId(9, 9)]),
    ],
)
async def test_totals_count_what_a_list_shows(select: Select) -> None:
    """By status, for any selection; and the list is in the order of the queue."""
    async with asked(filled()) as asks:
        listed = await answer(asks, QueryJobs(select=select, projection=["JobStatus", "ClusterId", "ProcId"]))
        totals = await answer(asks, QueryJobs(select=select, totals=True))
    assert dict(Counter(STATUSES[int(str(ad["JobStatus"]))] for ad in listed.jobs)) == totals.statuses
    assert (len(listed.jobs), [], listed.unmade) == (totals.total, totals.jobs, totals.unmade)
    ids = [(int(str(ad["ClusterId"])), int(str(ad["ProcId"]))) for ad in listed.jobs]
    assert sorted(ids) == ids


def test_too_much_is_refused_before_all_of_it_is_made() -> None:
    """What is more than the bus carries is refused with what to do, unless attributes are left out."""
    queue = long_queue(100)
    for names, fits in (([], False), (["ProcId"], True)):
        ads = EncodedAds(queue, names, AdReader(queue, SEAL, "eve"), largest=10_000)
        for job in queue.jobs:
            ads.add(job)
        if fits:
            ads.require_room()
        else:
            with pytest.raises(RefusedError, match="page by page, or for fewer attributes"):
                ads.require_room()


def long_queue(jobs: int) -> Queue:
    queue = Queue("ap")
    for cluster in (1, 2):
        rows: list[list[Scalar]] = [[] for _ in range(jobs // 2)]
        queue.apply(
            f"cluster/{cluster}",
            ClusterSubmitted(cluster=cluster, owner="anna", ad=AD, columns=[], rows=rows),
            10**12,
        )
    return queue


class Direct(Requests):
    """Requests that are answered in this process; `answers` counts them."""

    def __init__(self, asks: Queries) -> None:
        self.asks = asks
        self.answers = 0

    async def ask(self, endpoint: Endpoint[Any, Any], request: Any, **_: Any) -> Any:
        self.answers += 1
        return endpoint.decode_reply(msgspec.msgpack.encode(await self.asks.query_jobs(request, user("eve"))))


@pytest.mark.parametrize(
    "select",
    [
        Select(),
        Select(clusters=[2], jobs=[JobId(1, 7)]),
        Select(jobs=[JobId(2, 5), JobId(1, 499), JobId(1, 3)]),
        Select(owners=["anna"], constraint="ProcId % 7 == 3"),
        Select(constraint="false"),
    ],
)
@pytest.mark.parametrize("limit", [0, 137])
async def test_pages_together_are_the_whole(select: Select, limit: int) -> None:
    """Each goes on where the one before has ended, and none is much larger than it may be."""
    names = ["ClusterId", "ProcId"]
    async with asked(long_queue(1000)) as asks:
        whole = await answer(asks, QueryJobs(select=select, projection=names, limit=limit))
        direct = Direct(asks)
        pages = [
            page
            async for page in JobQueue(direct).pages(select, projection=names, limit=limit, page_bytes=2000)
        ]
    assert whole.jobs == [ad for page in pages for ad in page.jobs]
    assert (whole.total, None) == (sum(page.total for page in pages), whole.more)
    assert len(pages) == direct.answers
    assert (len(whole.jobs) > 100) == (len(pages) > 1)
    assert all(len(msgspec.msgpack.encode(page.jobs)) < 4000 for page in pages)


async def test_pages_go_on_although_the_cluster_between_them_is_gone() -> None:
    """What comes after the last job is found by its number, whatever has become of that job."""
    queue = long_queue(1000)
    async with asked(queue) as asks:
        first = await answer(asks, QueryJobs(select=Select(), projection=["ClusterId", "ProcId"], page=200))
        assert first.more is not None
        for job in list(queue.clusters[1].jobs()):
            for event in decide(queue.jobs[job].job, Remove("gone", "anna")):
                queue.apply(job_stream(job), event, 2 * 10**12)
        request = QueryJobs(select=Select(), projection=["ClusterId"], after=first.more)
        assert [{"ClusterId": 2}] * 500 == (await answer(asks, request)).jobs


CONSTRAINTS = [
    "JobStatus == 5",
    "RequestMemory > 1000",
    'Double > 1500 && args != ""',
    "TARGET.RequestCpus is undefined && MY.RequestCpus == 2",
    'eval("ProcId") == 3',
    'regexp("1", Args) || CurrentTime < 5',
    "RemoteUserCpu > 1 || Note == 2",
    "Nothing =?= undefined && ProcId < 4",
    "strcat(Args, Owner) != Owner || [A = ProcId].A == 2",
    "Deep",
]


@pytest.mark.parametrize("text", CONSTRAINTS)
def test_a_constraint_is_what_the_evaluator_says_of_whole_ads(text: str) -> None:
    """Although it looks at few attributes only, and at what they depend on, and at equal ones once."""
    queue = filled()
    memories: list[Scalar] = [900, Expr("Double / 2"), 1200, True]
    for proc, memory in enumerate(memories):
        told: Ad = {
            "RequestMemory": memory,
            "Double": Expr("1000 * ProcId"),
            "Deep": Expr("Deeper && RequestCpus == 2"),
            "Deeper": Expr("ProcId > 1 ? Double > 2000 : undefined"),
        }
        queue.apply(job_stream(JobId(1, proc)), JobEdited(attributes=told, by="anna"), 10**12)
    constraint = Constraint(queue, parse(text), 1000.0)
    context = evaluation.at(1000.0)
    for _ in range(2):
        for job in queue.jobs:
            expected = evaluation.holds(parse(text), ClassAd.from_wire(queue.ad(job)), context)
            assert expected == constraint.holds(job), (job, text)
