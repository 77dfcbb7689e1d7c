"""What several subcommands take, and how they reach the pool."""

from __future__ import annotations

import argparse
import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kettle_services.cli.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from kettle.client import Client, Select

T = TypeVar("T")


class Arguments(Protocol):
    """A parser, or a group of its arguments."""

    def add_argument(self, *names: str, **options: Any) -> object:
        """See argparse."""
        ...


def at_least(least: int, most: int | None = None) -> Callable[[str], int]:
    """The type of an argument that is a whole number, not less than `least` and not more than `most`."""
    where = f"from {least} on" if most is None else f"from {least} to {most}"

    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least or (most is not None and int(text) > most):
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number {where}")
        return int(text)

    return number


def login_argument(text: str) -> str:
    """The type of an argument that is a login name, or nobody's."""
    if not (text.isascii() and text.isprintable() and " " not in text):
        raise argparse.ArgumentTypeError(f"'{text}' is no login name: it has no blanks, and letters of ASCII")
    return text


def word_argument(text: str) -> str:
    """The type of an argument that is a word of which a name of a file is made, or empty."""
    if text and not (text.isascii() and text.replace("_", "a").isalnum() and len(text) <= 64):
        raise argparse.ArgumentTypeError(
            f"'{text}' is no name: it has letters, digits and _, at most 64 of them"
        )
    return text


def seconds(text: str) -> float:
    """The type of an argument that is a time span."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds")
    return value


def pool_options(parser: argparse.ArgumentParser) -> None:
    """Which pool, and how long to wait for it."""
    reach_options(parser).add_argument(
        "--name",
        default="",
        metavar="SCHEDD",
        help="whose queue, if the pool has several schedds (default: schedd)",
    )


def reach_options(parser: argparse.ArgumentParser) -> Arguments:
    """Where the pool is, and how long to wait for it; the group of these options, for more of them."""
    group = parser.add_argument_group("pool")
    home_option(group)
    group.add_argument(
        "--patience",
        type=seconds,
        default=30.0,
        metavar="SECONDS",
        help="how long to keep asking a pool that does not answer (default: 30)",
    )
    return group


def home_option(parser: Arguments) -> None:
    """The directory of the pool."""
    parser.add_argument(
        "--home",
        type=Path,
        metavar="DIR",
        help="the pool's directory (default: $KETTLE_HOME, else ~/.kettle)",
    )


def recorded_options(parser: argparse.ArgumentParser) -> None:
    """A simulated pool in the place of a real one."""
    group = parser.add_argument_group("a simulated pool")
    simulated_option(group)
    group.add_argument(
        "--at",
        default="",
        metavar="TIME",
        help="as it was so long after it began, as in 90s or 2h30m (default: at its end)",
    )


def simulated_option(parser: Arguments) -> None:
    """The events of a simulated pool in the place of the log of a real one."""
    parser.add_argument(
        "--simulated",
        type=Path,
        metavar="DIRECTORY",
        help="answer from the events of a simulated pool, as kettle simulate run --events has written them",
    )


def now_of(arguments: argparse.Namespace) -> float:
    """
    The moment that the command is about, in seconds since the epoch: now, but for a simulated pool.

    Call it after the question: what a simulated pool has as its end is known by then.
    """
    if getattr(arguments, "simulated", None) is None:
        return time.time()
    moment: float = arguments.recorded_at
    return moment


def json_option(parser: argparse.ArgumentParser) -> None:
    """Output for programs."""
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def attributes_option(parser: argparse.ArgumentParser, what: str) -> None:
    """What is shown of each."""
    parser.add_argument(
        "--attributes", default="", metavar="A,B,...", help=f"these attributes, one {what} per line"
    )


def attributes_of(arguments: argparse.Namespace) -> list[str]:
    """The attributes that were named."""
    return [name.strip() for name in arguments.attributes.split(",") if name.strip()]


def everybody_option(parser: argparse.ArgumentParser) -> None:
    """
    Jobs of all users are looked at; where jobs are acted on `--all` are one's own, so that this has a word that is longer.
    """
    parser.add_argument(
        "--all-users", "--all", dest="all", action="store_true", help="everybody's jobs, not only yours"
    )


def job_options(parser: argparse.ArgumentParser, *, verb: str, then: str = "") -> None:
    """Which jobs; `then`: what stands behind their ids, among which the command has to look for it."""
    behind = f"; and {then}" if then else ""
    parser.add_argument(
        "ids",
        nargs="*",
        metavar=f"ID|{then}" if then else "ID",
        help=f"{verb} CLUSTER or CLUSTER.PROC, as in 12 or 12.3{behind}",
    )
    parser.add_argument(
        "--owner",
        action="append",
        default=[],
        metavar="NAME",
        help="the jobs of this person; may be repeated",
    )
    parser.add_argument(
        "--constraint",
        default="",
        metavar="EXPR",
        help="only jobs for whose ad this ClassAd expression is true, as in 'RequestMemory > 2048'",
    )
    parser.add_argument(
        "--jobset", default="", metavar="NAME", help="only jobs of this set (jobset in their description)"
    )


def selection(arguments: argparse.Namespace) -> Select:
    """The jobs that were named; raises UsageError for what is no id, or a condition that is no expression."""
    from kettle.client import ClientError, select

    if arguments.constraint:
        from kettle.classad import ClassAdParseError, parse

        try:
            parse(arguments.constraint)
        except ClassAdParseError as error:
            raise UsageError(f"the constraint '{arguments.constraint}' cannot be read: {error}") from error
    constraint = arguments.constraint
    if arguments.jobset:
        from kettle.classad.printing import quoted_string

        of_set = f"JobSetName == {quoted_string(arguments.jobset)}"
        constraint = f"({constraint}) && {of_set}" if constraint else of_set
    try:
        return select(*arguments.ids, owners=arguments.owner, constraint=constraint)
    except ClientError as error:
        raise UsageError(str(error)) from error


def with_pool(arguments: argparse.Namespace, work: Callable[[Client], Coroutine[Any, Any, T]]) -> T:
    """
    What the pool answers.  Questions need no event loop; what does need one begins with `Client.connection`.
    """
    if getattr(arguments, "simulated", None) is not None:
        from kettle_services.cli.simulation.recorded_pool import with_recorded

        return with_recorded(arguments, work)
    from kettle.client.connections.locating import locate
    from kettle.client.short_lived import ShortLivedClient

    pool = locate(os.environ, home=arguments.home).at(getattr(arguments, "name", ""))
    return ShortLivedClient(pool, arguments.patience).run(work)
