"""
Everything that a dagman ever records, decided by its own decider about workflows to which things happen in a fixed order.

    .venv/bin/python -m tests.replay.workflow_events 0.1.21     its frames become tests/replay/0.1.21
"""

import sys
from typing import Final

import msgspec

from kettle_services.dagman.domain.decisions import next_time, react
from kettle_services.dagman.domain.workflow import Workflow
from kettle_wire.codes import NodeJobKind, NodePart
from kettle_wire.events import encode, tag_of
from kettle_wire.events.workflow import (
    NodeJobFact,
    NodeJobsSeen,
    NodeMemory,
    NodeReuse,
    NodesRemembered,
    NodesReused,
    NodeStep,
    StepFailure,
    SubmissionsFailed,
    WorkflowEvent,
    WorkflowHalted,
    WorkflowRemoved,
    WorkflowResumed,
    WorkflowStarted,
    WorkflowThrottled,
)
from kettle_wire.frames import Entry, Frame
from kettle_wire.workflows import AbortRule, Deferral, Plan, Retries, Tolerance, WorkflowOptions, packed

from .folds import expected
from .recording import HERE, write

SHARD: Final = "dagman.schedd"
_AT: Final = 1_795_651_200_000_000


def _started(number: int, plan: Plan) -> WorkflowStarted:
    return WorkflowStarted(
        workflow=number,
        owner="ann",
        files=["diamond.dag"],
        directory="/home/ann",
        digest="0" * 64,
        plan=packed(plan),
        options=WorkflowOptions(max_jobs=2),
        followed=number,
    )


class _Life:
    """One workflow, and what is recorded of it."""

    def __init__(self, first: WorkflowStarted) -> None:
        self.workflow = Workflow(first)
        self.commits: list[list[WorkflowEvent]] = [[first, *react(self.workflow, [], 0.0)]]
        self._frame = first.followed

    def feed(self, *facts: WorkflowEvent, now: float = 0.0) -> None:
        self.commits.append(react(self.workflow, facts, now))

    def see(self, step: NodeStep, cluster: int, *kinds: tuple[NodeJobKind, int]) -> None:
        """A cluster of one job is submitted, and this happens to it."""
        self._frame += 1
        facts = [NodeJobFact(step, cluster, -1, NodeJobKind.SUBMITTED, 1)]
        facts += [NodeJobFact(step, cluster, 0, kind, value) for kind, value in kinds]
        self.feed(
            NodeJobsSeen(frame=self._frame, facts=facts, reasons={2: "somebody's"} if len(facts) > 2 else {})
        )


def _diamond() -> _Life:
    """
    A deferred script, a HOLD script, a failed submission, a retry, limits, a halt, a save point; it ends well.
    """
    plan = Plan(
        names=["A", "B", "C", "D"],
        starts=_words(0, 2, 3, 4, 4),
        ends=_words(1, 2, 3, 3),
        weak=b"\0\0\0\1",
        pre={0: Deferral(9, 60)},
        post={3: None},
        hold=[1],
        retries={1: Retries(2)},
        priorities={2: 5},
        save_points=[3],
    )
    life, ended = _Life(_started(10, plan)), (NodeJobKind.COMPLETED, 0)
    life.see(NodeStep(0, 0, NodePart.PRE), 11, (NodeJobKind.COMPLETED, 9))
    life.feed(now=next_time(life.workflow) or 0.0)
    life.see(NodeStep(0, 0, NodePart.PRE, 1), 12, ended)
    life.see(NodeStep(0, 0, NodePart.JOB), 13, (NodeJobKind.STARTED, 0), ended)
    life.feed(SubmissionsFailed(failures=[StepFailure(NodeStep(1, 0, NodePart.JOB), "no such file")]))
    life.feed(WorkflowHalted(by="ann", reason="lunch"), WorkflowResumed(by="ann"))
    life.feed(WorkflowThrottled(options=WorkflowOptions(max_jobs=5), by="ann"))
    life.see(NodeStep(1, 1, NodePart.JOB), 14, (NodeJobKind.STARTED, 0), (NodeJobKind.HELD, 0))
    life.see(NodeStep(1, 1, NodePart.HOLD), 15, ended)
    life.feed(NodeJobsSeen(frame=90, facts=[NodeJobFact(NodeStep(1, 1, NodePart.JOB), 14, 0, *ended)]))
    life.see(NodeStep(2, 0, NodePart.JOB), 16, ended)
    life.see(NodeStep(3, 0, NodePart.JOB), 17, (NodeJobKind.COMPLETED, -9))
    life.see(NodeStep(3, 0, NodePart.POST), 18, ended)
    return life


