"""`kettle login`."""

import argparse
from datetime import datetime
from typing import TYPE_CHECKING, Final

from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import home_option, json_option
from kettle_services.cli.output.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kettle.client.device_login import Tokens

HELP: Final = """\
Sign in at an issuer of tokens: an address and a code are shown, to be confirmed in any browser.  The tokens are kept in
logins of the pool's directory, readable by you only; kettle login --print gives a valid one to programs, renewed if
less than a third of its life is left.

examples:
  kettle login --issuer https://iam.example
  kettle login --issuer https://iam.example --scope 'openid offline_access compute.create'
  BEARER_TOKEN=$(kettle login --issuer https://iam.example --print) program
  kettle login                              where you are signed in
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--issuer", default="", metavar="URL", help="where")
    parser.add_argument("--client", default="kettle", metavar="ID", help="as which program (default: kettle)")
    parser.add_argument(
        "--scope", default="openid offline_access", metavar="SCOPES", help="default: openid offline_access"
    )
    parser.add_argument("--print", action="store_true", help="print a valid access token, without signing in")
    json_option(parser)
    home_option(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Sign in, or show."""
    from kettle.client import home_directory
    from kettle.client.device_login import Issuer, LoginError, TokenFiles

    files = TokenFiles(arguments.home or home_directory())
    if not arguments.issuer:
        return _show(files.all(), screen)
    try:
        if arguments.print:
            screen.say(files.fresh(arguments.issuer).access_token)
            return 0
        issuer = Issuer(arguments.issuer)
        code = issuer.device_code(arguments.client, arguments.scope)
        screen.note(
            f"Open {code.verification_uri_complete or code.verification_uri} and confirm the code {code.user_code}."
        )
        with files.locked(issuer.url):
            tokens = issuer.wait(code, arguments.client)
            files.save(tokens)
    except LoginError as error:
        raise CommandError(str(error)) from error
    if screen.as_json:
        screen.json({"issuer": tokens.issuer, "expires": tokens.expires, "scope": tokens.scope})
    else:
        screen.say(f"You are signed in at {tokens.issuer}.")
    return 0


def _show(logins: "Sequence[Tokens]", screen: Screen) -> int:
    if screen.as_json:
        screen.json(
            [{"issuer": each.issuer, "expires": each.expires, "scope": each.scope} for each in logins]
        )
        return 0
    rows = [
        (each.issuer, f"{datetime.fromtimestamp(each.expires).astimezone():%Y-%m-%d %H:%M:%S}", each.scope)
        for each in logins
    ]
    screen.table(("ISSUER", "TOKEN UNTIL", "SCOPES"), rows)
    return 0
