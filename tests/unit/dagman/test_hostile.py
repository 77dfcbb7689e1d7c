"""What people say who want no workflow, but to stop those of others."""

import zlib
from typing import get_args

import msgspec
import pytest

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.bus.ports import RefusedError
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle_services.dagman.commands import WorkflowCommands
from kettle_services.dagman.domain.decisions import react
from kettle_services.dagman.domain.graph import Graph
from kettle_services.dagman.domain.reading import STEP, Reader
from kettle_services.dagman.domain.workflow import Workflow
from kettle_services.dagman.following import Following
from kettle_services.dagman.record import Record
from kettle_wire.codes import NOT_NOW, JobStatus
from kettle_wire.commands.dagman import (
    ChangeWorkflow,
    ExplainNode,
    FollowWorkflow,
    RememberNodes,
    ReportFailures,
    ShowWorkflow,
    StartWorkflow,
)
from kettle_wire.events import encode
from kettle_wire.events.cluster import ClustersSubmitted, ClusterSubmitted
from kettle_wire.events.workflow import WorkflowEnded
from kettle_wire.frames import Entry, Frame
from kettle_wire.identity import Identity, Kind
from kettle_wire.subjects import Subjects
from kettle_wire.workflows import MOST_NODES, Plan, WorkflowOptions, node_count, packed, unpacked

from .interpreter import started
from .one_dagman import dag_job, dagman


@pytest.mark.parametrize(("owner", "counts"), [("ann", True), ("eve", False)])
def test_a_strangers_job_is_of_no_node(owner: str, counts: bool) -> None:
    """What a job says of itself counts if its owner's workflow has ordered it."""
    workflow = Workflow(started(Plan(names=["A"])))
    react(workflow, [], 0.0)
    [step] = workflow.orders
    text = f"7/{step.node}/{step.attempt}/{step.part}/{step.run}"
    event = ClusterSubmitted(cluster=9, owner=owner, ad={STEP: text}, columns=[], rows=[[]])
    entry = Entry("cluster/9", 1, "cluster.submitted/1", encode(event))
    assert counts == (7 in Reader({7: workflow}).read([Frame("schedd.ap", 1, 4, 9, 1, [entry])]))
    together = ClustersSubmitted(first=9, owner=owner, ad={}, columns=[STEP], rows=[[text]])
    entry = Entry("clusters/0", 1, "clusters.submitted/1", encode(together))
    assert counts == (7 in Reader({7: workflow}).read([Frame("schedd.ap", 1, 4, 9, 1, [entry])]))


async def test_a_workflow_is_its_owners_alone() -> None:
    """Nobody else is told anything of it, or changes it."""
    log = MemoryLog()
    shard = Shard(log, await log.take("dagman.ap", owner="one"), [], answers=10)
    record = await Record.recall(log, MemoryWorkingSet(log), shard, interval=60.0)
    workflow = Workflow(started(Plan(names=["A"])))
    record.begin(workflow)
    subjects, eve = Subjects("pool"), Identity(kind="user", name="eve")
    bus = MemoryBus(MemoryServer(), subjects=subjects, identity=Identity(kind="daemon", name="dagman"))
    following = Following(bus, subjects, "ap", record)
    asked = WorkflowCommands(bus, "ap", record, following, lambda _caller: False)
    begun = workflow.started
    start = StartWorkflow(
        workflow=7, files=[], directory="/", digest="", plan=begun.plan, options=WorkflowOptions()
    )
    for answer in (
        asked.start(start, eve),
        asked.follow(FollowWorkflow(workflow=7, after=0), eve),
        asked.failed(ReportFailures(workflow=7, failures=[]), eve),
        asked.remember(RememberNodes(workflow=7), eve),
        asked.change(ChangeWorkflow(workflow=7, halt=True), eve),
        asked.show(ShowWorkflow(workflow=7), eve),
        asked.explain(ExplainNode(workflow=7, node="A"), eve),
    ):
        with pytest.raises(RefusedError, match="belongs to ann"):
            await answer
    assert not workflow.halted
    for kind in get_args(Kind):
        if kind != "user":
            with pytest.raises(RefusedError, match="belongs to ann"):
                await asked.show(ShowWorkflow(workflow=7), Identity(kind=kind, name="ann"))
    gateway = Identity(kind="daemon", name="gateway")
    assert (await asked.follow(FollowWorkflow(workflow=7, after=0), gateway)).complete
    assert "A" == (await asked.explain(ExplainNode(workflow=7, node="A"), gateway)).node
    by_administrators = WorkflowCommands(bus, "ap", record, following, lambda caller: caller == eve)
    await by_administrators.change(ChangeWorkflow(workflow=7, halt=True), eve)
    assert workflow.halted
    with pytest.raises(RefusedError, match="belongs to ann"):
        await by_administrators.follow(FollowWorkflow(workflow=7, after=0), eve)


