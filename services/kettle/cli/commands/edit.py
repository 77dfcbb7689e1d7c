"""
`kettle edit`.
"""

import argparse
from typing import Final

from kettle.cli.errors import UsageError
from kettle.cli.options import json_option, pool_options, with_pool
from kettle.cli.screen import Screen
from kettle.submit.pace import COMMANDS
from kettle.wire.ads.types import Ad

HELP: Final = """\
Change how fast the jobs of a cluster come into the queue, if they come little by little.

examples:
  kettle edit 12 max_idle=200                 at most 200 of its jobs wait in the queue
  kettle edit 12 max_materialize=1000         at most 1000 of its jobs are in the queue
  kettle edit 12 JobMaterializeMaxIdle=200    the same, by the name of the attribute

To stop it for a while: kettle hold 12; to go on: kettle release 12; to give up what is not made yet: kettle rm 12.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """
    What the command takes.
    """
    parser.add_argument("cluster", type=int, metavar="CLUSTER", help="its number, as in 12")
    parser.add_argument("changes", nargs="+", metavar="NAME=VALUE", help="what it is from now on")
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """
    Have it changed.
    """
    attributes: Ad = dict(_change(text) for text in arguments.changes)
    edited = with_pool(arguments, lambda pool: pool.edit(arguments.cluster, attributes))
    if screen.as_json:
        screen.json({"cluster": edited.cluster, "attributes": attributes})
    else:
        what = ", ".join(f"{name} = {value}" for name, value in attributes.items())
        screen.say(f"Cluster {edited.cluster}: {what}.")
    return 0


def _change(text: str) -> tuple[str, int]:
    name, separator, value = (part.strip() for part in text.partition("="))
    if not separator or not name or not value.isdecimal():
        raise UsageError(f"'{text}' is not NAME=NUMBER, as in max_idle=200")
    return COMMANDS.get(name.lower(), name), int(value)
