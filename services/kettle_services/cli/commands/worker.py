"""`kettle worker`: machines that join the pool by a token."""

import argparse
import asyncio
import socket
from datetime import datetime
from pathlib import Path
from typing import Final

from kettle.client import Client, home_directory
from kettle_services.cli.errors import CommandError, UsageError
from kettle_services.cli.options import at_least, home_option, json_option, reach_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.times import span_argument

HELP: Final = """\
Machines that join the pool by one command.  An administrator makes a join token; it lets one machine in, within half an hour,
and is to be kept like a password.  The machine makes its own key, so no secret that lasts is sent anywhere.

examples:
  kettle worker token create                              on the pool: a token for one machine
  kettle worker token create --owner ada --max-uses 10    ten machines that run ada's jobs only
  kettle worker token list                                which tokens there are
  kettle worker join https://pool.example/ --token-file t    on the new machine
  kettle worker list                                      who has joined
  kettle worker leave n17                                 empty it, then have its credential be invalid

kettle worker COMMAND --help explains each.
"""

_CREATE: Final = """\
Make a join token and print it: it is shown only once, and only its SHA-256 is kept.  Send it as you would send a password.
If it is used a second time, comes too late or is another's, the machine is refused and the record has an alarm (kettle audit --alarms).
"""

_LOOK_S: Final = 0.5
"""Between two looks at the ads of a machine, which tell of a change when it comes."""

_JOIN: Final = """\
Have this machine join a pool: check that it is the pool of the token, make a key, have the pool admit it, and write the
credential and the settings of a startd into the pool's directory (--home).  Nothing but the key is written before the pool has answered;
if the answer is lost, say it again within a minute.

Start it with `kettle up`, or as a service of the system with `kettle run master`.
"""

