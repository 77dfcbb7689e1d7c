"""
What workers of task queues say and get, by way of their shadows.

A shadow says which run of which job asks, and whose job that is: what a worker says of itself does not count.
"""

from bisect import bisect_right
from typing import Final

import msgspec

from kettle.bus.ports import RefusedError
from kettle.eventsourcing.command_pipeline import Decision
from kettle_services.sessions.domain.task_queues.decisions import (
    ReportError,
    ended,
    is_earlier_run,
    leased,
    not_held,
    of_earlier_runs,
    require_whole,
    returned,
)
from kettle_services.sessions.domain.task_queues.pieces import numbers
from kettle_services.sessions.domain.task_queues.queue import FUNCTION, TaskQueue, evolve
from kettle_services.sessions.task_queues.engine import QueueEngine
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.task_queues import (
    TaskWorkerAnswer,
    TaskWorkerAsks,
    WorkerLease,
    WorkerOrders,
    WorkerReport,
)
from kettle_wire.events.task_queue import QueueTasksLeased, TaskQueueEvent
from kettle_wire.identity import Identity
from kettle_wire.task_queues import LARGEST_PART, TaskRange

_decode: Final = msgspec.json.Decoder(WorkerReport).decode
_encode: Final = msgspec.json.Encoder().encode


class WorkerQuestions:
    """Answers the workers of the queues of one engine."""

    def __init__(self, engine: QueueEngine) -> None:
        self._engine = engine

    async def asks(self, request: TaskWorkerAsks, caller: Identity) -> Decision[TaskWorkerAnswer]:
        """
        What a worker reports is recorded, and it gets more; if it waits and there is nothing, when there is or its time is over.
        """
        del caller
        try:
            report = _decode(request.body)
        except msgspec.MsgspecError as error:
            raise RefusedError(RefusalCode.MALFORMED, f"the report of a worker: {error}") from error
        queue = self._queue(request)
        job, attempt = str(request.job), request.attempt
        self._require_newest(queue, job, attempt, report.number)
        self._engine.hear(queue.id, job, attempt, report.number)
        facts = self._said(queue, job, attempt, report)
        if report.wait and report.want and not report.holds:
            self._engine.settle(queue.id, facts)
            facts = []
            await self._engine.until(
                queue.id, lambda each: bool(each.pending or each.ended), within=report.wait
            )
            queue = self._queue(request)
            self._require_newest(queue, job, attempt, report.number + 1)
        return self._decided(queue, facts, job, attempt, report)

    def _queue(self, request: TaskWorkerAsks) -> TaskQueue:
        queue = self._engine.queues.get(request.queue)
        if queue is None or queue.owner != request.owner:
            raise RefusedError(
                RefusalCode.DENIED,
                f"job {request.job} of {request.owner} works for no task queue of its owner: there is no {request.queue}",
            )
        return queue

    def _require_newest(self, queue: TaskQueue, job: str, attempt: int, number: int) -> None:
        """
        Raise RefusedError: what is said comes late, of a run or with a number before the one that was heard.
        """
        heard = self._engine.heard(queue.id, job)
        if is_earlier_run(queue, job, attempt) or (heard is not None and heard.attempt > attempt):
            raise RefusedError(RefusalCode.DENIED, f"job {job} has begun again: its run {attempt} is over")
        if heard is not None and heard.attempt == attempt and heard.number >= number:
            raise RefusedError(RefusalCode.DENIED, "a later report of this worker has come already")

    def _said(self, queue: TaskQueue, job: str, attempt: int, report: WorkerReport) -> list[TaskQueueEvent]:
        """What is recorded of a report; nothing is changed by it."""
        facts: list[TaskQueueEvent] = []
        now: TaskQueue | None = queue

        def add(fact: TaskQueueEvent | None) -> None:
            nonlocal now
            if fact is not None:
                facts.append(fact)
                now = evolve(now, fact, 0.0)

        for number in of_earlier_runs(queue, job, attempt):
            add(returned(queue, number, f"job {job} has begun again", lost=True))
        for each in report.results:
            try:
                require_whole(each.results, queue.plan.output)
            except ReportError as error:
                raise RefusedError(RefusalCode.MALFORMED, f"lease {each.lease}: {error}") from error
            assert now is not None, "no report has a queue forgotten"
            add(ended(now, each.lease, (job, attempt), each.results))
        assert now is not None, "no report has a queue forgotten"
        for number in not_held(now, job, attempt, report.holds):
            add(returned(now, number, f"job {job} has given them back", lost=False))
        return facts

    def _decided(
        self, queue: TaskQueue, facts: list[TaskQueueEvent], job: str, attempt: int, report: WorkerReport
    ) -> Decision[TaskWorkerAnswer]:
        _, after = self._engine.following(queue.id, facts)
        assert after is not None, "no report has a queue forgotten"
        more = leased(after, job, attempt, report.want, self._engine.workers(queue.id))
        leases: list[WorkerLease] = []
        if more is not None:
            tasks, texts = self._texts(after, more)
            more = msgspec.structs.replace(more, tasks=tasks)
            leases.append(WorkerLease(lease=more.lease, tasks=tasks, texts=texts))
            facts = [*facts, more]
        function = b""
        if report.function and after.plan.kind == "functions" and not after.ended:
            function = self._engine.texts(queue.id, FUNCTION)[0]
        changes, after = self._engine.following(queue.id, facts)
        assert after is not None, "no report has a queue forgotten"
        orders = WorkerOrders(
            plan=after.plan,
            lease_s=self._engine.lease,
            over=bool(after.ended),
            leases=leases,
            function=function,
        )
        answer = TaskWorkerAnswer(_encode(orders))
        return Decision(lambda _position: answer, changes, effect=lambda: self._engine.changed(queue.id))

    def _texts(self, queue: TaskQueue, lease: QueueTasksLeased) -> tuple[list[TaskRange], list[bytes]]:
        """As many of the tasks as are sent at once, and their texts."""
        texts: list[bytes] = []
        tasks: list[TaskRange] = []
        left, begins = LARGEST_PART, [each.first for each in queue.parts]
        for each in lease.tasks:
            first, last = each.first, each.first - 1
            for number in numbers([each]):
                part = queue.parts[bisect_right(begins, number) - 1]
                text = self._engine.texts(queue.id, part.number)[number - part.first]
                left -= len(text)
                if left < 0 and texts:
                    break
                texts.append(text)
                last = number
            if last >= first:
                tasks.append(TaskRange(first, last))
            if left < 0:
                break
        return tasks, texts
