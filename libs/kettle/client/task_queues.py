"""
Task queues, as people and programs ask for them.

    async with Client.connect() as pool:
        queue = await pool.tasks.create(TaskPlan(), [b"./fit 1", b"./fit 2"])
        await pool.submit(description(queue.id, queue.name, WorkerJobs(workers=2)))  # kettle.task_queues.worker_jobs
        async for result in pool.tasks.results(queue.id):
            ...
"""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from kettle.bus.ports import Rep, Req
from kettle.client.connections.transport import Requests, new_id
from kettle.client.errors import PoolUnreachableError
from kettle.client.sessions import PATIENCE_S, NoSessionServiceError
from kettle.client.task_results import TaskResult, results_of
from kettle_wire.commands import task_queues as wire
from kettle_wire.commands.task_queues import TaskQueueView, TaskResultsPage, TaskView
from kettle_wire.endpoint import Endpoint
from kettle_wire.task_queues import LARGEST_PART, MOST_AT_ONCE, TaskPlan

_SLACK_S: Final = 10.0
_LOOK_S: Final = 1.0
"""Between two looks of who is told how far a queue is."""


class TaskQueueClient:
    """
    Asks the service that has the task queues. Every method raises NoSessionServiceError where there is none.
    """

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def create(
        self,
        plan: TaskPlan,
        tasks: Sequence[bytes] = (),
        *,
        name: str = "",
        function: bytes = b"",
        close: bool = True,
        told: Callable[[TaskQueueView], None] | None = None,
    ) -> TaskQueueView:
        """
        A new queue with these tasks, which are recorded when this returns; `close`: no more come; `told`: as of `add`.

        Nothing of it runs without workers, which are jobs (`kettle.task_queues.worker_jobs`).
        """
        request = wire.CreateTaskQueue(id=new_id(), name=name or None, plan=plan, function=function)
        queue = (await self.ask(wire.CREATE_TASKS, request)).queue
        return await self.add(queue.id, tasks, close=close, told=told) if tasks or close else queue

    async def add(
        self,
        queue: str,
        tasks: Sequence[bytes],
        *,
        close: bool = False,
        command: str = "",
        told: Callable[[TaskQueueView], None] | None = None,
    ) -> TaskQueueView:
        """
        Give an own queue more tasks, in parts of which each is recorded at once; `close`: these are the last ones.

        `command`: the id of a repeat, whose parts are those of the first time; `told` is called when a part is recorded.
        """
        command = command or new_id()
        shown: TaskQueueView | None = None
        begin = 0
        while shown is None or begin < len(tasks):
            end, size = begin, 0
            while end < len(tasks) and end - begin < MOST_AT_ONCE:
                size += len(tasks[end])
                if size > LARGEST_PART and end > begin:
                    break
                end += 1
            request = wire.AddTasks(
                id=f"{command}.{begin}"[-64:],
                queue=queue,
                tasks=list(tasks[begin:end]),
                close=close and end == len(tasks),
            )
            shown = (await self.ask(wire.ADD_TASKS, request)).queue
            if told is not None:
                told(shown)
            begin = end
        return shown

    async def close(self, queue: str) -> TaskQueueView:
        """No more tasks come: it is over when all that it has have a result."""
        return await self.add(queue, (), close=True)

    async def cancel(self, queue: str, reason: str = "") -> TaskQueueView:
        """End it, and what runs of it."""
        request = wire.CancelTasks(id=new_id(), queue=queue, reason=reason)
        return (await self.ask(wire.CANCEL_TASKS, request)).queue

    async def list(self, *, everybody: bool = False, ended: bool = False) -> Sequence[TaskQueueView]:
        """One's own, the oldest first."""
        request = wire.ListTaskQueues(everybody=everybody, ended=ended)
        return (await self.ask(wire.LIST_TASKS, request)).queues

    async def show(self, queue: str, *, wait: float = 0.0) -> TaskQueueView:
        """One by its id or name; waits up to `wait` seconds for its end."""
        request = wire.ShowTaskQueue(queue=queue, wait=wait)
        return await self.ask(wire.SHOW_TASKS, request, wait=wait)

    async def wait(
        self,
        queue: str,
        *,
        within: float | None = None,
        told: Callable[[TaskQueueView], None] | None = None,
    ) -> TaskQueueView:
        """
        How a queue is when it is over, or when so many seconds have passed; `told` is called with how it is each second until then.
        """
        end = None if within is None else time.monotonic() + within
        longest = wire.LONGEST_WAIT_S if told is None else _LOOK_S
        while True:
            left = longest if end is None else max(0.0, end - time.monotonic())
            shown = await self.show(queue, wait=min(left, longest))
            if told is not None:
                told(shown)
            if shown.state == "ended" or left <= 0:
                return shown

    async def page(self, queue: str, after: int = 0, *, wait: float = 0.0) -> TaskResultsPage:
        """Results behind a place that an earlier page named; waits up to `wait` seconds for some."""
        request = wire.ReadTaskResults(queue=queue, after=after, wait=wait)
        return await self.ask(wire.READ_TASK_RESULTS, request, wait=wait)

    async def results(self, queue: str, *, follow: bool = False) -> AsyncIterator[TaskResult]:
        """Each result, once, in the order in which they were recorded; `follow`: until the queue is over."""
        after, more = 0, True
        while more:
            page = await self.page(queue, after, wait=wire.LONGEST_WAIT_S if follow else 0.0)
            for batch in page.batches:
                for result in results_of(batch):
                    yield result
            after, more = page.after, page.more or (follow and page.queue.state != "ended")

    async def explain(self, queue: str, task: int) -> TaskView:
        """How one task is, and why."""
        return await self.ask(wire.EXPLAIN_TASK, wire.ExplainTask(queue=queue, task=task))

    async def ask(self, endpoint: Endpoint[Req, Rep], request: Req, *, wait: float = 0.0) -> Rep:
        """What the service answers; for who makes the ids of commands. Raises NoSessionServiceError."""
        patience = max(min(self._requests.transport.patience, PATIENCE_S), wait + _SLACK_S)
        try:
            return await self._requests.ask(endpoint, request, patience=patience, deadline=wait + _SLACK_S)
        except PoolUnreachableError as error:
            raise NoSessionServiceError(error) from error
