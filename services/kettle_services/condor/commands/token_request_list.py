"""condor_token_request_list."""

import os
import sys
from typing import Final

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.errors import CommandRefusedError
from kettle_services.condor.arguments.grammar import Option, understood
from kettle_services.condor.arguments.tokens import DAEMON, DAEMON_HELP, TokenWords
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError
from kettle_services.condor.printing.token_requests import ads
from kettle_services.condor.printing.whole_ads import FORMS

OPTIONS: Final = DAEMON | {"json": Option(), "reqid": Option(takes=1)}
HELP: Final = {
    "condor_token_request_list": f"""\
usage: condor_token_request_list [options]

The requests for tokens that wait for their approval: all of them for an administrator, for others those for a token of theirs.

  -reqid NUMBER          only this one
  -json                  as JSON
{DAEMON_HELP}""",
}


def run(name: str, words: list[str]) -> int:
    """Show them."""
    wanted, number, as_json = TokenWords(), "", False
    for given in understood(words, OPTIONS):
        match given.name:
            case "reqid":
                number = given.values[0]
            case "json":
                as_json = True
            case _ if not wanted.read(name, given):
                raise WordsError(f"Invalid command line argument: {given.values[0]}")
            case _:
                pass
    client = client_of(CondorConfig(os.environ), pool=wanted.pool)
    try:
        found = client.run(lambda pool: pool.token_requests.waiting())
    except CommandRefusedError as refusal:
        raise ToolError(f"Failed to list token requests: {refusal}") from None
    shown = [each for each in found if number in {"", each.request}]
    if number and not shown:
        raise ToolError(f"Remote daemon did not provide information for request ID {number}.")
    if not shown:
        sys.stderr.write("Remote daemon reports no requests pending.\n")
        return 0
    form = FORMS["json" if as_json else "long"]([])
    sys.stdout.writelines([*form.begin(), *form.add(ads(shown)), *form.end()])
    return 0
