"""`kettle logout`."""

import argparse
from typing import Final

from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import home_option, json_option
from kettle_services.cli.output.screen import Screen

HELP: Final = """\
Forget the tokens of an issuer, and have the issuer end them if it can.

examples:
  kettle logout --issuer https://iam.example
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--issuer", required=True, metavar="URL", help="where")
    json_option(parser)
    home_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Sign out; what is kept here is removed even if the issuer does not answer."""
    from kettle.client import home_directory
    from kettle.client.device_login import Issuer, LoginError, TokenFiles

    files = TokenFiles(arguments.home or home_directory())
    ended = False
    try:
        with files.locked(arguments.issuer):
            tokens = files.load(arguments.issuer)
            if tokens is None:
                raise CommandError(f"nobody is signed in at {arguments.issuer}; see where: kettle login")
            files.remove(arguments.issuer)
            ended = Issuer(arguments.issuer).revoke(tokens)
    except LoginError as error:
        screen.trouble(f"kettle logout: {error}")
    if screen.as_json:
        screen.json({"issuer": arguments.issuer, "ended": ended})
    else:
        more = "" if ended else "; the issuer may still accept the tokens until they end"
        screen.say(f"You are signed out of {arguments.issuer}{more}.")
    return 0
