"""`kettle ban`."""

import argparse
from datetime import datetime
from typing import Final

from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import json_option, reach_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.times import span_up_to

HELP: Final = """\
Let somebody in no more, or see who is banned: sessions end at once and connections within a second, also those of the account on the
pool's machine (except for the one that runs the pool); no token of that person is accepted any more, and machines do not join.
Single levels are taken away with deny.READ, deny.WRITE and so on of [authorization].  For administrators; `kettle unban` lifts a ban.

WHOM is a login name, or one of
  subject:ISSUER,SUB    somebody whom an issuer of tokens calls SUB
  issuer:URL            all whose tokens are of this issuer
  client:ID             a program with a secret of its own
  worker:NAME           a machine: it may not join

examples:
  kettle ban eve --reason 'mines coins'
  kettle ban eve --for 7d
  kettle ban                             who is banned
"""

KINDS: Final = ("user", "subject", "issuer", "client", "worker")


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("whom", metavar="WHOM", nargs="?", default="", help="a login name, or KIND:NAME")
    parser.add_argument("--reason", default="", metavar="TEXT", help="what the banned person is told")
    parser.add_argument(
        "--for", dest="lifetime", type=span_up_to("10000d"), default=0.0, metavar="TIME", help="such as 7d"
    )
    parser.add_argument("--list", action="store_true", help="who is banned")
    json_option(parser)
    reach_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Ban, or show."""
    if not arguments.whom or arguments.list:
        return _show(arguments, screen)
    if arguments.whom == "list":
        raise UsageError("kettle ban, without a name, shows who is banned; somebody called so is user:list")
    whom = named(arguments.whom)
    with_pool(
        arguments, lambda pool: pool.iam.ban(whom, reason=arguments.reason, lifetime=arguments.lifetime)
    )
    if screen.as_json:
        screen.json({"banned": whom})
    else:
        screen.say(f"{whom} is banned.")
    return 0


def named(whom: str) -> str:
    """Whom a word means; without a kind it is a login name."""
    if not (whom.isascii() and whom.isprintable() and " " not in whom):
        raise UsageError(f"'{whom}' names nobody: names have no blanks, and letters of ASCII")
    kind, colon, name = whom.partition(":")
    if not colon:
        return f"user:{whom}"
    if kind not in KINDS or not name:
        raise UsageError(
            f"'{whom}' names nobody: write a login name, or one of {', '.join(KINDS)} with : and a name"
        )
    return whom


def _show(arguments: argparse.Namespace, screen: Screen) -> int:
    bans = with_pool(arguments, lambda pool: pool.iam.bans())
    if screen.as_json:
        screen.json(bans)
        return 0
    rows = [
        (each.whom, each.by, _when(each.at), _when(each.until) if each.until else "lifted", each.reason)
        for each in bans
    ]
    screen.table(("WHOM", "BY", "SINCE", "UNTIL", "REASON"), rows)
    return 0


def _when(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M}"
