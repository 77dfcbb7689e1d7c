"""
`kettle events`: what happened to a job, from the record; or what happens in the pool, as it is published.
"""

import argparse
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from kettle.client import Client, ClientError, CommandRefusedError, JobEvent, Published, Wanted, job_id
from kettle.client.explanations.timeline import TimelineEntry, lines
from kettle.terminal.quantities import counted, day, duration, moment
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import json_option, pool_options, recorded_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.times import FORMS
from kettle_services.cli.times import moment as time_of
from kettle_wire import cloud_events
from kettle_wire.codes import RefusalCode

HELP: Final = """\
What happened to a job, from the event log: each event with its time and how long after the one before it came.
Without a job, what happens in the whole pool, as the gateway publishes it: until Ctrl-C, or with --since and without -f
up to now.

examples:
  kettle events 12.3
  kettle events 12.3 -f            follow new events, until the job has ended
  kettle events 12 --json          one JSON object per event; 12 means job 12.0
  kettle events -f                 everything that happens in the pool
  kettle events --since 10m        what happened in the last ten minutes
  kettle events -f --owner alice --type 'job.*'
  kettle events --job 12 --since 1041 --json
                                   what was published about cluster 12 after place 1041 of the stream, as CloudEvents
  kettle events 12.3 --simulated events
"""

_POOL_WIDE: Final = ("owner", "type", "job_wanted", "since")


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument(
        "job", metavar="JOB", nargs="?", default="", help="CLUSTER.PROC, as in 12.3; left out: the whole pool"
    )
    parser.add_argument(
        "-f", "--follow", action="store_true", help="follow new events, until the job has ended"
    )
    group = parser.add_argument_group("without a job")
    group.add_argument("--owner", default="", metavar="NAME", help="only what happens to this person's jobs")
    group.add_argument(
        "--type", default="", metavar="GLOB", help="only events of this type, as in job.held or 'machine.*'"
    )
    group.add_argument(
        "--job",
        dest="job_wanted",
        default="",
        metavar="ID",
        help="only this cluster or job, as in 12 or 12.3",
    )
    group.add_argument(
        "--since",
        default="",
        metavar="WHEN",
        help=f"begin in the past: a time {FORMS}; or after a place in the stream, as in 1041",
    )
    json_option(parser)
    pool_options(parser)
    recorded_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show the events."""
    if arguments.simulated is not None and (arguments.follow or not arguments.job):
        raise UsageError(
            "of a simulated pool the events of a job are shown, as in kettle events 12.3 --simulated events; all of them: "
            "kettle log show --simulated events"
        )
    if not arguments.job:
        return _pool(arguments, screen)
    if given := [name for name in _POOL_WIDE if getattr(arguments, name)]:
        option = given[0].removesuffix("_wanted")
        raise UsageError(f"--{option} chooses events of the whole pool; leave out the job {arguments.job}")
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


def _pool(arguments: argparse.Namespace, screen: Screen) -> int:
    wanted = _wanted(arguments)
    follow = arguments.follow or not arguments.since

    async def show(pool: Client) -> None:
        shown = Broadcast(screen)
        mine = msgspec.structs.replace(wanted, owner=pool.pool.user)
        try:
            async for event in pool.published(wanted, follow=follow):
                shown.add(event)
        except CommandRefusedError as error:
            if error.code != RefusalCode.NOT_PERMITTED or wanted.owner:
                raise
            screen.note(f"showing the events of {mine.owner}: those of others are not yours to read")
            async for event in pool.published(mine, follow=follow):
                shown.add(event)
        if shown.empty:
            screen.note("Nothing of this was published since then.")

    with_pool(arguments, show)
    return 0


def _wanted(arguments: argparse.Namespace) -> Wanted:
    cluster: int | None = None
    proc: int | None = None
    if arguments.job_wanted:
        try:
            job = job_id(arguments.job_wanted)
        except ClientError as error:
            raise UsageError(f"--job: {error}") from error
        cluster, proc = job.cluster, job.proc if "." in arguments.job_wanted else None
    wanted = Wanted(owner=arguments.owner, kind=arguments.type or "*", cluster=cluster, proc=proc)
    since = arguments.since
    if since.isdecimal():
        return msgspec.structs.replace(wanted, after=int(since))
    return msgspec.structs.replace(wanted, since=_since(since)) if since else wanted


def _since(text: str) -> float:
    """Seconds since the epoch."""
    try:
        return time_of(text, now=datetime.now(UTC)) / 1e6
    except ValueError as error:
        raise UsageError(f"--since: {error}; or a place in the stream, as in 1041") from error


class Timeline:
    """Prints events as they are added."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._events: list[JobEvent] = []
        self._day = ""

    def add(self, event: JobEvent) -> None:
        """Print one more."""
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


class Broadcast:
    """Prints published events as they are added: for programs the messages themselves."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._day = ""
        self.empty = True

    def add(self, published: Published) -> None:
        """Print one more."""
        self.empty = False
        screen, envelope = self._screen, published.envelope
        if screen.as_json:
            screen.octets(published.data + b"\n")
            screen.flush()
            return
        at = datetime.fromisoformat(envelope.time).timestamp()
        if (date := day(at)) != self._day:
            self._day = date
            screen.say(screen.paint(date, "dim"))
        kind = cloud_events.kind_of_type(envelope.type)
        event = cloud_events.event_of(envelope)
        if event is None:
            of = f" of {counted(envelope.jobs, 'job')}" if envelope.jobs else ""
            sentence, style = f"too large to be published{of}; see {envelope.stream} in the log", ""
        else:
            [line] = lines([JobEvent(envelope.stream, envelope.version, int(envelope.frame), at, event)])
            sentence, style = line.sentence, line.style
        about = f"{envelope.owner} {envelope.subject}" if envelope.owner else envelope.subject
        screen.say(f"{moment(at)}  {screen.paint(f'{kind:<17}', style)}  {about:<18}  {sentence}")
        screen.flush()


def _row(line: TimelineEntry, screen: Screen) -> str:
    after = f"+{duration(line.after)}" if line.after else ""
    return (
        f"{moment(line.at)}  {screen.paint(f'{after:>11}', 'dim')}  "
        f"{screen.paint(f'{line.name:<10}', line.style)}  {line.sentence}"
    )