@pytest.mark.parametrize("said", ["9" * 5000 + "/1/1/1/1", "7/" + "0" * 5000 + "/1/1/1", "7/1/1/1", ""])
def test_what_somebody_writes_into_the_attribute_of_nodes_stops_nobody(said: str) -> None:
    """A submission with it is read like any other, and says nothing of a workflow."""
    reader = Reader({7: Workflow(started(Plan(names=["A"])))})
    event = ClusterSubmitted(cluster=9, owner="eve", ad={STEP: said}, columns=[], rows=[[]])
    entry = Entry("cluster/9", 1, "cluster.submitted/1", encode(event))
    assert {} == reader.read([Frame("schedd.ap", 1, 4, 9, 1, [entry])])


def test_joins_that_nobody_waits_for_take_no_memory() -> None:
    """A plan of some bytes may name as many as there are numbers."""
    with pytest.raises(ValueError, match="joins have 0 edges"):
        Graph(Plan(names=["A"], joins=10_000_000))


@pytest.mark.parametrize("field", ["names", "noop", "retries"])
def test_a_plan_of_very_many_nodes_is_refused_before_they_are_made(field: str) -> None:
    """A list of so many is soon packed."""
    count = MOST_NODES + 100
    kind, each = (
        (b"\xdf", b"\1\x92\1\xc0")
        if field == "retries"
        else (b"\xdd", b"\xa0" if field == "names" else b"\0")
    )
    names = b"" if field == "names" else msgspec.msgpack.encode("names") + msgspec.msgpack.encode(["A"])
    packer = zlib.compressobj(1)
    packed = packer.compress(bytes([0x81 + bool(names)]) + names + msgspec.msgpack.encode(field))
    packed += packer.compress(kind + count.to_bytes(4))
    for _ in range(100):
        packed += packer.compress(each * (count // 100))
    with pytest.raises(ValueError, match="of length <="):
        unpacked(packed + packer.flush())


async def test_a_workflow_that_begins_while_somebody_asks_for_it_is_not_over() -> None:
    """It stays what is decided about, however many others are looked at afterwards."""
    event = started(Plan(names=["A"]))
    begun = Frame("dagman.ap", 1, 1, 1, 1, [Entry("workflow/7", 1, "workflow.started/1", encode(event))])

    class Slow(MemoryLog):
        """A log that takes as long as a workflow takes to begin."""

        async def stream(self, shard: str, stream: str) -> list[tuple[Frame, int]]:
            """Meanwhile the workflow has begun."""
            record.begin(live)
            return [(begun, 1)]

    log, live = Slow(), Workflow(event)
    shard = Shard(log, await log.take("dagman.ap", owner="one"), [], answers=10)
    record = await Record.recall(log, MemoryWorkingSet(log), shard, interval=60.0)
    assert live is await record.find(7)
    for ended in range(100, 150):
        record.over(ended)
    assert live is record.workflows[7]


def packed_fields(*fields: tuple[str, object]) -> bytes:
    """A plan with these fields, in this order, also if one is there twice."""
    said = b"".join(msgspec.msgpack.encode(each) for field in fields for each in field)
    return zlib.compress(bytes([0x80 + len(fields)]) + said)


@pytest.mark.parametrize("nodes", [0, 15, 16, 65_535, 65_536])
def test_the_number_of_nodes_is_known_before_they_are_unpacked(nodes: int) -> None:
    """In each of the forms that a list has, behind a map of few fields and of many."""
    names = ["x"] * nodes
    more = [(f"field{number}", 1) for number in range(10)]
    assert nodes == node_count(packed(Plan(names=names)))
    assert nodes == node_count(packed_fields(("names", names), *more))
    many = zlib.compress(b"\xde\x00\x14" + msgspec.msgpack.encode("names") + msgspec.msgpack.encode(names))
    assert nodes == node_count(many)


@pytest.mark.parametrize(
    "plan",
    [
        packed_fields(("joins", 0), ("names", ["A"])),
        packed_fields(("names", ["A"]), ("names", ["A", "B"])),
        packed_fields(("names", {"A": 1})),
        zlib.compress(b""),
        b"no plan",
    ],
)
async def test_a_plan_that_hides_how_many_nodes_it_has_is_not_begun(plan: bytes) -> None:
    """So that who reads what is recorded need not unpack it to know."""
    with pytest.raises(RefusedError, match="no plan of a workflow"):
        await (await dagman(dag_job(JobStatus.RUNNING, runs=True))).start(plan)


async def test_one_owner_does_not_fill_the_memory_with_workflows() -> None:
    """
    A workflow with which an owner would have too many nodes waits until another one is over; one that alone has too many is refused
    for good; what others have does not count.
    """
    names = [f"N{number}" for number in range(4)]
    plan, ad = packed(Plan(names=names, starts=bytes(20))), dag_job(JobStatus.RUNNING, runs=True)
    alone = await dagman(ad, most_nodes=3)
    with pytest.raises(RefusedError, match=r"has 4 nodes.*at most.*submit it in parts") as refused:
        await alone.start(plan)
    assert "unacceptable" == refused.value.code
    for owner, ended in (("ann", False), ("ann", True), ("eve", False)):
        first = msgspec.structs.replace(started(Plan(names=["A", "B"])), owner=owner, workflow=6)
        other = Workflow(first)
        if ended:
            other.apply(WorkflowEnded(status=0, exit_code=0))
        service = await dagman(ad, other, most_nodes=5)
        if owner == "eve" or ended:
            assert 4 == len((await service.start(plan)).states)
            continue
        with pytest.raises(
            RefusedError, match="it waits until some of yours have ended, which have 2"
        ) as now:
            await service.start(plan)
        assert now.value.code in NOT_NOW
        other.apply(WorkflowEnded(status=0, exit_code=0))
        assert 4 == len((await service.start(plan)).states)


async def test_a_part_of_workflows_that_wait_for_it_is_refused() -> None:
    """
    They would wait for each other without end; beside another one that can end it waits, and one that alone is too large never does.
    """
    names = [f"N{number}" for number in range(4)]
    plan = packed(Plan(names=names, starts=bytes(20)))
    ad = dag_job(JobStatus.RUNNING, runs=True) | {"DAGManJobId": 6}
    two = started(Plan(names=["A", "B"]))
    above, beside = (
        Workflow(msgspec.structs.replace(two, owner="ann", workflow=number)) for number in (6, 5)
    )
    service = await dagman(ad, above, most_nodes=5)
    with pytest.raises(
        RefusedError, match="is a part of your others, which have 2 and cannot end"
    ) as refused:
        await service.start(plan)
    assert "unacceptable" == refused.value.code
    service.record.begin(beside)
    with pytest.raises(RefusedError, match="it waits until some of yours have ended, which have 4") as now:
        await service.start(plan)
    assert now.value.code in NOT_NOW
    large = await dagman(ad, beside, most_nodes=3)
    with pytest.raises(RefusedError, match="submit it in parts"):
        await large.start(plan)
