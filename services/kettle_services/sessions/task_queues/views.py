"""Task queues and tasks as people see them."""

from kettle_services.sessions.domain.task_queues.pieces import counted
from kettle_services.sessions.domain.task_queues.queue import TaskQueue
from kettle_wire.commands.task_queues import TaskQueueView, TaskWorkerView

_MICRO = 1e6


def queue_view(queue: TaskQueue, heard: int = 0) -> TaskQueueView:
    """How a queue is; `heard`: how many workers spoke lately."""
    totals = queue.totals
    return TaskQueueView(
        id=queue.id,
        name=queue.name,
        owner=queue.owner,
        plan=queue.plan,
        state=queue.state,
        outcome=queue.outcome,
        reason=queue.cancelled,
        created=queue.created,
        ended=queue.ended,
        tasks=queue.tasks,
        waiting=queue.waiting,
        running=queue.running,
        done=totals.done,
        failed=totals.failed,
        cancelled=totals.cancelled,
        again=totals.again,
        lost=totals.lost,
        wall=totals.wall_us / _MICRO,
        cpu=totals.cpu_us / _MICRO,
        workers=_workers(queue),
        why=_why(queue, heard),
    )


def _workers(queue: TaskQueue) -> list[TaskWorkerView]:
    found: dict[tuple[str, int], tuple[int, float]] = {}
    for each in queue.leases.values():
        tasks, since = found.get((each.job, each.attempt), (0, each.at))
        found[each.job, each.attempt] = tasks + counted(each.pieces), min(since, each.at)
    return [
        TaskWorkerView(job=job, attempt=attempt, tasks=tasks, since=since)
        for (job, attempt), (tasks, since) in sorted(found.items())
    ]


def _why(queue: TaskQueue, heard: int) -> str:
    if queue.ended or queue.leases:
        return ""
    if queue.pending:
        if heard:
            return ""
        return "no worker has asked for its tasks lately: kettle tasks why says how the jobs are that work for it"
    if queue.state == "open":
        return "it is open, and all tasks that it has got have a result: it waits for more, or to be closed"
    return ""
