"""
Follows the schedd of the workflows by its frames, and records what they say of workflows and what follows
from it.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import aclosing, suppress
from typing import Final

from kettle.bus.batching import Pacing
from kettle.bus.ports import Bus
from kettle.bus.retryable import retryable
from kettle.eventsourcing.replay import followed_batches, head_frame
from kettle.jobs.ad import over
from kettle.retry.loop import retry
from kettle_services.dagman.domain.decisions import next_time, react
from kettle_services.dagman.domain.reading import Reader, Said
from kettle_services.dagman.domain.workflow import Workflow
from kettle_services.dagman.record import Record
from kettle_wire.codes import DagStatus
from kettle_wire.commands.queue import QUERY_JOBS, QueryJobs, Select
from kettle_wire.events.workflow import NodeJobsSeen, WorkflowEnded, WorkflowEvent, WorkflowRemoved
from kettle_wire.frames import Frame
from kettle_wire.subjects import Subjects

DAG_JOB: Final = ["ClusterId", "Owner", "JobUniverse", "JobStatus", "CurrentHosts", "RemoveReason"]
"""What is asked of a DAG job."""
_WITHIN_S: Final = 10.0
_GATHER_S: Final = 0.5
"""So long frames may be gathered while many jobs wait: what costs is the turn, not the frame."""
_MANY: Final = 600
"""More than a large pool takes in that time."""

_log: Final = logging.getLogger(__name__)


class Following:
    """
    Reads the schedd's frames while there is a workflow that is not over, and none otherwise: most pools have none most of the
    time, and should not pay for it.
    """

    def __init__(self, bus: Bus, subjects: Subjects, schedd: str, record: Record) -> None:
        self._bus = bus
        self._subjects = subjects
        self._schedd = schedd
        self._shard = f"schedd.{schedd}"
        self._record = record
        self._reader = Reader({n: each for n, each in record.workflows.items() if each.ended is None})
        self._frame = record.followed
        """The last frame that was read; None: none is."""
        self._wake = asyncio.Event()
        self._tick = asyncio.Event()

    async def place(self) -> int:
        """
        From which frame on a workflow that begins now is followed: everything of it comes later, and is read.
        """
        head = await head_frame(self._bus, self._shard)
        return head if self._frame is None else min(head, self._frame)

    def begin(self, workflow: Workflow) -> None:
        """A workflow begins; it was said to be followed from some place on, and is."""
        self._live[workflow.number] = workflow
        if self._frame is None:
            self._frame = workflow.frame
        self._wake.set()
        self._tick.set()

    @property
    def _live(self) -> dict[int, Workflow]:
        return self._reader.workflows

    def _many_wait(self) -> bool:
        """Whether so many jobs of each workflow wait that none runs later for a moment of patience."""
        return all(workflow.idle_jobs >= _MANY for workflow in self._live.values())

    def changed(self, number: int, decided: list[WorkflowEvent]) -> None:
        """
        Something was decided about a workflow elsewhere, and scripts may wait for another time now, or for one again.
        """
        self._record.write({number: decided})
        self._tick.set()
        self._settle(number)

    async def follow(self) -> None:
        """Follow whenever there is something to follow; never returns."""
        self.decide_again()
        while True:
            self._wake.clear()
            if self._live and self._frame is not None:
                await self._follow_while_needed(self._frame)
            await self._wake.wait()

    def decide_again(self) -> None:
        """
        Decide what follows from what is recorded, and is not: a process may have been killed between the two.
        """
        for number, workflow in list(self._live.items()):
            if decided := react(workflow, [], time.time()):
                self.changed(number, decided)

    async def _follow_while_needed(self, after: int) -> None:
        _log.info("follows %s from frame %s on", self._shard, after)
        await self.end_left(list(self._live))
        gather = Pacing(_GATHER_S, wanted=self._many_wait)
        following = followed_batches(self._bus, self._subjects, self._shard, after=after, gather=gather)
        async with aclosing(following) as batches:
            async for frames in batches:
                if removed := self.take(frames):
                    await self.end_left(removed)
                if not self._live:
                    self._frame = None
                    return

    async def end_left(self, numbers: list[int]) -> None:
        """
        End those workflows whose DAG jobs are over: one that was removed while it did not run is so without another word, also if it stays
        in the queue for its results.
        """
        request = QueryJobs(select=Select(clusters=numbers), projection=DAG_JOB)
        found = await retry(
            lambda: self._bus.call(QUERY_JOBS, self._schedd, request, deadline=_WITHIN_S), retryable=retryable
        )
        there = {ad["ClusterId"] for ad in found.jobs if not over(ad)}
        for number in numbers:
            workflow = self._live.get(number)
            if workflow is not None and workflow.ended is None and number not in there:
                ended = _left(workflow)
                workflow.apply(ended)
                self.changed(number, [ended])

    def take(self, frames: Sequence[Frame]) -> list[int]:
        """
        Record what frames that follow each other say, and what follows from all of it; the workflows whose DAG jobs were removed.

        What has come together is one event for each workflow: a job has several of its own already, and what costs are the rows.
        """
        self._frame = frames[-1].number
        said = self._reader.read(frames)
        decided: dict[int, list[WorkflowEvent]] = {}
        for number, about in said.items():
            workflow = self._live.get(number)
            if workflow is not None and (facts := _facts(self._frame, about)):
                decided[number] = react(workflow, facts, time.time())
            if workflow is not None and about.over and workflow.ended is None:
                ended = _left(workflow)
                workflow.apply(ended)
                decided.setdefault(number, []).append(ended)
            for fact in about.facts:
                if workflow is None or fact.cluster not in workflow.clusters:
                    self._reader.forget(fact.cluster)
        if decided:
            self._record.write(decided)
            self._tick.set()
        for number in said:
            self._settle(number)
        return [
            number for number, about in said.items() if about.removed is not None and number in self._live
        ]

    def _settle(self, number: int) -> None:
        """A workflow that is over is not followed any more."""
        workflow = self._live.get(number)
        if workflow is not None and workflow.ended is not None:
            del self._live[number]
            self._record.over(number)

    async def run_deferred(self) -> None:
        """Decide when a time has come; never returns."""
        while True:
            self._tick.clear()
            times = {number: at for number, each in self._live.items() if (at := next_time(each)) is not None}
            now = time.time()
            for number, at in times.items():
                if at <= now and (decided := react(self._live[number], [], now)):
                    self.changed(number, decided)
            soonest = min((at for at in times.values() if at > now), default=None)
            with suppress(TimeoutError):
                async with asyncio.timeout(None if soonest is None else soonest - now):
                    await self._tick.wait()


def _facts(frame: int, about: Said) -> list[WorkflowEvent]:
    facts: list[WorkflowEvent] = []
    if about.facts:
        facts.append(NodeJobsSeen(frame=frame, facts=about.facts, reasons=about.reasons))
    if about.removed is not None:
        facts.append(WorkflowRemoved(by=about.removed.by, reason=about.removed.reason))
    return facts


def _left(workflow: Workflow) -> WorkflowEnded:
    """Its DAG job has left before the workflow was over."""
    removed = workflow.stop is not None and workflow.stop.status == DagStatus.REMOVED
    return WorkflowEnded(
        status=DagStatus.REMOVED if removed else DagStatus.ERROR,
        exit_code=2 if removed else 1,
        reason="the process of the DAG job has ended before its workflow",
    )
