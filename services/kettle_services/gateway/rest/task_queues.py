"""Task queues over HTTP: their service is asked in people's own names, so it decides itself what they may."""

from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from kettle_services.gateway.rest.application import Answer, Asked, Handler
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.idempotency import Repeats, command_id
from kettle_wire.commands import task_queues as wire
from kettle_wire.commands.task_queues import TaskBatch, TaskQueueView
from kettle_wire.rest import task_queues as rest
from kettle_wire.rest.route import Route


class TaskQueueQuestions:
    """Answers them."""

    def __init__(self, people: PersonConnections) -> None:
        self._people: Final = people
        self._repeats: Final = Repeats()

    async def list(self, asked: Asked) -> Answer:
        """All that somebody may see."""
        parameters: rest.ListQueues = asked.parameters
        async with self._people.of(asked.person) as client:
            found = await client.tasks.list(everybody=parameters.everybody, ended=parameters.ended)
        return Answer(rest.Queues(queues=[_shown(each) for each in found]))

    async def create(self, asked: Asked) -> Answer:
        """A new one, and its first tasks."""
        new: rest.NewQueue = asked.body
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        command = command_id(asked)
        request = wire.CreateTaskQueue(id=command, name=new.name, plan=new.plan)
        async with self._people.of(asked.person) as client:
            queue = (await client.tasks.ask(wire.CREATE_TASKS, request)).queue
            if new.tasks or new.close:
                queue = await client.tasks.add(queue.id, _texts(new.tasks), close=new.close, command=command)
        return self._repeats.answered(asked, Answer(_shown(queue), status=201))

    async def get(self, asked: Asked) -> Answer:
        """One."""
        parameters: rest.GetQueue = asked.parameters
        async with self._people.of(asked.person) as client:
            return Answer(_shown(await client.tasks.show(parameters.id)))

    async def add(self, asked: Asked) -> Answer:
        """More tasks."""
        parameters: rest.AddQueueTasks = asked.parameters
        more: rest.MoreTasks = asked.body
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        async with self._people.of(asked.person) as client:
            queue = await client.tasks.add(
                parameters.id, _texts(more.tasks), close=more.close, command=command_id(asked)
            )
        return self._repeats.answered(asked, Answer(_shown(queue)))

    async def cancel(self, asked: Asked) -> Answer:
        """The end of one."""
        parameters: rest.CancelQueue = asked.parameters
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        request = wire.CancelTasks(id=command_id(asked), queue=parameters.id, reason=parameters.reason)
        async with self._people.of(asked.person) as client:
            told = await client.tasks.ask(wire.CANCEL_TASKS, request)
        return self._repeats.answered(asked, Answer(_shown(told.queue)))

    async def task(self, asked: Asked) -> Answer:
        """One task."""
        parameters: rest.GetTask = asked.parameters
        async with self._people.of(asked.person) as client:
            found = await client.tasks.explain(parameters.id, parameters.task)
        return Answer(
            rest.QueueTask(
                queue=found.queue,
                task=found.task,
                state=found.state,
                why=found.why,
                job=found.job,
                tries=found.tries,
                text=found.text.decode("utf-8", "replace"),
                result=None if found.result is None else _batch(found.result),
            )
        )

    async def results(self, asked: Asked) -> Answer:
        """A page of them."""
        parameters: rest.GetTaskResults = asked.parameters
        async with self._people.of(asked.person) as client:
            page = await client.tasks.page(parameters.id, parameters.after)
        batches = [_batch(each) for each in page.batches]
        return Answer(rest.QueueResults(batches=batches, after=page.after, more=page.more))


def task_queue_handlers(people: PersonConnections) -> dict[Route, Handler]:
    """What is asked of task queues."""
    asked = TaskQueueQuestions(people)
    return {
        rest.ADD_QUEUE_TASKS: asked.add,
        rest.BEGIN_QUEUE: asked.create,
        rest.CANCEL_QUEUE: asked.cancel,
        rest.GET_QUEUE: asked.get,
        rest.GET_TASK: asked.task,
        rest.GET_TASK_RESULTS: asked.results,
        rest.LIST_QUEUES: asked.list,
    }


def _texts(tasks: list[str]) -> list[bytes]:
    return [each.encode() for each in tasks]


def _shown(queue: TaskQueueView) -> rest.Queue:
    said: dict[str, Any] = msgspec.to_builtins(queue)
    said["created"] = _moment(queue.created)
    if ended := said.pop("ended", 0.0):
        said["ended"] = _moment(ended)
    said["workers"] = [{**each, "since": _moment(each["since"])} for each in said.get("workers", ())]
    return msgspec.convert(said, rest.Queue)


def _batch(batch: TaskBatch) -> rest.QueueBatch:
    return rest.QueueBatch(at=_moment(batch.at), job=batch.job, results=batch.results, reason=batch.reason)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
