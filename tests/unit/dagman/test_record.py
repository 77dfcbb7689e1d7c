"""What is recorded of workflows, and when."""

from kettle.eventsourcing.memory import MemoryLog, MemoryWorkingSet
from kettle.eventsourcing.shard import Shard
from kettle_services.dagman.domain.workflow import Workflow
from kettle_services.dagman.record import Record
from kettle_wire.codes import NodeJobKind, NodePart, NodeState
from kettle_wire.events.workflow import NodeChange, NodeJobFact, NodeJobsSeen, NodesChanged, NodeStep
from kettle_wire.workflows import Plan

from .interpreter import started


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
