"""Looking after one attempt of a job of several nodes: each node as an attempt of its own, and all as one."""

import asyncio
import logging
from functools import partial
from typing import Final

import msgspec

from kettle.bus.ports import RefusedError
from kettle.jobs.nodes import of_node, waits_for_all
from kettle.tasks.reading import FOLDED
from kettle.transfer.submit_side_paths import NULL
from kettle_services.shadow.attempts.attempt import AttemptFollower
from kettle_services.shadow.attempts.submit_side import AttemptContext
from kettle_services.shadow.domain.gang import decided, together, with_others
from kettle_wire.attempts import AttemptResult, Ending, Usage
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.attempt_reports import (
    AttemptReport,
    Began,
    Continued,
    Ended,
    Saved,
    Stepped,
    Suspended,
    Told,
    Used,
)
from kettle_wire.commands.node_reports import NodeBegan, NodeEnded
from kettle_wire.commands.shadow import Assignment

_log: Final = logging.getLogger(__name__)


class NodeReports:
    """The reports about one node: what they mean for the job, the gang decides."""

    def __init__(self, gang: "GangFollower", number: int) -> None:
        self._gang = gang
        self._number = number

    def queue_report(self, report: AttemptReport) -> asyncio.Future[None]:
        """Take a report; the future is done when what it means for the job is recorded."""
        return self._gang.hear(self._number, report)


