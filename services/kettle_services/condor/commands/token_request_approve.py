"""condor_token_request_approve."""

import os
import sys
from typing import Final

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.errors import CommandRefusedError
from kettle.client.short_lived import ShortLivedClient
from kettle_services.condor.arguments.grammar import Option, understood
from kettle_services.condor.arguments.tokens import DAEMON, DAEMON_HELP, TokenWords
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError
from kettle_services.condor.printing.token_requests import ads
from kettle_services.condor.printing.whole_ads import FORMS
from kettle_wire.commands.token_requests import TokenRequestShown

OPTIONS: Final = DAEMON | {"reqid": Option(takes=1)}
HELP: Final = {
    "condor_token_request_approve": f"""\
usage: condor_token_request_approve [options]

Shows each request for a token, and approves it if you type yes: then who has asked gets the token.  Anybody may ask for any
token, so have the number told to you by who made the request.  Who is no administrator may approve requests for a token of his.

  -reqid NUMBER          only this one
{DAEMON_HELP}""",
}


def run(name: str, words: list[str]) -> int:
    """Show them, and approve what is to be approved."""
    wanted, number = TokenWords(), ""
    for given in understood(words, OPTIONS):
        if given.name == "reqid":
            number = given.values[0]
        elif not wanted.read(name, given):
            raise WordsError(f"Invalid command line argument: {given.values[0]}")
    client = client_of(CondorConfig(os.environ), pool=wanted.pool)
    try:
        found = client.run(lambda pool: pool.token_requests.waiting())
    except CommandRefusedError as refusal:
        raise ToolError(f"Failed to locate request corresponding to ID {number}: {refusal}") from None
    chosen = [each for each in found if number in {"", each.request}]
    if not chosen:
        raise ToolError(
            f"Remote daemon did not provide information for request ID {number}."
            if number
            else "Remote daemon has no request to approve."
        )
    for each in chosen:
        _approve(client, each)
    return 0


def _approve(client: ShortLivedClient, request: TokenRequestShown) -> None:
    sys.stdout.write(f"Request contents:\n{''.join(FORMS['long']([]).add(ads([request])))}")
    sys.stdout.write("To approve, please type 'yes'\n")
    sys.stdout.flush()
    if sys.stdin.readline().rstrip("\n") != "yes":
        raise ToolError("Request was NOT approved.")
    try:
        client.run(lambda pool: pool.token_requests.approve(request))
    except CommandRefusedError as refusal:
        raise ToolError(f"Failed to approve token request: {refusal}") from None
    sys.stdout.write(f"Request {request.request} approved successfully.\n")
