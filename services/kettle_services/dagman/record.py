"""
The record of a dagman: its shard, and the workflows that are folded from it.

Its working set has a line for each workflow that is not over; what has happened to these is read from their streams.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import takewhile
from typing import Final

import msgspec

from kettle.eventsourcing.command_pipeline import Recording
from kettle.eventsourcing.log import Log, WorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.eventsourcing.working_set import Checkpointer
from kettle_services.dagman.domain.workflow import Workflow
from kettle_wire.codes import NodeState
from kettle_wire.commands.dagman import RecordedWorkflowEvent
from kettle_wire.events import decode
from kettle_wire.events.workflow import (
    NodeJobsSeen,
    NodesChanged,
    WorkflowEnded,
    WorkflowEvent,
    WorkflowRemoved,
    WorkflowStarted,
)
from kettle_wire.frames import Entry, Frame

STREAM: Final = "workflow/"
_ENDED: Final = WorkflowEnded.__struct_config__.tag
_ORDERED: Final = frozenset({NodeState.PRE, NodeState.QUEUED, NodeState.POST})
_SAID: Final = (NodeJobsSeen, WorkflowRemoved)
"""What frames of the schedd say, before anything is decided because of it."""
_AT_ONCE: Final = 50
"""
Decisions that go into the log together at most: each may have thousands of changes, and a frame is read as a whole.
"""


_OVER: Final = 20
"""So many workflows that are over stay in memory."""
GATHERED_S: Final = 0.2
"""So long what has happened may wait for more of it, before it is recorded and told, if nothing is to be done because of it."""


class History:
    """The recorded events of one workflow, for those who follow it."""

    def __init__(self) -> None:
        self.events: list[RecordedWorkflowEvent] = []
        self._urgent = 0
        """So many events there were with the last one that asks for something."""
        self._more = asyncio.Event()

    def add(self, at: int, data: bytes, *, urgent: bool) -> None:
        """The next one."""
        self.events.append(RecordedWorkflowEvent(at, msgspec.Raw(data)))
        if urgent:
            self._urgent = len(self.events)
        self._more.set()

    async def after(self, count: int, *, within: float) -> None:
        """
        Wait until there are more than so many, but no longer than `within` seconds. What asks for nothing is gathered for a moment.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + within
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until) as waiting:
                while len(self.events) <= count:
                    self._more.clear()
                    await self._more.wait()
                waiting.reschedule(min(until, loop.time() + GATHERED_S))
                while self._urgent <= count:
                    self._more.clear()
                    await self._more.wait()