_LEAVE: Final = """\
Empty a machine, and when nothing runs on it any more have its credential be invalid, which ends its connection within a second.
Jobs have the machine's retirement time (see kettle drain); if you interrupt the command it goes on emptying, and you can say
it again.  On the machine itself, kettle down then ends what is left.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    form = argparse.RawDescriptionHelpFormatter
    tokens = commands.add_parser("token", help="tokens with which machines join")
    _token_arguments(tokens)
    shown = commands.add_parser("list", help="machines that have joined")
    json_option(shown)
    reach_options(shown)
    join = commands.add_parser(
        "join", help="have this machine join a pool", description=_JOIN, formatter_class=form
    )
    join.add_argument("url", metavar="URL", help="where iam of the pool is, as the token's maker was told")
    given = join.add_mutually_exclusive_group(required=True)
    given.add_argument(
        "--token", default="", metavar="TOKEN", help="the join token; others on this machine can see it"
    )
    given.add_argument("--token-file", type=Path, metavar="FILE", help="a file with it; - is standard input")
    join.add_argument("--name", default=socket.gethostname(), metavar="NAME", help="default: the host's name")
    join.add_argument("--owner", default="", metavar="NAME", help="refuse a token that is of another owner")
    json_option(join)
    home_option(join)
    leave = commands.add_parser(
        "leave", help="empty a machine and remove it", description=_LEAVE, formatter_class=form
    )
    leave.add_argument("worker", metavar="NAME", help="as kettle worker list shows it")
    leave.add_argument(
        "--now", action="store_true", help="do not wait for its jobs: they run elsewhere again"
    )
    json_option(leave)
    reach_options(leave)


def _token_arguments(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="token_what", metavar="COMMAND", required=True)
    form = argparse.RawDescriptionHelpFormatter
    create = commands.add_parser("create", help="make one", description=_CREATE, formatter_class=form)
    create.add_argument("--owner", default="", metavar="NAME", help="whose jobs alone the machines run")
    create.add_argument("--lifetime", type=span_argument, default=1800.0, metavar="TIME", help="default: 30m")
    create.add_argument("--max-uses", type=at_least(1), default=1, metavar="N", help="machines (default: 1)")
    json_option(create)
    reach_options(create)
    shown = commands.add_parser("list", help="those that can be used")
    json_option(shown)
    reach_options(shown)
    revoke = commands.add_parser("revoke", help="withdraw one; machines that have joined stay")
    revoke.add_argument("token", metavar="ID", help="as kettle worker token list shows it")
    json_option(revoke)
    reach_options(revoke)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    match arguments.what, getattr(arguments, "token_what", ""):
        case "token", "create":
            return _create(arguments, screen)
        case "token", "revoke":
            with_pool(arguments, lambda pool: pool.iam.revoke_join_token(arguments.token))
            return screen.done(f"The join token {arguments.token} is withdrawn.")
        case "token", _:
            return _show_tokens(arguments, screen)
        case "join", _:
            return _join(arguments, screen)
        case "leave", _:
            return _leave(arguments, screen)
        case _:
            return _show_workers(arguments, screen)


def _create(arguments: argparse.Namespace, screen: Screen) -> int:
    made = with_pool(
        arguments,
        lambda pool: pool.iam.create_join_token(
            owner=arguments.owner,
            lifetime=arguments.lifetime,
            max_uses=arguments.max_uses,
        ),
    )
    if screen.as_json:
        screen.json(
            {
                "id": made.made.token,
                "token": made.token,
                "url": made.made.url,
                "expires": made.made.expires,
            }
        )
        return 0
    screen.say(made.token)
    screen.note(
        f"It is valid until {_when(made.made.expires)}, for {arguments.max_uses} use(s). On the machine: "
        f"kettle worker join {made.made.url} --token-file FILE"
    )
    return 0


def _show_tokens(arguments: argparse.Namespace, screen: Screen) -> int:
    tokens = with_pool(arguments, lambda pool: pool.iam.join_tokens())
    if screen.as_json:
        screen.json(tokens)
        return 0
    rows = [
        (
            each.token,
            each.joins,
            each.owner or "everybody",
            each.by,
            _when(each.expires),
            f"{len(each.used)} of {each.max_uses}",
        )
        for each in tokens
    ]
    screen.table(("ID", "ADMITS", "FOR JOBS OF", "MADE BY", "UNTIL", "USED"), rows)
    return 0


def _show_workers(arguments: argparse.Namespace, screen: Screen) -> int:
    workers = with_pool(arguments, lambda pool: pool.iam.workers())
    if screen.as_json:
        screen.json(workers)
        return 0
    rows = [
        (
            each.worker,
            each.joins,
            each.owner or "everybody",
            _when(each.joined),
            _when(each.expires) if each.expires else "it leaves",
            each.token,
        )
        for each in workers
    ]
    screen.table(("NAME", "IS A", "FOR JOBS OF", "JOINED", "UNTIL", "BY TOKEN"), rows)
    return 0


def _join(arguments: argparse.Namespace, screen: Screen) -> int:
    from kettle.pool.joining import JoinError, join, keep

    home: Path = arguments.home or home_directory()
    token = arguments.token or _read(arguments.token_file)
    try:
        joined = join(arguments.url, token, home=home, name=arguments.name, owner=arguments.owner)
        files = keep(joined, home)
    except JoinError as error:
        raise CommandError(str(error)) from error
    if screen.as_json:
        screen.json({"pool": joined.pool, "worker": joined.worker, "files": [str(path) for path in files]})
        return 0
    screen.say(f"This machine is {joined.worker} of the pool {joined.pool}.")
    screen.note(f"Its credential and settings are in {home}. Start it with: kettle up --home {home}")
    return 0


def _leave(arguments: argparse.Namespace, screen: Screen) -> int:
    async def work(pool: Client) -> None:
        if not arguments.now:
            await pool.connection()
            await _emptied(pool, arguments.worker, screen)
        await pool.iam.remove_worker(arguments.worker)

    with_pool(arguments, work)
    return screen.done(f"The credential of {arguments.worker} is not valid any more.")


async def _emptied(pool: Client, machine: str, screen: Screen) -> None:
    """Drain a machine, if it is there, and wait until no claim is left."""
    busy = await _claimed(pool, machine)
    if busy is None:
        return
    await pool.hosts.drain(machine, reason="it leaves the pool")
    while busy:
        screen.note(f"waiting for {busy} claim(s) on {machine}; --now does not wait")
        before = busy
        while busy == before:
            await asyncio.sleep(_LOOK_S)
            busy = await _claimed(pool, machine)


async def _claimed(pool: Client, machine: str) -> int | None:
    """How many slots of a machine are claimed; None: it is not there."""
    slots = await pool.ads("Machine", projection=["Name", "State"])
    own = [ad for ad in slots if str(ad.get("Name", "")).partition("@")[2] == machine]
    return sum(ad.get("State") in {"Claimed", "Preempting"} for ad in own) if own else None


def _read(path: Path) -> str:
    import sys

    try:
        return (sys.stdin.read() if str(path) == "-" else path.read_text(encoding="ascii")).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read as a join token: {error}") from error


def _when(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}"
