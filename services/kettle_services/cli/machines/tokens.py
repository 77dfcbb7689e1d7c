"""
Join tokens, and who has joined: the part of `kettle worker` and `kettle schedd` that administrators use.
"""

import argparse
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from kettle.auth.private_files import write_private
from kettle.client import Client
from kettle.client.join_tokens import MadeJoinToken
from kettle_services.cli.options import at_least, json_option, login_argument, reach_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.times import span_up_to
from kettle_wire.commands.iam import JoinTokenShown, WorkerShown
from kettle_wire.events.iam import Joins
from kettle_wire.iam_http import token_id

_CREATE: Final = """\
Make a join token and print it: it is shown only once, and only its SHA-256 is kept.  Send it as you would send a password.
If it is used a second time, comes too late or is another's, the machine is refused and the record has an alarm (kettle audit --alarms).

With --into it is not printed but written to a file that its owner alone can read, and the one that was made into that file before is
withdrawn: saying it again leaves one token that is good.
"""


def arguments(parser: argparse.ArgumentParser, joins: Joins) -> None:
    """What `token` takes."""
    commands = parser.add_subparsers(dest="token_what", metavar="COMMAND", required=True)
    form = argparse.RawDescriptionHelpFormatter
    create = commands.add_parser("create", help="make one", description=_CREATE, formatter_class=form)
    if joins == "worker":
        whose = create.add_mutually_exclusive_group()
        whose.add_argument(
            "--own",
            action="store_true",
            help="the machines run your own jobs only: this takes no administrator",
        )
        whose.add_argument(
            "--owner",
            type=login_argument,
            default="",
            metavar="NAME",
            help="whose jobs alone the machines run",
        )
        whose.add_argument(
            "--group",
            type=login_argument,
            default="",
            metavar="NAME",
            help="the accounting group whose jobs alone they run",
        )
    create.add_argument(
        "--lifetime", type=span_up_to("30d"), default=1800.0, metavar="TIME", help="default: 30m"
    )
    create.add_argument(
        "--max-uses", type=at_least(1, 100_000), default=1, metavar="N", help="machines (default: 1)"
    )
    create.add_argument(
        "--into", type=Path, metavar="FILE", help="write it there, and withdraw the one that is there"
    )
    json_option(create)
    reach_options(create)
    shown = commands.add_parser(
        "list", help="those that can be used: of all for administrators, else one's own"
    )
    json_option(shown)
    reach_options(shown)
    revoke = commands.add_parser("revoke", help="withdraw one; machines that have joined stay")
    revoke.add_argument("token", metavar="ID", help="as the list of tokens shows it")
    json_option(revoke)
    reach_options(revoke)


def run(arguments: argparse.Namespace, screen: Screen, joins: Joins) -> int:
    """Make, show or withdraw tokens."""
    match arguments.token_what:
        case "create":
            return _create(arguments, screen, joins)
        case "revoke":
            with_pool(arguments, lambda pool: _revoke(pool, arguments.token))
            return _done(screen, f"The join token {arguments.token} is withdrawn.")
        case _:
            return _show_tokens(arguments, screen, joins)


def _done(screen: Screen, sentence: str) -> int:
    if screen.as_json:
        screen.json({"done": sentence})
    else:
        screen.say(sentence)
    return 0


def _create(arguments: argparse.Namespace, screen: Screen, joins: Joins) -> int:
    async def work(pool: Client) -> MadeJoinToken:
        if getattr(arguments, "own", False):
            return await pool.iam.own_machines.create_join_token(
                lifetime=arguments.lifetime, max_uses=arguments.max_uses
            )
        return await pool.iam.create_join_token(
            joins=joins,
            owner=getattr(arguments, "owner", ""),
            group=getattr(arguments, "group", ""),
            lifetime=arguments.lifetime,
            max_uses=arguments.max_uses,
        )

    into: Path | None = arguments.into
    made = with_pool(arguments, work if into is None else lambda pool: _exchange(pool, into, work))
    if screen.as_json:
        screen.json(
            {
                "id": made.made.token,
                **({"token": made.token} if into is None else {"file": str(into)}),
                "url": made.made.url,
                "expires": made.made.expires,
            }
        )
        return 0
    screen.say(made.token if into is None else f"The join token {made.made.token} is in {into}.")
    screen.note(
        f"It is valid until {_when(made.made.expires)}, for {arguments.max_uses} use(s). On the machine: "
        f"kettle {joins} join {made.made.url} --token-file FILE"
    )
    return 0


async def _exchange(
    pool: Client, into: Path, make: Callable[[Client], Awaitable[MadeJoinToken]]
) -> MadeJoinToken:
    """
    Put a new token into a file, and withdraw the one before it if it still lets machines in: at each moment the file has a good one.
    """
    before = token_id(into.read_text(encoding="ascii", errors="replace")) if into.exists() else ""
    made = await make(pool)
    write_private(into, made.token + "\n")
    if before and before in {each.token for each in await _tokens(pool)}:
        await _revoke(pool, before)
    return made


def _show_tokens(arguments: argparse.Namespace, screen: Screen, joins: Joins) -> int:
    tokens = [each for each in with_pool(arguments, _tokens) if each.joins == joins]
    if screen.as_json:
        screen.json(tokens)
        return 0
    rows = [
        (
            each.token,
            each.joins,
            _whose(each.owner, each.group),
            each.by,
            _when(each.expires),
            f"{len(each.used)} of {each.max_uses}",
        )
        for each in tokens
    ]
    screen.table(("ID", "ADMITS", "FOR JOBS OF", "MADE BY", "UNTIL", "USED"), rows)
    return 0


def show_members(arguments: argparse.Namespace, screen: Screen, joins: Joins) -> int:
    """Who has joined."""
    workers = [each for each in with_pool(arguments, _members) if each.joins == joins]
    if screen.as_json:
        screen.json(workers)
        return 0
    rows = [
        (
            each.worker,
            each.joins,
            _whose(each.owner, each.group),
            _when(each.joined),
            _until(each),
            each.token,
        )
        for each in workers
    ]
    screen.table(("NAME", "IS A", "FOR JOBS OF", "JOINED", "UNTIL", "BY TOKEN"), rows)
    return 0


async def administers(pool: Client, command: str) -> bool:
    """
    Whether a command of administrators may be sent; asked before it is, for a refusal would stand in the record as an alarm.
    """
    return (await pool.rights.may(command)).allowed


async def _members(pool: Client) -> list[WorkerShown]:
    if await administers(pool, "iam.list_workers"):
        return await pool.iam.workers()
    return await pool.iam.own_machines.workers()


async def _tokens(pool: Client) -> list[JoinTokenShown]:
    if await administers(pool, "iam.list_join_tokens"):
        return await pool.iam.join_tokens()
    return await pool.iam.own_machines.join_tokens()


async def _revoke(pool: Client, token: str) -> None:
    if await administers(pool, "iam.revoke_join_token"):
        await pool.iam.revoke_join_token(token)
    else:
        await pool.iam.own_machines.revoke_join_token(token)


def _whose(owner: str, group: str) -> str:
    """Whose jobs a machine takes."""
    return owner or (f"group {group}" if group else "everybody")


def _until(worker: WorkerShown) -> str:
    """When the credential of a machine ends."""
    if not worker.expires:
        return "it leaves"
    return f"{_when(worker.expires)}, renewed" if worker.own else _when(worker.expires)


def _when(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}"
