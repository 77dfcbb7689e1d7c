"""
The hands of a workflow: what is ordered is submitted, what is to go is removed, what has happened is written into files.

They hold no state that matters. Whatever was ordered and is not in the queue is ordered again after a restart, and the command
that submits it has an id of its own, so that the schedd knows a repeat.
"""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

import msgspec

from kettle.client import Client
from kettle.client.errors import ClientError, CommandRefusedError
from kettle.dag.files.attributes import attributes
from kettle.dag.files.dag_files import DagFiles
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle.submit.errors import SubmitError
from kettle_services.condor.dagman.macros import NodeSoFar
from kettle_services.condor.dagman.node_source import NodeSource, step_text
from kettle_wire.codes import NodeJobKind, NodePart, NodeState
from kettle_wire.commands.dagman import StartWorkflow, WorkflowNews
from kettle_wire.commands.queue import Select
from kettle_wire.events import decode
from kettle_wire.events.workflow import (
    NodeJobFact,
    NodeJobsSeen,
    NodesChanged,
    NodeStep,
    StepFailure,
    WorkflowEnded,
    WorkflowEvent,
    WorkflowRemoved,
    WorkflowStopping,
)
from kettle_wire.jobs import JobId

AT_ONCE: Final = 16
"""Jobs that are submitted at a time."""
_ADVERTISE_S: Final = 5.0
"""Seconds between two changes of what the ad of the DAG job says."""
_BETWEEN_ATTEMPTS: Final = Backoff(first=1.0, longest=32.0)
_LONGEST_REASON: Final = 4096
_log: Final = logging.getLogger(__name__)


