"""What is recorded of workflows, and when."""

import asyncio
from collections import Counter

from kettle.bus.memory import MemoryBus
from kettle.bus.memory_server import MemoryServer
from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import BATCH_EVENTS, Shard
from kettle.testing.gated_log import GatedLog
from kettle_services.dagman.commands import WorkflowCommands
from kettle_services.dagman.domain.decisions import react
from kettle_services.dagman.domain.reading import STEP, Reader
from kettle_services.dagman.domain.workflow import Workflow
from kettle_services.dagman.following import Following
from kettle_services.dagman.record import Record
from kettle_wire.attempts import ExitRecord
from kettle_wire.codes import JobStatus, NodeJobKind, NodePart, NodeState
from kettle_wire.commands.dagman import FollowWorkflow
from kettle_wire.events import (
    ClustersSubmitted,
    ClusterSubmitted,
    Event,
    JobCompleted,
    JobStarted,
    encode,
    tag_of,
)
from kettle_wire.events.workflow import (
    NodeChange,
    NodeJobFact,
    NodeJobsSeen,
    NodesChanged,
    NodeStep,
    WorkflowRemoved,
)
from kettle_wire.frames import Entry, Frame
from kettle_wire.identity import Identity
from kettle_wire.subjects import Subjects
from kettle_wire.workflows import Plan

from .interpreter import started
from .one_dagman import dag_job, dagman


async def test_what_asks_for_nothing_is_recorded_with_what_comes_next() -> None:
    """
    An order is recorded at once, in its place after what was gathered, and so is all of it before anybody is told.
    """
    log = MemoryLog()
    shard = Shard(log, await log.take("dagman.ap", owner="one"), [], answers=10)
    record = await Record.recall(log, MemoryWorkingSet(log), shard, interval=60.0)
    record.begin(Workflow(started(Plan(names=["A", "B"]))))
    fact = NodeJobFact(NodeStep(0, 0, NodePart.JOB), 9, 0, NodeJobKind.COMPLETED)
    record.write({7: [NodeJobsSeen(frame=4, facts=[fact])]})
    record.write({7: [NodesChanged(changes=[NodeChange(0, NodeState.DONE)])]})
    assert 0 == shard.backlog
    record.write({7: [NodesChanged(changes=[NodeChange(1, NodeState.QUEUED)])]})
    assert 3 == shard.backlog
    record.write({7: [NodeJobsSeen(frame=5, facts=[fact])]})
    assert 3 == shard.backlog
    record.flush()
    assert 4 == shard.version("workflow/7")


async def test_what_is_ordered_is_told_with_what_it_follows_from() -> None:
    """
    Also when both are on their way to the log while somebody asks: a POST script would be told of a result that is not there yet.
    """
    log = GatedLog()
    shard = Shard(log, await log.take("dagman.ap", owner="one"), [], answers=10)
    record = await Record.recall(log, MemoryWorkingSet(log), shard, interval=60.0)
    subjects, dagman = Subjects("pool"), Identity(kind="daemon", name="dagman")
    bus = MemoryBus(MemoryServer(), subjects=subjects, identity=dagman)
    asked = WorkflowCommands(bus, "ap", record, Following(bus, subjects, "ap", record), lambda _caller: False)
    workflow = Workflow(started(Plan(names=["A"])))
    record.begin(workflow)
    log.gate.clear()
    record.write({7: [workflow.started, *react(workflow, [], 0.0)]})
    committing = asyncio.create_task(shard.run())
    ann = Identity(kind="user", name="ann")
    telling = asyncio.create_task(asked.follow(FollowWorkflow(workflow=7, after=0), ann))
    for _ in range(20):  # turns of what waits for nothing but its turn
        await asyncio.sleep(0)
    assert not telling.done()
    log.gate.set()
    news = await telling
    committing.cancel()
    assert (shard.version("workflow/7"), [NodeStep(0, 0, NodePart.JOB)]) == (len(news.events), news.orders)


async def test_frames_that_come_together_are_one_event() -> None:
    """With all that follows from them: a job that comes and goes within them has run."""
    begun = Workflow(started(Plan(names=["A", "B"])))
    react(begun, [], 0.0)
    asked = await dagman(dag_job(JobStatus.RUNNING, runs=True), begun)
    first, _ = begun.orders
    submitted = ClusterSubmitted(
        cluster=9, owner="ann", ad={STEP: f"7/{first.node}/0/{first.part}/0"}, columns=[], rows=[[]]
    )
    ended = JobCompleted(attempt=1, exit=ExitRecord(code=0))
    told: list[tuple[str, Event]] = [
        ("cluster/9", submitted),
        ("job/9.0", JobStarted(attempt=1)),
        ("job/9.0", ended),
    ]
    asked.following.take(
        [
            Frame("schedd.ap", 1, 4 + place, 9 + place, 1, [Entry(stream, 1, tag_of(event), encode(event))])
            for place, (stream, event) in enumerate(told)
        ]
    )
    asked.record.flush()
    assert 2 == asked.record.shard.version("workflow/7")
    assert (6, NodeState.DONE) == (begun.frame, begun.states[first.node])


