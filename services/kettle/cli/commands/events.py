"""
`kettle events`: what happened to a job, from the record.
"""

import argparse
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from kettle.cli.errors import UsageError
from kettle.cli.options import json_option, pool_options, with_pool
from kettle.cli.screen import Screen
from kettle.cli.spans import day, duration, moment
from kettle.cli.timeline import Line, lines
from kettle.client import Client, ClientError, JobEvent, job_id

HELP: Final = """\
What happened to a job, from the event log: each event with its time and how long after the one before it came.

examples:
  kettle events 12.3
  kettle events 12.3 -f            go on as it happens, until the job has ended
  kettle events 12 --json          one JSON object per event; 12 means job 12.0
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """
    What the command takes.
    """
    parser.add_argument("job", metavar="JOB", help="CLUSTER.PROC, as in 12.3")
    parser.add_argument(
        "-f", "--follow", action="store_true", help="go on as it happens, until the job has ended"
    )
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """
    Show the events.
    """
    try:
        job = job_id(arguments.job)
    except ClientError as error:
        raise UsageError(str(error)) from error

    async def show(pool: Client) -> None:
        shown = Timeline(screen)
        async for event in pool.follow(job) if arguments.follow else _all(await pool.events(job)):
            shown.add(event)

    with_pool(arguments, show)
    return 0


async def _all(events: list[JobEvent]) -> AsyncIterator[JobEvent]:
    for event in events:
        yield event


class Timeline:
    """
    Prints events as they are added.
    """

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._events: list[JobEvent] = []
        self._day = ""

    def add(self, event: JobEvent) -> None:
        """
        Print one more.
        """
        if self._screen.as_json:
            told = msgspec.to_builtins(event.event)
            self._screen.json_line({"at": event.at, "stream": event.stream, "version": event.version, **told})
            return
        self._events.append(event)
        *_, line = lines(self._events)
        if (date := day(line.at)) != self._day:
            self._day = date
            self._screen.say(self._screen.paint(date, "dim"))
        self._screen.say(_row(line, self._screen))
        self._screen.flush()


def _row(line: Line, screen: Screen) -> str:
    after = f"+{duration(line.after)}" if line.after else ""
    return (
        f"{moment(line.at)}  {screen.paint(f'{after:>11}', 'dim')}  "
        f"{screen.paint(f'{line.name:<10}', line.style)}  {line.sentence}"
    )