def _aborted() -> _Life:
    """
    A node that aborts it while others run, some of them with more failures than are tolerated; it has a FINAL
    node.
    """
    plan = Plan(
        names=["A", "B", "F"],
        starts=_words(0, 0, 0, 0),
        aborts={0: AbortRule(3, 7)},
        tolerances={1: Tolerance(1)},
        final=2,
    )
    life = _Life(_started(20, plan))
    life.see(NodeStep(1, 0, NodePart.JOB), 21, (NodeJobKind.STARTED, 0))
    life.see(NodeStep(0, 0, NodePart.JOB), 22, (NodeJobKind.COMPLETED, 3))
    life.feed(
        NodeJobsSeen(frame=91, facts=[NodeJobFact(NodeStep(1, 0, NodePart.JOB), 21, 0, NodeJobKind.REMOVED)])
    )
    life.see(NodeStep(2, 0, NodePart.JOB), 23, (NodeJobKind.COMPLETED, 1))
    return life


def _removed() -> _Life:
    """Somebody removes it while it runs; it is not over yet."""
    life = _Life(_started(30, Plan(names=["A"], starts=_words(0, 0))))
    life.see(NodeStep(0, 0, NodePart.JOB), 31, (NodeJobKind.STARTED, 0))
    life.feed(WorkflowRemoved(by="ann"))
    return life


def _reused() -> _Life:
    """One node has its result from an earlier run, and of those that run one is remembered."""
    plan = Plan(names=["A", "B", "C"], starts=_words(0, 0, 0, 0))
    life = _Life(msgspec.structs.replace(_started(40, plan), options=WorkflowOptions(memo=True)))
    reuse = NodeReuse(
        NodeStep(0, 0, NodePart.JOB), "0" * 64, {"/home/ann/a": "1" * 64}, 9, "A", 10, 1_795_600_000
    )
    life.feed(NodesReused(reuses=[reuse]))
    life.see(NodeStep(1, 0, NodePart.JOB), 41, (NodeJobKind.COMPLETED, 0))
    life.see(NodeStep(2, 0, NodePart.JOB), 42, (NodeJobKind.COMPLETED, 0))
    memory = NodeMemory(1, 41, "2" * 64, {"/home/ann/b": "3" * 64})
    life.feed(NodesRemembered(memories=[memory], others=[2]))
    return life


def _begun_again() -> _Life:
    """A node fails, one that waits for it can never run, and both begin again when nothing else can run."""
    plan = Plan(names=["A", "B"], starts=_words(0, 1, 1), ends=_words(1), weak=b"\0")
    life = _Life(msgspec.structs.replace(_started(50, plan), options=WorkflowOptions(reruns=1)))
    life.see(NodeStep(0, 0, NodePart.JOB), 51, (NodeJobKind.COMPLETED, 1))
    life.see(NodeStep(0, 1, NodePart.JOB), 52, (NodeJobKind.COMPLETED, 0))
    return life


def _words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)


def frames() -> list[Frame]:
    """One commit after the other."""
    made: list[Frame] = []
    position = 1
    for life in (_diamond(), _aborted(), _removed(), _reused(), _begun_again()):
        version = 0
        for events in filter(None, life.commits):
            entries: list[Entry] = []
            for event in events:
                version += 1
                entries.append(
                    Entry(f"workflow/{life.workflow.number}", version, tag_of(event), encode(event), b"")
                )
            number = len(made) + 1
            made.append(Frame(SHARD, 1, number, position, _AT + number * 1_000_000, entries))
            position += len(entries)
    return made


if __name__ == "__main__":
    shards = {SHARD: frames()}
    write(HERE / sys.argv[1], shards)
    (HERE / sys.argv[1] / "expected.json").write_bytes(expected(shards))