class GangFollower:
    """
    All nodes of one attempt; `run` returns when its end is recorded.

    The results of a node stay on its machine until then, so that the next shadow of the attempt knows all of them.
    """

    def __init__(self, assignment: Assignment, side: AttemptContext) -> None:
        self.assignment: Final = assignment
        self._side = side
        self._waits_for_all = waits_for_all(assignment.ad)
        self._nodes: Final = [
            AttemptFollower(
                node_assignment(assignment, number),
                msgspec.structs.replace(side, reporter=NodeReports(self, number)),
            )
            for number in range(1 + len(assignment.nodes))
        ]
        self._following: dict[int, asyncio.Task[None]] = {}
        self._began: dict[int, Began] = {}
        self._used: dict[int, Usage] = {}
        self._results: dict[int, AttemptResult] = {}
        self._recorded: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._over = asyncio.Event()
        """One node has ended in a way that ends the others."""

    def part(self, claim: str) -> AttemptFollower | None:
        """The node that has a claim."""
        return next((node for node in self._nodes if node.assignment.key.claim == claim), None)

    def living(self, number: int) -> Assignment:
        """
        One of the nodes, to have a program run there.

        Raises:
            RefusedError: there is no such node, or it has ended.
        """
        job, last = self.assignment.job, len(self._nodes) - 1
        if number > last:
            raise RefusedError(
                RefusalCode.NOT_FOUND, f"job {job} has no node {number}: its nodes are 0 to {last}"
            )
        if number in self._results:
            raise RefusedError(RefusalCode.REFUSED, f"node {number} of job {job} has ended")
        return self._nodes[number].assignment

    async def run(self) -> None:
        """Have all nodes run, end them together, and have the end recorded."""
        async with asyncio.TaskGroup() as tasks:
            self._following = {
                number: tasks.create_task(node.run())
                for number, node in enumerate(self._nodes)
                if number not in self._results
            }
            ending_all = tasks.create_task(self._end_others())
            await asyncio.wait([self._recorded])
            ending_all.cancel()

    async def deactivate(self, ending: Ending, *, hard: bool) -> None:
        """End all nodes that have not ended.  Raises RefusedError."""
        await asyncio.gather(*(node.deactivate(ending, hard=hard) for node in self._living()))

    async def suspend(self, *, suspended: bool, number: int) -> None:
        """Suspend all nodes, or continue them.  Raises RefusedError."""
        await asyncio.gather(*(node.suspend(suspended=suspended, number=number) for node in self._living()))

    def lose(self, claims: list[str], ending: Ending) -> None:
        """These claims are over, with what ran there: nobody will report from them."""
        for number, node in enumerate(self._nodes):
            if node.assignment.key.claim in claims and number not in self._results:
                if (following := self._following.get(number)) is not None:
                    following.cancel()
                self._node_ended(number, AttemptResult(ending=ending))

    def hear(self, number: int, report: AttemptReport) -> asyncio.Future[None]:
        """What one node says."""
        match report.news:
            case Ended(result=result):
                self._node_ended(number, result)
                return asyncio.ensure_future(_recorded(self._recorded))
            case Began() as began:
                return self._node_began(number, began)
            case Used(usage=usage):
                self._used[number] = usage
                return self._report(Used(usage=together(self._used.values())))
            case Told():
                return self._report(report.news)
            case Suspended() | Continued() | Saved() | Stepped() if number == 0:
                return self._report(report.news)
            case _:
                return _done()

    def _living(self) -> list[AttemptFollower]:
        return [node for number, node in enumerate(self._nodes) if number not in self._results]

    def _node_began(self, number: int, began: Began) -> asyncio.Future[None]:
        self._began[number] = began
        own = self._nodes[number].assignment
        told = self._report(NodeBegan(node=number, claim=own.key.claim, slot=own.slot, at=began.at))
        if len(self._began) < len(self._nodes):
            return told
        return self._all_began()

    def _all_began(self) -> asyncio.Future[None]:
        """The job counts as running when all of its nodes do."""
        began = self._began.get(0, Began(pid=0, at=0.0))
        return self._report(msgspec.structs.replace(began, at=max(each.at for each in self._began.values())))

    def _node_ended(self, number: int, result: AttemptResult) -> None:
        if number in self._results:
            return  # it was lost, or says it again
        self._results[number] = result
        self._report(NodeEnded(node=number, result=result))
        end = decided(self._results, len(self._nodes), waits_for_all=self._waits_for_all)
        if end is not None:
            self._over.set()
        if len(self._results) == len(self._nodes):
            assert end is not None, "no node is left to decide"
            if end.done and len(self._began) < len(self._nodes):
                self._all_began()
            usage = together(each.usage for each in self._results.values())
            ended = self._report(Ended(result=msgspec.structs.replace(end, usage=usage)))
            ended.add_done_callback(self._end_recorded)

    def _end_recorded(self, ended: asyncio.Future[None]) -> None:
        if not (ended.cancelled() or self._recorded.done()):
            self._recorded.set_result(None)

    async def _end_others(self) -> None:
        """What is left when one node has decided is ended."""
        await self._over.wait()
        why = with_others(f"job {self.assignment.job} has ended on another of its nodes")
        async with asyncio.TaskGroup() as tasks:
            for node in self._living():
                tasks.create_task(self._end(node, why))

    async def _end(self, node: AttemptFollower, why: Ending) -> None:
        while node in self._living():
            try:
                await node.deactivate(why, hard=False)
            except RefusedError as refusal:
                job = str(self.assignment.job)
                _log.warning("node not ended", extra={"job": job, "cause": str(refusal)})
                await self._side.workers[node.assignment.startd].peer.wait_after_refusal()
            else:
                return

    def _report(
        self,
        news: Began | Saved | Suspended | Continued | Stepped | Ended | Used | Told | NodeBegan | NodeEnded,
    ) -> asyncio.Future[None]:
        own = self.assignment
        report = AttemptReport(job=own.job, attempt=own.attempt, claim=own.key.claim, news=news)
        return self._side.reporter.queue_report(report)


async def _recorded(end: asyncio.Future[None]) -> None:
    """Who waits for the end of the job may stop to; the others wait on."""
    await asyncio.shield(end)


def _done() -> asyncio.Future[None]:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_result(None)
    return future


def node_assignment(assignment: Assignment, number: int) -> Assignment:
    """What one node of a job is to do, as if it were a job of its own."""
    of = partial(msgspec.structs.replace, assignment, nodes=[])
    if not number:
        return of(ad=of_node(assignment.ad, 0))
    node = assignment.nodes[number - 1]
    ad = of_node({**assignment.ad, **node.differs}, number)
    if FOLDED in map(str.lower, ad):
        ad |= dict.fromkeys(("Out", "Err"), NULL)  # its nodes have one file, in which node 0 prints for all
    return of(key=node.key, startd=node.startd, slot=node.slot, ad=ad)
