"""How the parts hang together that serve task queues."""

from collections.abc import Callable
from typing import Any

from kettle.bus.ports import Served
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.eventsourcing.log import ReadableLog
from kettle.runtime import Runtime
from kettle_services.sessions.record import Record
from kettle_services.sessions.settings import SessionsSettings
from kettle_services.sessions.task_queues.access import QueueAccess
from kettle_services.sessions.task_queues.commands import QueueCommands
from kettle_services.sessions.task_queues.engine import QueueEngine
from kettle_services.sessions.task_queues.results import TaskResults
from kettle_services.sessions.task_queues.workers import WorkerQuestions
from kettle_wire.commands import task_queues as commands
from kettle_wire.identity import Identity


def task_queues(
    rt: Runtime,
    settings: SessionsSettings,
    record: Record,
    log: ReadableLog,
    pipeline: CommandPipeline,
    administers: Callable[[Identity], bool],
) -> list[Served[Any, Any]]:
    """What is asked of task queues; their leases end by a loop of `rt`."""
    engine = QueueEngine(
        record, lease=settings.tasks_lease, keep=settings.tasks_keep, most=settings.keep_most
    )
    rt.loop(engine.run(), name="task leases")
    access = QueueAccess(engine, administers)
    asked = QueueCommands(engine, access, limit=settings.tasks_queues, most=settings.tasks_kept * 1024 * 1024)
    results = TaskResults(engine, access, log)
    return [
        pipeline.command(commands.CREATE_TASKS, asked.create),
        pipeline.command(commands.ADD_TASKS, asked.add),
        pipeline.command(commands.CANCEL_TASKS, asked.cancel),
        pipeline.query(commands.LIST_TASKS, asked.list_queues),
        pipeline.query(commands.SHOW_TASKS, asked.show),
        pipeline.query(commands.READ_TASK_RESULTS, results.page),
        pipeline.query(commands.EXPLAIN_TASK, results.explain),
        pipeline.command(commands.TASK_WORKER, WorkerQuestions(engine).asks),
    ]
