"""`kettle login`."""

import argparse
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import home_option, json_option
from kettle_services.cli.output.screen import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kettle.client.connections.pool_file import PoolFile
    from kettle.client.device_login import Tokens

HELP: Final = """\
Sign in at an issuer of tokens: an address and a code are shown, to be confirmed in any browser.  The tokens are kept in
logins of the pool's directory, readable by you only; kettle login --print gives a valid one to programs, renewed if
less than a third of its life is left.

examples:
  kettle login --pool https://pool.example        then submit to that pool from here
  kettle login --issuer https://iam.example
  kettle login --issuer https://iam.example --scope 'openid offline_access compute.create'
  BEARER_TOKEN=$(kettle login --issuer https://iam.example --print) program
  kettle login                              where you are signed in
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--issuer", default="", metavar="URL", help="where")
    parser.add_argument(
        "--pool",
        default="",
        metavar="URL",
        help="the address of a pool: it is kept for all later commands, and its issuer is the one to sign in at",
    )
    parser.add_argument(
        "--ca",
        default="",
        metavar="FILE",
        help="certificate of the authority of this address, if it is the site's own",
    )
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

    home = arguments.home or home_directory()
    files = TokenFiles(home)
    if not (arguments.issuer or arguments.pool):
        return _show(files.all(), screen)
    try:
        if arguments.print:
            screen.say(files.fresh(arguments.issuer).access_token)
            return 0
        way = _Way.of(arguments, home)
        issuer = Issuer(way.issuer)
        code = issuer.device_code(arguments.client, arguments.scope, way.audience)
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
        screen.say(f"You are signed in at {tokens.issuer}{way.owner(tokens.access_token, home)}.")
    return 0


class _Way(NamedTuple):
    """Where to sign in, and for which pool."""

    issuer: str
    audience: str = ""
    pool: "PoolFile | None" = None

    @classmethod
    def of(cls, arguments: argparse.Namespace, home: Path) -> "_Way":
        if not arguments.pool:
            return cls(arguments.issuer)
        from kettle.auth.private_files import private_directory
        from kettle.client.connections import way_in
        from kettle.client.connections.pool_file import FILE

        said = way_in.asked(arguments.pool, arguments.ca)
        chosen = arguments.issuer or (next(iter(said.issuers)) if len(said.issuers) == 1 else "")
        if not said.issuers:
            raise CommandError(
                f"nobody signs in for the pool {said.pool}: it takes tokens of no issuer but its own; have an administrator make "
                "you a token, and set BEARER_TOKEN_FILE to its file, or name an issuer in [iam.issuers]"
            )
        if chosen not in said.issuers:
            accepted = ", ".join(said.issuers)
            raise CommandError(
                f"say at which issuer: --issuer URL; the pool {said.pool} takes tokens of {accepted}"
            )
        pool = way_in.kept(said, arguments.pool, private_directory(home))
        if not (home / FILE).exists():
            pool.save(home)
        return cls(chosen, said.issuers[chosen][0], pool)

    def owner(self, token: str, home: Path) -> str:
        if self.pool is None:
            return ""
        from kettle.client.connections.credentials import owner_of

        return f", and are {owner_of(self.pool, token, home)} in the pool {self.pool.pool}"


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
