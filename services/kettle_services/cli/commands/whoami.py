"""`kettle whoami`."""

import argparse
from datetime import datetime
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.client import ClientError, PoolUnreachableError
from kettle_services.cli.errors import CommandError
from kettle_services.cli.options import json_option, reach_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.commands.iam import Whoami
from kettle_wire.commands.rights import RIGHTS_AT, RightAt, Rights

if TYPE_CHECKING:
    from kettle.client import Client

HELP: Final = """\
Who iam takes you for; and what you may do at a service, as that service says it, with the line of the rule that decides.  With
a token it is what the token is for.  Lists that are not in force yet are tried with: kettle iam test --login NAME --service SERVICE.

examples:
  kettle whoami
  kettle whoami --at schedd --at negotiator     the levels that you have there
  kettle whoami --at all
  kettle whoami --may schedd.submit             whether you may send this command, and why
  kettle whoami --may startd.drain --name n17   of a pool's many startds, one
"""
_ALL: Final = "all"


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    wanted = parser.add_mutually_exclusive_group()
    wanted.add_argument("--may", default="", metavar="COMMAND", help="such as schedd.submit")
    wanted.add_argument(
        "--at",
        action="append",
        default=[],
        choices=[*RIGHTS_AT, _ALL],
        metavar="SERVICE",
        help=f"{', '.join(RIGHTS_AT)}, or all; may be repeated",
    )
    parser.add_argument("--name", default="", metavar="NAME", help="of the service, if the pool has several")
    json_option(parser)
    reach_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Ask."""
    if arguments.may:
        role, _, verb = arguments.may.partition(".")
        right = _rights(arguments, role, verb or arguments.may).rights[0]
        _show_right(arguments.may, right, screen)
        return 0 if right.allowed else 1
    if arguments.at:
        return _at(arguments, screen)
    try:
        who = with_pool(arguments, _who)
    except PoolUnreachableError as error:
        raise CommandError(
            f"{error}; services say themselves what you may do: kettle whoami --at all"
        ) from error
    _show(who, screen)
    return 0


def _at(arguments: argparse.Namespace, screen: Screen) -> int:
    everywhere = _ALL in arguments.at
    roles = [role for role in RIGHTS_AT if role != "startd"] if everywhere else arguments.at
    found: list[Rights] = []
    for role in roles:
        try:
            found.append(_rights(arguments, role))
        except ClientError as error:
            if not everywhere:
                raise
            screen.note(f"{role}: {error}")
    if screen.as_json:
        screen.json(found)
        return 0
    rows = [
        (each.service, right.level, "yes" if right.allowed else "no", right.missing or right.rule)
        for each in found
        for right in each.rights
    ]
    screen.table(("SERVICE", "LEVEL", "YOURS", "BECAUSE"), rows)
    return 0


async def _who(client: "Client") -> Whoami:
    if not client.pool.token:
        return await client.iam.whoami()
    from kettle.client.held_rights import holder_of

    return msgspec.convert(holder_of(client.pool), Whoami, from_attributes=True)


def _rights(arguments: argparse.Namespace, role: str, *commands: str) -> Rights:
    async def asked(client: "Client") -> Rights:
        found = await client.rights.at(role, name=arguments.name, commands=commands)
        if not client.pool.token:
            return found
        from kettle.client.held_rights import as_held

        return as_held(client.pool, found)

    return with_pool(arguments, asked)


def _show(who: Whoami, screen: Screen) -> None:
    if screen.as_json:
        screen.json(who)
        return
    screen.say(f"{who.subject}, known by {who.method}{f' from {who.issuer}' if who.issuer else ''}")
    if who.banned:
        screen.say(f"Banned: {who.banned}.")
    if who.expires:
        screen.say(f"Until {datetime.fromtimestamp(who.expires).astimezone():%Y-%m-%d %H:%M:%S}.")
    screen.table(("MAY", "BECAUSE"), [(right.level, right.because) for right in who.levels])


def _show_right(command: str, right: RightAt, screen: Screen) -> None:
    if screen.as_json:
        screen.json(right)
        return
    verdict = "allowed" if right.allowed else "refused"
    screen.say(f"{command}: {verdict}; it takes {right.level}: {right.rule}.")
    if right.missing:
        screen.say(f"What is missing: {right.missing}.")