class Record:
    """The workflows that are not over, and those that ended last."""

    def __init__(self, log: Log, shard: Shard, checkpointer: Checkpointer) -> None:
        self.shard: Final = shard
        self._log = log
        self._over: deque[int] = deque()
        """The workflows that are over, in the order in which they were met."""
        self.workflows: dict[int, Workflow] = {}
        """By their numbers. What is decided about them is in them before it is committed."""
        self.histories: dict[int, History] = {}
        """What is committed."""
        self._gathered: list[list[tuple[str, WorkflowEvent]]] = []
        """What is decided, and recorded in a moment; what is one commit is one list."""
        self._flushing: asyncio.TimerHandle | None = None
        self._checkpointer = checkpointer
        shard.on_commit(self._committed)

    @classmethod
    async def recall(cls, log: Log, working_set: WorkingSet, shard: Shard, *, interval: float) -> "Record":
        """The record as it is at the start: the workflows of the working set, and of the frames after it."""
        cursor, rows = await working_set.load(shard.name)
        checkpointer = Checkpointer(
            working_set, shard.name, epoch=shard.tenure.epoch, frame=cursor, interval=interval
        )
        versions = {row.stream: row.version for row in rows}
        async for frame in log.read(shard.name, after=cursor):
            _follow(versions, frame.entries)
            checkpointer.mark(frame.number, *_rows(frame))
        shard.adopt(versions)
        record = cls(log, shard, checkpointer)
        for stream in versions:
            record._restore(int(stream.removeprefix(STREAM)), await log.stream(shard.name, stream))
        return record

    def _restore(self, number: int, recorded: list[tuple[Frame, int]]) -> None:
        history = self.histories[number] = History()
        for frame, _ in recorded:
            [entry] = frame.entries
            event = workflow_event(entry)
            if isinstance(event, WorkflowStarted):
                self.workflows[number] = Workflow(event)
            else:
                self.workflows[number].apply(event)
            history.add(frame.at, entry.data, urgent=asks_for_something(event))

    async def checkpoint(self) -> None:
        """Keep the working set near the head; never returns."""
        await self._checkpointer.run()

    @property
    def followed(self) -> int | None:
        """
        The last frame of the schedd's shard of which something is recorded; None: there is no workflow to follow.
        """
        return max((each.frame for each in self.workflows.values() if each.ended is None), default=None)

    def begin(self, workflow: Workflow) -> None:
        """There is one more; its first event is about to be recorded."""
        self.workflows[workflow.number] = workflow
        self.histories[workflow.number] = History()

    async def find(self, number: int) -> Workflow | None:
        """A workflow, also one that is over; None: there never was one of this number."""
        if number not in self.workflows:
            recorded = await self._log.stream(self.shard.name, f"{STREAM}{number}")
            if recorded and number not in self.workflows:  # it may have begun, or been asked for, meanwhile
                self._restore(number, recorded)
                self.over(number)
        return self.workflows.get(number)

    def over(self, number: int) -> None:
        """A workflow is over: somebody may ask for it for a while, and later it is read from the log."""
        self._over.append(number)
        if len(self._over) > _OVER:
            old = self._over.popleft()
            self.workflows.pop(old, None)
            self.histories.pop(old, None)

    def write(self, decided: Mapping[int, list[WorkflowEvent]]) -> None:
        """
        Record what was decided about workflows; `run` of the shard commits it, and fails the process if it cannot.

        If nothing is to be done because of it, it waits a moment for more: it follows from the frames of the schedd, and a process
        that never recorded it decides it again.

        What the schedd has said of all workflows is one commit: a process that begins again goes on behind the last frame of which
        it finds something. What follows from that is decided again if it is missing.
        """
        said: list[tuple[str, WorkflowEvent]] = []
        others: list[tuple[str, WorkflowEvent]] = []
        for number, events in decided.items():
            changes = [(f"{STREAM}{number}", event) for event in events]
            first = [*takewhile(lambda change: isinstance(change[1], _SAID), changes)]
            said += first
            others += changes[len(first) :]
        pieces = [said, *(others[start : start + _AT_ONCE] for start in range(0, len(others), _AT_ONCE))]
        self._gathered += filter(None, pieces)
        if any(asks_for_something(event) for _, event in (*said, *others)):
            self.flush()
        elif self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(GATHERED_S, self.flush)

    def flush(self) -> None:
        """Record what was gathered."""
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None
        gathered, self._gathered = self._gathered, []
        for changes in gathered:
            self._record(changes)

    def record(
        self, changes: Recording, *, command: str = "", reply: Callable[[int], bytes] | None = None
    ) -> asyncio.Future[int]:
        """Record and commit, as `Shard.record` does; what is decided was applied when it was decided."""
        self.flush()
        return self._record(changes, command=command, reply=reply)

    def _record(
        self, changes: Recording, *, command: str = "", reply: Callable[[int], bytes] | None = None
    ) -> asyncio.Future[int]:
        future = self.shard.record(changes, now_us=time.time_ns() // 1000, command=command, reply=reply)
        for stream, event in changes:
            if isinstance(event, WorkflowEnded):
                self.shard.retire(stream)
        return future

    def _committed(self, frame: Frame) -> None:
        self._checkpointer.mark(frame.number, *_rows(frame))
        for entry in frame.entries:
            history = self.histories.get(int(entry.stream.removeprefix(STREAM)))
            if history is not None:
                history.add(frame.at, entry.data, urgent=asks_for_something(workflow_event(entry)))


def asks_for_something(event: WorkflowEvent) -> bool:
    """
    Whether somebody has to do something because of it: the process of the DAG job, or who waits for the end.
    """
    if isinstance(event, NodesChanged):
        return any(change.state in _ORDERED for change in event.changes)
    return not isinstance(event, NodeJobsSeen)


def workflow_event(entry: Entry) -> WorkflowEvent:
    """The event of an entry of this shard."""
    event = decode(entry.data)
    assert isinstance(event, WorkflowEvent), f"{entry.stream} has a {entry.type}"
    return event


def _follow(versions: dict[str, int], entries: list[Entry]) -> None:
    for entry in entries:
        if entry.type == _ENDED:
            versions.pop(entry.stream, None)
        else:
            versions[entry.stream] = entry.version


def _rows(frame: Frame) -> tuple[dict[str, tuple[int, bytes]], set[str]]:
    """The workflows of a frame that are not over, and those that ended with it."""
    puts: dict[str, tuple[int, bytes]] = {}
    drops: set[str] = set()
    for entry in frame.entries:
        if entry.type == _ENDED:
            puts.pop(entry.stream, None)
            drops.add(entry.stream)
        else:
            puts[entry.stream] = (entry.version, b"")
    return puts, drops