def test_jobs_that_were_submitted_together_are_each_of_a_node() -> None:
    """
    Whether what names the node differs from job to job, or is said once; a step that comes twice counts once.
    """
    begun = Workflow(started(Plan(names=["A", "B", "C"])))
    react(begun, [], 0.0)
    first, second, third = begun.orders
    texts = [f"7/{step.node}/0/{step.part}/0" for step in (first, second, first)]
    differing = ClustersSubmitted(
        first=9, owner="ann", ad={STEP: texts[0], "Cmd": "x"}, columns=["Args", STEP], rows=[["a", text] for text in texts]
    )  # fmt: skip
    same = ClustersSubmitted(
        first=12, owner="ann", ad={STEP: f"7/{third.node}/0/{third.part}/0"}, columns=["Args"], rows=[["a"]]
    )  # fmt: skip
    entries = [
        Entry("clusters/0", number, tag_of(event), encode(event))
        for number, event in enumerate((differing, same), 1)
    ]
    said = Reader({7: begun}).read([Frame("schedd.ap", 1, 4, 9, 1, entries)])[7]
    assert [(first, 9, 1), (second, 10, 1), (third, 12, 1)] == [
        (fact.step, fact.cluster, fact.value) for fact in said.facts
    ]


async def test_what_frames_say_is_in_the_log_as_a_whole_or_not_at_all() -> None:
    """
    Of however many workflows: who begins again goes on behind the last frame that something is recorded of. What follows may come later.
    """
    log = MemoryLog()
    shard = Shard(log, await log.take("dagman.ap", owner="one"), [], answers=10)
    record = await Record.recall(log, MemoryWorkingSet(log), shard, interval=60.0)
    fact = NodeJobFact(NodeStep(0, 0, NodePart.JOB), 9, 0, NodeJobKind.COMPLETED)
    numbers = range(BATCH_EVENTS)
    record.write(
        {
            number: [
                NodeJobsSeen(frame=4, facts=[fact]),
                WorkflowRemoved(by="ann"),
                NodesChanged(changes=[NodeChange(1, NodeState.QUEUED)]),
            ]
            for number in numbers
        }
    )
    committing = asyncio.create_task(shard.run())
    await shard.committed()
    committing.cancel()
    frames = [frame async for frame in log.read("dagman.ap")]
    assert 3 * len(numbers) == sum(len(frame.entries) for frame in frames)
    said = Counter(frame.number for frame in frames for entry in frame.entries if "changed" not in entry.type)
    assert [2 * len(numbers)] == [*said.values()]
    assert [1, 2, 3] == [
        entry.version for frame in frames for entry in frame.entries if entry.stream == "workflow/7"
    ]


async def test_what_is_missing_behind_what_was_said_is_decided_again() -> None:
    """The process was killed between two commits: nothing else would ever make the workflow go on."""
    log = MemoryLog()
    shard = Shard(log, await log.take("dagman.ap", owner="one"), [], answers=10)
    first = await Record.recall(log, MemoryWorkingSet(log), shard, interval=60.0)
    workflow = Workflow(started(Plan(names=["A"])))
    first.begin(workflow)
    ordered = react(workflow, [], 0.0)
    (step,) = workflow.orders
    facts = [
        NodeJobFact(step, 9, -1, NodeJobKind.SUBMITTED, 1),
        NodeJobFact(step, 9, 0, NodeJobKind.COMPLETED),
    ]
    first.write({7: [workflow.started, *ordered, NodeJobsSeen(frame=4, facts=facts)]})
    committing = asyncio.create_task(shard.run())
    await shard.committed()
    committing.cancel()
    shard = Shard(log, await log.take("dagman.ap", owner="two"), [], answers=10)
    record = await Record.recall(log, MemoryWorkingSet(log), shard, interval=60.0)
    subjects = Subjects("pool")
    bus = MemoryBus(MemoryServer(), subjects=subjects, identity=Identity(kind="daemon", name="dagman"))
    Following(bus, subjects, "ap", record).decide_again()
    assert record.workflows[7].ended is not None
