"""`kettle credential`: tokens of services that the pool keeps for your jobs."""

import argparse
import sys
from datetime import datetime
from pathlib import Path
from typing import Final

from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import json_option, reach_options, with_pool, word_argument
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Tokens of services that the pool keeps for your jobs, enciphered, and gives to nobody else.  A job has one with
use_oauth_services = SERVICE in its description, in the file $_CONDOR_CREDS/SERVICE.use.

examples:
  kettle credential store box --file answer.json    with a refresh_token in it the pool gets access tokens for the jobs
  pass show box | kettle credential store box       a token, from standard input
  kettle credential store box --handle work --file token
  kettle credential list
  kettle credential remove box
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    commands = parser.add_subparsers(dest="what", metavar="COMMAND", required=True)
    store = commands.add_parser("store", help="keep one, in the place of the one before")
    store.add_argument("--file", default="-", metavar="FILE", help="where it is; default: standard input")
    remove = commands.add_parser("remove", help="keep it no longer")
    shown = commands.add_parser("list", help="yours; what is in them is not shown")
    for each in (store, remove):
        each.add_argument("service", type=_service, metavar="SERVICE")
        each.add_argument(
            "--handle", type=word_argument, default="", metavar="NAME", help="one of several of a service"
        )
    for each in (store, remove, shown):
        json_option(each)
        reach_options(each)


def _service(text: str) -> str:
    if not text or text.startswith("_"):
        raise argparse.ArgumentTypeError(
            f"'{text}' is no name of a service: it begins with a letter or a digit"
        )
    return word_argument(text)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Do it."""
    service, handle = getattr(arguments, "service", ""), getattr(arguments, "handle", "")
    match arguments.what:
        case "store":
            try:
                file = arguments.file
                text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                why = error.strerror if isinstance(error, OSError) else "it is no text"
                raise UsageError(f"{arguments.file} cannot be read: {why}") from error
            if not text.strip():
                raise UsageError(
                    f"{'standard input' if file == '-' else file} is empty: there is no token in it"
                )
            with_pool(arguments, lambda pool: pool.iam.store_credential(service, text, handle=handle))
            return _done(screen, f"The credential of {service} is stored.")
        case "remove":
            with_pool(arguments, lambda pool: pool.iam.remove_credential(service, handle=handle))
            return _done(screen, f"The credential of {service} is kept no longer.")
        case _:
            return _show(arguments, screen)


def _done(screen: Screen, sentence: str) -> int:
    if screen.as_json:
        screen.json({"done": sentence})
    else:
        screen.say(sentence)
    return 0


def _show(arguments: argparse.Namespace, screen: Screen) -> int:
    found = with_pool(arguments, lambda pool: pool.iam.credentials())
    if screen.as_json:
        screen.json(found)
        return 0
    rows = [
        (
            each.service,
            each.handle,
            each.kind,
            f"{datetime.fromtimestamp(each.stored).astimezone():%Y-%m-%d %H:%M:%S}",
        )
        for each in found.credentials
    ]
    screen.table(("SERVICE", "HANDLE", "KIND", "STORED"), rows)
    for name, where in found.services.items():
        screen.note(
            f"{name}: with a refresh token the pool gets access tokens for jobs{f'; {where}' if where else ''}"
        )
    return 0
