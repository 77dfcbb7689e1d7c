"""`kettle tasks results`."""

import argparse

from kettle.client import Client
from kettle.client.task_results import TaskResult
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen


def results(arguments: argparse.Namespace, screen: Screen) -> int:
    """One line for each task that has a result, in the order in which they were recorded."""

    async def read(pool: Client) -> None:
        async for each in pool.tasks.results(arguments.queue, follow=arguments.follow):
            if each.ok and arguments.failed:
                continue
            if screen.as_json:
                screen.json_line(each)
            elif arguments.outputs:
                screen.octets(each.output)
            else:
                screen.say(_line(each))

    with_pool(arguments, read)
    return 0


def _line(each: TaskResult) -> str:
    exit_ = "-" if each.exit is None else str(each.exit)
    said = each.output.decode("utf-8", "replace").split("\n", 1)[0]
    what = each.reason or said
    return (
        f"{each.task:>7}  {exit_:>4}  {each.wall:>10.6f}  {each.cpu:>10.6f}  {each.job:>8}  {what}".rstrip()
    )
