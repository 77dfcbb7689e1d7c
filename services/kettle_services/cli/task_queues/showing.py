"""`kettle tasks list`, `show`, `wait`, `why` and `cancel`."""

import argparse
import time
from collections.abc import Iterator

import msgspec

from kettle.classad.printing import quoted_string
from kettle.client import Client, select
from kettle.client.explanations.many_jobs import Answers, answers
from kettle.terminal.quantities import counted, duration
from kettle_services.cli.commands.why import show_groups
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.progress_bars import bars, is_watched
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.task_queues.names import task_of
from kettle_wire.commands.task_queues import TaskQueueView, TaskView
from kettle_wire.session_attributes import TASK_QUEUE


def queues(arguments: argparse.Namespace, screen: Screen) -> int:
    """One's own."""
    found = with_pool(
        arguments, lambda pool: pool.tasks.list(everybody=arguments.everybody, ended=arguments.ended)
    )
    if screen.as_json:
        screen.json(found)
        return 0
    if not found:
        screen.note("You have no task queue; kettle tasks submit --help says how to begin one.")
        return 0
    now = time.time()
    titles = ("QUEUE", "OWNER", "STATE", "TASKS", "WAIT", "RUN", "DONE", "FAILED", "AGE", "WHAT")
    screen.table(
        titles,
        [
            (
                each.name,
                each.owner,
                each.outcome or each.state,
                each.tasks,
                each.waiting,
                each.running,
                each.done,
                each.failed,
                duration(now - each.created),
                each.reason or each.why,
            )
            for each in found
        ],
        styles=["dim" if each.ended else "running" if each.running else "idle" for each in found],
        right=frozenset(titles[3:9]),
    )
    return 0


def show(arguments: argparse.Namespace, screen: Screen) -> int:
    """A queue, or a task of it."""
    name, task = task_of(arguments.queue)
    if task is not None:
        return _show_task(with_pool(arguments, lambda pool: pool.tasks.explain(name, task)), screen)
    found = with_pool(arguments, lambda pool: pool.tasks.show(name))
    if screen.as_json:
        screen.json(found)
        return 0
    _say_state(found, screen)
    for what, value in _facts(found):
        screen.say(f"  {what:<10} {value}")
    if found.workers:
        now = time.time()
        screen.say()
        screen.table(
            ("WORKER", "RUN", "TASKS", "FOR"),
            [(each.job, each.attempt, each.tasks, duration(now - each.since)) for each in found.workers],
            right=frozenset({"RUN", "TASKS", "FOR"}),
        )
    return 0


def _say_state(found: TaskQueueView, screen: Screen) -> None:
    how = f"has ended ({found.outcome})" if found.ended else f"is {found.state}"
    why = found.reason or found.why
    screen.say(
        screen.paint(f"Queue {found.name}", "strong")
        + f" ({found.id}) of {found.owner} {how}"
        + (f": {why}" if why else "")
    )


def _facts(found: TaskQueueView) -> Iterator[tuple[str, str]]:
    yield (
        "tasks",
        (
            f"{found.tasks:,}: {found.waiting:,} wait, {found.running:,} with workers, {found.done:,} done, {found.failed:,} failed"
            + (f", {found.cancelled:,} cancelled" if found.cancelled else "")
        ),
    )
    plan = found.plan
    if plan.program:
        yield "program", " ".join(plan.program)
    yield (
        "each",
        (
            f"at most {duration(plan.wall) if plan.wall else 'any time'}, run again {plan.retries} times, "
            f"{plan.output:,} bytes of output kept"
        ),
    )
    if found.again or found.lost:
        yield "again", f"{found.again:,} runs after a failure; {counted(found.lost, 'worker')} lost"
    yield "used", f"{duration(found.cpu)} of processors, {duration(found.wall)} of wall time"
    lasted = (found.ended or time.time()) - found.created
    yield (
        "age",
        duration(lasted)
        + (
            f", {(found.done + found.failed) / lasted:,.0f} tasks a second"
            if found.ended and lasted > 0
            else ""
        ),
    )


