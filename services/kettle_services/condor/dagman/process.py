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
from collections.abc import Collection, Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kettle.client import Client
from kettle.client.errors import ClientError, CommandRefusedError
from kettle.client.workflows import dated
from kettle.dag.files.attributes import attributes
from kettle.dag.files.dag_files import DagFiles
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle.submit.errors import SubmitError
from kettle_services.condor.dagman.macros import NodeSoFar
from kettle_services.condor.dagman.node_memo import NodeMemo
from kettle_services.condor.dagman.node_source import STEP, NodeSource, step_in, step_text
from kettle_wire.codes import HoldCode, NodeJobKind, NodePart, NodeState
from kettle_wire.commands.dagman import RememberNodes, StartWorkflow, WorkflowNews
from kettle_wire.commands.queue import Select
from kettle_wire.events.workflow import (
    JobsRemovalOrdered,
    NodeChange,
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

if TYPE_CHECKING:
    from kettle.submit import Submission

TOGETHER: Final = 200
"""So many nodes are submitted with one command at most."""
AT_ONCE: Final = 2
"""Commands: the next one is prepared while one is on its way."""
SENT_AT_ONCE: Final = 8
"""Jobs whose files are sent at a time."""
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
        self,
        client: Client,
        source: NodeSource,
        start: StartWorkflow,
        files: DagFiles,
        *,
        attempts: int,
        memo: NodeMemo | None = None,
    ) -> None:
        """
        `attempts`: how often a job is tried to be submitted whose description is refused; `memo`: by which nodes are left out.
        """
        self._client = client
        self._source = source
        self._start = start
        self._files = files
        self._attempts = attempts
        self._memo = memo
        self._seen = 0
        self._known: dict[int, NodeSoFar] = {}
        """By node what a POST script will be told."""
        self._taken: set[NodeStep] = set()
        """Steps that this process has submitted, or is submitting."""
        self._stopped = asyncio.Event()
        """Set when the workflow is to end; what is ordered after that, as its FINAL node, has a new one."""
        self._to_remove: dict[int, str] = {}
        """Clusters that were said to be removed, and why; they are not if they have left meanwhile."""
        self._fetched: set[int] = set()
        """Nodes whose results are here."""
        self._room = asyncio.Semaphore(AT_ONCE)
        self._ended: WorkflowEnded | None = None
        self._advertised = 0.0
        self._untold = False
        """Whether something has happened that the ad of the DAG job does not say."""

    async def run(self) -> int:
        """Until the workflow is over; the exit code of the DAG job."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop)
        await self._client.workflows.start(self._start)
        if self._source.spools:
            await self._send_left()
        async with asyncio.TaskGroup() as tasks:
            refreshing = tasks.create_task(self._refresh_files())
            while self._ended is None:
                news = await self._client.workflows.news(self._source.workflow, self._seen)
                await self._take_in(news)
                if news.complete and self._ended is None:
                    self._submit_orders(news, tasks)
                    await self._remove(news.removals)
                    await self._tell_what_is_left(news.remember)
                    await self._advertise()
            refreshing.cancel()
        if self._source.sent:
            await self._fetch_all()
        await self._advertise(last=True)
        await asyncio.to_thread(self._files.close, time.time())
        return self._ended.exit_code

    async def _take_in(self, news: WorkflowNews) -> None:
        """What has happened goes into the files, and is remembered as far as scripts are told of it."""
        events = list(map(dated, news.events))
        for _, event in events:
            self._remember(event)
        self._seen += len(events)
        if events:
            self._untold = True
            await asyncio.to_thread(self._files.record, events)

    def _remember(self, event: WorkflowEvent) -> None:
        match event:
            case NodesChanged():
                for change in event.changes:
                    self._remember_change(change)
            case NodeJobsSeen():
                for fact in event.facts:
                    self._remember_fact(fact)
            case JobsRemovalOrdered():
                self._to_remove.update(dict.fromkeys(event.clusters, event.reason))
            case WorkflowRemoved() | WorkflowStopping():
                self._stopped.set()
                self._stopped = asyncio.Event()
            case WorkflowEnded():
                self._ended = event
            case _:
                pass

    def _of(self, node: int) -> NodeSoFar:
        return self._known.setdefault(node, NodeSoFar(exits=[]))

    def _remember_change(self, change: NodeChange) -> None:
        if change.state == NodeState.READY:
            self._known[change.node] = NodeSoFar(exits=[])
        elif change.state == NodeState.POST:
            self._of(change.node).value = change.value
        elif change.state in {NodeState.DONE, NodeState.FAILED, NodeState.SKIPPED}:
            self._known.pop(change.node, None)

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
        new = [step for step in news.orders if step not in self._taken]
        self._taken.update(new)
        for start in range(0, len(new), TOGETHER):
            tasks.create_task(self._submit(new[start : start + TOGETHER]))

    async def _submit(self, steps: list[NodeStep]) -> None:
        """Submit these steps, or say which of them cannot be."""
        waits, stopped = Waits(_BETWEEN_ATTEMPTS), self._stopped
        while True:
            async with self._room:
                refused = await self._try_to_submit(steps)
            if not refused:
                return
            for step, reason in refused.items():
                _log.warning("%s: %s", step_text(self._source.workflow, step), reason)
            tries = waits.failures + 1
            if stopped.is_set() or tries >= self._attempts:
                failures = [
                    StepFailure(step, reason[:_LONGEST_REASON], tries) for step, reason in refused.items()
                ]
                await self._client.workflows.failed(self._source.workflow, failures)
                return
            await _first_of(waits.wait(), stopped.wait())
            steps = list(refused)

    async def _try_to_submit(self, steps: list[NodeStep]) -> dict[NodeStep, str]:
        """Why some of them cannot be submitted."""
        if self._source.sent:
            try:
                await self._fetch_results(
                    {each for step in steps for each in self._source.parents(step.node)}
                )
            except ClientError as error:
                return dict.fromkeys(steps, f"what nodes before it have left cannot be fetched: {error}")
        prepared = await self._leave_out(await self._prepared(steps))
        ids = {step: f"dag/{step_text(self._source.workflow, step)}" for step in prepared}
        results = await self._client.submit_many(
            {ids[step]: each for step, each in prepared.items() if not isinstance(each, Exception)},
            spool=frozenset(ids[step] for step in prepared if self._is_sent(step)),
        )
        refused: dict[NodeStep, str] = {}
        sending: dict[NodeStep, tuple[Submission, int]] = {}
        for step, each in prepared.items():
            result = each if isinstance(each, Exception) else results[ids[step]]
            if isinstance(result, Exception):
                refused[step] = str(result)
            elif self._is_sent(step) and not isinstance(each, Exception):
                sending[step] = each, result.cluster
        return refused | await self._send(sending)

    async def _leave_out(
        self, prepared: "dict[NodeStep, Submission | SubmitError | ClientError]"
    ) -> "dict[NodeStep, Submission | SubmitError | ClientError]":
        """What is left to be submitted, after those nodes whose result is there."""
        reuses = {} if self._memo is None else await self._memo.reusable(prepared)
        if reuses:
            request = RememberNodes(workflow=self._source.workflow, reuses=[*reuses.values()])
            await self._client.workflows.remember(request)
        return {step: each for step, each in prepared.items() if step not in reuses}

    async def _tell_what_is_left(self, steps: list[NodeStep]) -> None:
        """What nodes have left that have run well; the workflow does not end before that is told."""
        if not steps:
            return
        if self._memo is None:  # an earlier process had another configuration
            nodes = [step.node for step in steps]
            told = RememberNodes(workflow=self._source.workflow, others=nodes)
        else:
            told = await self._memo.left(steps, self._files.progress.clusters)
        await self._client.workflows.remember(told)

    def _is_sent(self, step: NodeStep) -> bool:
        """Whether the access point gets the files of a step with its jobs."""
        return self._source.spools and step.part == NodePart.JOB

    async def _prepared(
        self, steps: list[NodeStep]
    ) -> "dict[NodeStep, Submission | SubmitError | ClientError]":
        known = {step.node: msgspec.structs.replace(self._of(step.node)) for step in steps}
        return await asyncio.to_thread(self._source.jobs, steps, self._files.progress, known)

    async def _send(self, sending: "Mapping[NodeStep, tuple[Submission, int]]") -> dict[NodeStep, str]:
        """Send the files of these jobs; why some of them cannot be."""
        refused: dict[NodeStep, str] = {}
        room = asyncio.Semaphore(SENT_AT_ONCE)

        async def send(step: NodeStep, made: "Submission", cluster: int) -> None:
            try:
                async with room:
                    await self._client.spools.send(made.queued(proc, cluster) for proc in range(made.count))
            except ClientError as error:
                refused[step] = str(error)

        async with asyncio.TaskGroup() as tasks:
            for step, (made, cluster) in sending.items():
                tasks.create_task(send(step, made, cluster))
        return refused

    async def _send_left(self) -> None:
        """
        Send the files of jobs that an earlier process has submitted, and then it was killed: they are held until these come.
        """
        waiting = self._of_nodes(f"HoldReasonCode =?= {HoldCode.SpoolingInput:d}")
        held = await self._client.jobs(waiting, projection=["ClusterId", STEP])
        clusters = {step_in(str(ad[STEP])): int(str(ad["ClusterId"])) for ad in held}
        prepared = await self._prepared([*clusters])
        sending = {
            step: (each, clusters[step]) for step, each in prepared.items() if not isinstance(each, Exception)
        }
        for step, reason in (await self._send(sending)).items():
            _log.warning("%s: %s", step_text(self._source.workflow, step), reason)

    async def _fetch_results(self, nodes: Collection[int]) -> None:
        """
        Bring here what nodes have left, for those that come after them; it stays there, for a process that comes after this one.
        """
        clusters = self._files.progress.clusters
        new = [node for node in nodes if node in clusters and node not in self._fetched]
        if new:
            select = Select(clusters=[clusters[node] for node in new])
            await self._client.spools.fetch(select, keep=True)
            self._fetched.update(new)

    async def _fetch_all(self) -> None:
        """Bring here what all nodes have left, so that it is fetched with what this job leaves."""
        try:
            await self._client.spools.fetch(self._of_nodes())
        except ClientError as error:
            _log.warning("the results of some nodes stay where they are: %s", error)

    def _of_nodes(self, *more: str) -> Select:
        """
        The jobs of the nodes, of which more is true. Anybody may say of a job that it belongs to this workflow: those of its owner do.
        """
        user = self._client.pool.user
        constraint = " && ".join([f"DAGManJobId =?= {self._source.workflow}", *more])
        return Select(owners=[user] if user else [], constraint=constraint)

    async def _remove(self, clusters: list[int]) -> None:
        """Take jobs out of the queue, once each; what this process has not done the next one does again."""
        together: dict[str, list[int]] = {}
        for cluster in clusters:
            if (why := self._to_remove.pop(cluster, None)) is not None:
                together.setdefault(why, []).append(cluster)
        for why, each in together.items():
            reason = f"removed by the workflow of DAG job {self._source.workflow}: {why}"
            await self._client.remove(Select(clusters=each), reason)

    def _stop(self) -> None:
        """The DAG job is held: the status file says so, and its nodes go on without this process."""
        self._files.refresh(time.time(), is_held=True)
        asyncio.get_running_loop().remove_signal_handler(signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)

    # -- files and the ad --------------------------------------------------------------------------------------------

    async def _refresh_files(self) -> None:
        """
        Write the status files that are due, and what was not told yet because it came soon after something else.
        """
        while True:
            again = await asyncio.to_thread(self._files.refresh, time.time())
            if self._untold:
                await self._advertise()
            await asyncio.sleep(min(again or _ADVERTISE_S, _ADVERTISE_S))

    async def _advertise(self, *, last: bool = False) -> None:
        """What the ad of the DAG job says of its nodes, now and then."""
        now = time.monotonic()
        if not last and now - self._advertised < _ADVERTISE_S:
            return
        self._advertised, self._untold = now, False
        with suppress(CommandRefusedError):  # the DAG job may have left
            await self._client.edit_jobs(
                Select(jobs=[JobId(self._source.workflow, 0)]),
                {**attributes(self._files.progress), "JobBatchName": self._source.batch},
            )
