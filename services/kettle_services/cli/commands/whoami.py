"""`kettle whoami`."""

import argparse
from datetime import datetime
from typing import Final

from kettle_services.cli.options import json_option, reach_options, with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.commands.iam import AccessExplained, Whoami

HELP: Final = """\
Who iam takes you for, and what you may do there, with the rule that gives each right; lists of [authorization] are tried with
kettle iam test --login NAME --service SERVICE.

examples:
  kettle whoami
  kettle whoami --may schedd.submit      whether you may send this command, and why
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--may", default="", metavar="COMMAND", help="such as schedd.submit")
    json_option(parser)
    reach_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Ask."""
    if arguments.may:
        action = arguments.may
        answer = with_pool(arguments, lambda pool: pool.iam.explain(action))
        _show_explained(answer, screen)
        return 0 if answer.allowed else 1
    _show(with_pool(arguments, lambda pool: pool.iam.whoami()), screen)
    return 0


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


def _show_explained(answer: AccessExplained, screen: Screen) -> None:
    if screen.as_json:
        screen.json(answer)
        return
    verdict = "allowed" if answer.allowed else "refused"
    screen.say(f"{answer.action}: {verdict}, because {answer.rule}.")
    if answer.missing:
        screen.say(f"What is missing: {answer.missing}.")
