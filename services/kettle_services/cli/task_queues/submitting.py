"""`kettle tasks submit`, `add`, `close` and `workers`."""

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle.client import Client
from kettle.task_queues.reading import TasksError, read_tasks
from kettle.task_queues.worker_jobs import WorkerJobs, description
from kettle.terminal.quantities import counted
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.progress_bars import bars
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.standard_input import standard_input
from kettle_services.cli.task_queues.showing import wait_for_end
from kettle_wire.commands.task_queues import TaskQueueView
from kettle_wire.task_queues import TaskPlan

_INPUT: Final = "-"


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` shows of a queue that was begun."""

    queue: TaskQueueView
    cluster: int | None
    """Of its workers; None: it has none yet."""


def submit(arguments: argparse.Namespace, screen: Screen) -> int:
    """Record the tasks of a file, and have jobs work through them."""
    plan, tasks, jobs = _plan(arguments), _tasks(arguments), _jobs(arguments)

    async def send(pool: Client) -> Submitted:
        chosen = await _not_done(pool, arguments.again, tasks) if arguments.again else tasks
        with bars(screen, "tasks") as bar:
            queue = await pool.tasks.create(
                plan,
                chosen,
                name=arguments.queue_name,
                close=not arguments.open,
                told=lambda each: bar("recorded", each.tasks, len(chosen)),
            )
        return Submitted(queue=queue, cluster=await _begun(pool, queue, jobs))

    made = with_pool(arguments, send)
    if not arguments.wait and screen.as_json:
        screen.json(made)
        return 0
    screen.note(_said(made))
    if not arguments.wait:
        return 0
    return wait_for_end(arguments, made.queue.id, screen)


async def _not_done(pool: Client, name: str, tasks: Sequence[bytes]) -> Sequence[bytes]:
    """The tasks of a file that did not end well in a queue that was begun with it, and is over."""
    queue = await pool.tasks.show(name)
    if queue.state != "ended":
        raise CommandError(f"queue {name} is not over: kettle tasks wait {name}")
    if queue.tasks != len(tasks):
        raise CommandError(
            f"queue {name} had {counted(queue.tasks, 'task')} and the file has {len(tasks):,}: it is not the one that it was begun with"
        )
    done = {each.task async for each in pool.tasks.results(name) if each.ok}
    if len(done) == len(tasks):
        raise CommandError(f"all tasks of queue {name} have ended well: there is nothing to run again")
    return [each for number, each in enumerate(tasks, 1) if number not in done]


def _said(made: Submitted) -> str:
    queue, tasks = made.queue, counted(made.queue.tasks, "task")
    if made.cluster is None:
        return f"Queue {queue.name} has {tasks}, and no worker: kettle tasks workers {queue.name} 2"
    return f"Queue {queue.name} has {tasks}, and cluster {made.cluster} works for it: kettle tasks show {queue.name}"


async def _begun(pool: Client, queue: TaskQueueView, jobs: WorkerJobs) -> int | None:
    """The cluster of new workers."""
    if not jobs.workers:
        return None
    spool = pool.pool.is_elsewhere
    from kettle.client import prepare

    submission = prepare(description(queue.id, queue.name, jobs), source="the workers")
    submitted = await pool.submit(submission, spool=spool)
    if spool:
        await pool.spools.send(submission.queued(proc, submitted.cluster) for proc in range(submitted.count))
    return submitted.cluster


def add(arguments: argparse.Namespace, screen: Screen) -> int:
    """More tasks of a queue that is open."""
    tasks = _tasks(arguments)
    queue = with_pool(arguments, lambda pool: pool.tasks.add(arguments.queue, tasks, close=arguments.close))
    if screen.as_json:
        screen.json(queue)
        return 0
    return screen.done(f"Queue {queue.name} has {counted(queue.tasks, 'task')} now")


def close(arguments: argparse.Namespace, screen: Screen) -> int:
    """No more tasks come."""
    queue = with_pool(arguments, lambda pool: pool.tasks.close(arguments.queue))
    if screen.as_json:
        screen.json(queue)
        return 0
    return screen.done(f"Queue {queue.name} is closed: it is over when all of its tasks have a result")


def workers(arguments: argparse.Namespace, screen: Screen) -> int:
    """More jobs that work for a queue."""
    jobs = _jobs(arguments)

    async def begin(pool: Client) -> Submitted:
        queue = await pool.tasks.show(arguments.queue)
        if queue.state == "ended":
            raise CommandError(f"queue {queue.name} is over: nothing is left to work on")
        return Submitted(queue=queue, cluster=await _begun(pool, queue, jobs))

    made = with_pool(arguments, begin)
    if screen.as_json:
        screen.json(made)
        return 0
    return screen.done(f"Cluster {made.cluster} works for queue {made.queue.name}")


def _plan(arguments: argparse.Namespace) -> TaskPlan:
    try:
        program = shlex.split(arguments.program)
    except ValueError as error:
        raise UsageError(f"--program '{arguments.program}' is no command: {error}") from error
    if arguments.program and not program:
        raise UsageError("--program has no words")
    said = {
        "kind": "lines" if program else "commands",
        "program": program,
        "retries": arguments.retries,
        "wall": arguments.time_limit,
        "output": arguments.output,
    }
    try:
        return msgspec.convert(said, TaskPlan)
    except msgspec.ValidationError as error:
        raise UsageError(f"that is no plan for tasks: {error}") from error


def _tasks(arguments: argparse.Namespace) -> list[bytes]:
    typed = arguments.file == _INPUT
    source = "standard input" if typed else arguments.file
    try:
        data = standard_input().read() if typed else Path(arguments.file).read_bytes()
        return read_tasks(data, source, as_json=arguments.json_lines)
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror}") from error
    except TasksError as error:
        raise UsageError(str(error)) from error


def _jobs(arguments: argparse.Namespace) -> WorkerJobs:
    return WorkerJobs(
        workers=arguments.workers,
        cpus=arguments.cpus,
        memory=arguments.memory,
        disk=arguments.disk,
        idle=arguments.idle,
        more=arguments.append,
    )