async def _first_of(*waits: Coroutine[Any, Any, object]) -> None:
    """Until one of them is over; the others are given up."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()


class Hands:
    """One process of one DAG job."""

    def __init__(
        self, client: Client, source: NodeSource, start: StartWorkflow, files: DagFiles, *, attempts: int
    ) -> None:
        """`attempts`: how often a job is tried to be submitted whose description is refused."""
        self._client = client
        self._source = source
        self._start = start
        self._files = files
        self._attempts = attempts
        self._seen = 0
        self._known: dict[int, NodeSoFar] = {}
        """By node what a POST script will be told."""
        self._taken: set[NodeStep] = set()
        """Steps that this process has submitted, or is submitting."""
        self._stopped = asyncio.Event()
        """Set when the workflow is to end; what is ordered after that, as its FINAL node, has a new one."""
        self._removed: set[int] = set()
        self._room = asyncio.Semaphore(AT_ONCE)
        self._ended: WorkflowEnded | None = None
        self._advertised = 0.0

    async def run(self) -> int:
        """Until the workflow is over; the exit code of the DAG job."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop)
        await self._client.workflows.start(self._start)
        async with asyncio.TaskGroup() as tasks:
            refreshing = tasks.create_task(self._refresh_files())
            while self._ended is None:
                news = await self._client.workflows.news(self._source.workflow, self._seen)
                await self._take_in(news)
                if news.complete and self._ended is None:
                    self._submit_orders(news, tasks)
                    await self._remove(news.removals)
                    await self._advertise()
            refreshing.cancel()
        await self._advertise(last=True)
        await asyncio.to_thread(self._files.close, time.time())
        return self._ended.exit_code

    async def _take_in(self, news: WorkflowNews) -> None:
        """What has happened goes into the files, and is remembered as far as scripts are told of it."""
        events: list[tuple[float, WorkflowEvent]] = []
        for recorded in news.events:
            event = decode(bytes(recorded.data))
            assert isinstance(event, WorkflowEvent), f"a workflow has a {type(event).__name__}"
            events.append((recorded.at / 1e6, event))
            self._remember(event)
        self._seen += len(events)
        if events:
            await asyncio.to_thread(self._files.record, events)

    def _remember(self, event: WorkflowEvent) -> None:
        match event:
            case NodesChanged():
                for change in event.changes:
                    if change.state == NodeState.READY:
                        self._known[change.node] = NodeSoFar(exits=[])
                    elif change.state == NodeState.POST:
                        self._of(change.node).value = change.value
                    elif change.state in {NodeState.DONE, NodeState.FAILED, NodeState.SKIPPED}:
                        self._known.pop(change.node, None)
            case NodeJobsSeen():
                for fact in event.facts:
                    self._remember_fact(fact)
            case WorkflowRemoved() | WorkflowStopping():
                self._stopped.set()
                self._stopped = asyncio.Event()
            case WorkflowEnded():
                self._ended = event
            case _:
                pass

    def _of(self, node: int) -> NodeSoFar:
        return self._known.setdefault(node, NodeSoFar(exits=[]))

    def _remember_fact(self, fact: NodeJobFact) -> None:
        so_far = self._of(fact.step.node)
        match fact.step.part, fact.kind:
            case _, NodeJobKind.SUBMITTED:
                self._taken.discard(fact.step)
                if fact.step.part == NodePart.JOB:
                    so_far.cluster, so_far.jobs = fact.cluster, fact.value
            case NodePart.PRE, NodeJobKind.COMPLETED:
                so_far.pre = fact.value
            case NodePart.JOB, NodeJobKind.COMPLETED:
                so_far.exits.append(fact.value)
            case NodePart.JOB, NodeJobKind.REMOVED:
                so_far.removed += 1
            case _:
                pass

    # -- submitting --------------------------------------------------------------------------------------------------

    def _submit_orders(self, news: WorkflowNews, tasks: asyncio.TaskGroup) -> None:
        for step in news.orders:
            if step not in self._taken:
                self._taken.add(step)
                tasks.create_task(self._submit(step))

    async def _submit(self, step: NodeStep) -> None:
        """Submit one step, or say that it cannot be."""
        waits, stopped = Waits(_BETWEEN_ATTEMPTS), self._stopped
        while True:
            try:
                async with self._room:
                    await self._try_to_submit(step)
            except (SubmitError, ClientError) as error:
                reason = str(error)
                _log.warning("%s: %s", step_text(self._source.workflow, step), reason)
                if stopped.is_set() or waits.failures + 1 >= self._attempts:
                    failure = StepFailure(step, reason[:_LONGEST_REASON], waits.failures + 1)
                    await self._client.workflows.failed(self._source.workflow, [failure])
                    return
                await _first_of(waits.wait(), stopped.wait())
            else:
                return

    async def _try_to_submit(self, step: NodeStep) -> None:
        so_far = msgspec.structs.replace(self._of(step.node))
        jobs = await asyncio.to_thread(self._source.jobs, step, self._files.progress, so_far)
        command = f"dag/{step_text(self._source.workflow, step)}"
        submitted = await self._client.submit(jobs.submission, spool=jobs.spool, command=command)
        if jobs.spool:
            made = jobs.submission
            await self._client.spools.send(made.queued(p, submitted.cluster) for p in range(made.count))

    async def _remove(self, clusters: list[int]) -> None:
        """Take jobs out of the queue, once each; what this process has not done the next one does again."""
        if new := [cluster for cluster in clusters if cluster not in self._removed]:
            self._removed.update(new)
            reason = f"removed by the workflow of DAG job {self._source.workflow}"
            await self._client.remove(Select(clusters=new), reason)

    def _stop(self) -> None:
        """The DAG job is held: the status file says so, and its nodes go on without this process."""
        self._files.refresh(time.time(), is_held=True)
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)

    # -- files and the ad --------------------------------------------------------------------------------------------

    async def _refresh_files(self) -> None:
        """Write the status files that are due."""
        while True:
            again = await asyncio.to_thread(self._files.refresh, time.time())
            await asyncio.sleep(min(again or _ADVERTISE_S, _ADVERTISE_S))

    async def _advertise(self, *, last: bool = False) -> None:
        """What the ad of the DAG job says of its nodes, now and then."""
        now = time.monotonic()
        if not last and now - self._advertised < _ADVERTISE_S:
            return
        self._advertised = now
        with suppress(CommandRefusedError):  # the DAG job may have left
            await self._client.edit_jobs(
                Select(jobs=[JobId(self._source.workflow, 0)]),
                {**attributes(self._files.progress), "JobBatchName": self._source.batch},
            )