def _show_task(found: TaskView, screen: Screen) -> int:
    if screen.as_json:
        screen.json(found)
        return 0
    screen.say(screen.paint(f"Task {found.task} is {found.state}", "strong") + f": {found.why}")
    if found.text:
        screen.say(f"  task       {found.text.decode('utf-8', 'replace')}")
    if found.tries:
        screen.say(f"  failed     {found.tries} times before")
    if found.job:
        screen.say(f"  worker     {found.job}")
    if found.result is not None and found.result.results.wall_us:
        columns = found.result.results
        screen.say(
            f"  used       {columns.cpu_us[0] / 1e6:.6f} s of processors in {columns.wall_us[0] / 1e6:.6f} s"
        )
        if columns.outputs and columns.outputs[0]:
            screen.say()
            screen.block(columns.outputs[0].decode("utf-8", "replace").rstrip("\n"))
    return 0


def wait(arguments: argparse.Namespace, screen: Screen) -> int:
    """Until it is over: 0 if all of its tasks ended well."""
    return wait_for_end(arguments, arguments.queue, screen, within=arguments.limit)


def wait_for_end(
    arguments: argparse.Namespace, queue: str, screen: Screen, within: float | None = None
) -> int:
    """Wait until a queue is over, with a progress bar where a person looks; the exit status of that."""

    async def end(pool: Client) -> TaskQueueView:
        if not is_watched(screen):
            return await pool.tasks.wait(queue, within=within)
        with bars(screen, "tasks") as bar:
            return await pool.tasks.wait(
                queue,
                within=within,
                told=lambda each: bar(each.name, each.done + each.failed + each.cancelled, each.tasks),
            )

    return tell_end(with_pool(arguments, end), screen)


def tell_end(found: TaskQueueView, screen: Screen) -> int:
    """How a queue has ended, and the exit status of who waited for it."""
    if screen.as_json:
        screen.json(found)
    elif found.ended:
        screen.note(
            f"Queue {found.name} has ended ({found.outcome}): {found.done:,} tasks done, {found.failed:,} failed, "
            f"{found.cancelled:,} cancelled"
        )
    else:
        screen.note(f"Queue {found.name} has {found.waiting + found.running:,} tasks left")
    return 0 if found.ended and found.done == found.tasks else 1


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` shows."""

    queue: TaskQueueView
    task: TaskView | None
    workers: Answers
    """Why its jobs are where they are, as `kettle why` tells it."""


def why(arguments: argparse.Namespace, screen: Screen) -> int:
    """Why a queue or a task is as it is, and the jobs that work for it."""
    name, task = task_of(arguments.queue)

    async def ask(pool: Client) -> Why:
        queue = await pool.tasks.show(name)
        one = None if task is None else await pool.tasks.explain(name, task)
        reports = await pool.why_jobs(select(constraint=f"{TASK_QUEUE} == {quoted_string(queue.id)}"))
        return Why(queue=queue, task=one, workers=answers(reports, now=time.time()))

    told = with_pool(arguments, ask)
    if screen.as_json:
        screen.json(msgspec.to_builtins(told))
        return 0
    if told.task is not None:
        _show_task(told.task, screen)
    _say_state(told.queue, screen)
    if told.queue.ended or (told.task is not None and told.task.state not in {"waiting", "running"}):
        return 0
    screen.say()
    if told.workers.groups or told.workers.others:
        show_groups(told.workers, screen)
    else:
        screen.say(f"No job works for it: kettle tasks workers {told.queue.name} 2")
    return 0


def cancel(arguments: argparse.Namespace, screen: Screen) -> int:
    """End queues, and the jobs that work for them."""

    async def end(pool: Client) -> list[TaskQueueView]:
        found = [await pool.tasks.cancel(each, arguments.reason) for each in arguments.queues]
        for each in found:
            await pool.remove(
                select(constraint=f"{TASK_QUEUE} == {quoted_string(each.id)}"), "its task queue was cancelled"
            )
        return found

    found = with_pool(arguments, end)
    if screen.as_json:
        screen.json(found)
        return 0
    for each in found:
        screen.say(f"Queue {each.name} has ended ({each.outcome}): {each.cancelled:,} tasks were not run")
    return 0
