"""condor_token_fetch."""

import os
from typing import Final

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.errors import CommandRefusedError
from kettle_services.condor.arguments.grammar import Option, understood
from kettle_services.condor.arguments.tokens import DAEMON, DAEMON_HELP, LIMITS, PLACE, TokenWords
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError

OPTIONS: Final = LIMITS | PLACE | DAEMON | {"key": Option(takes=1), "remote": Option()}
HELP: Final = {
    "condor_token_fetch": f"""\
usage: condor_token_fetch [options]

Has the pool make a token for you, and prints it: who shows it is taken for you.  Without -authz it is good for READ and WRITE;
an administrator gets one for more with -authz ADMINISTRATOR.

  -authz LEVEL           limit it to a level; may be given several times
  -lifetime SECONDS      how long it is valid; the pool may say less
  -token NAME            write it into this file of the token directory, SEC_TOKEN_DIRECTORY
  -file FILE             write it into this file
  -key NAME              which key of the pool signs it (POOL)
  -remote                changes nothing here
{DAEMON_HELP}""",
}


def run(name: str, words: list[str]) -> int:
    """Fetch it."""
    wanted, key = TokenWords(), ""
    for given in understood(words, OPTIONS):
        if given.name == "key":
            key = given.values[0]
        elif given.name != "remote" and not wanted.read(name, given):
            raise WordsError(f"Invalid command line argument: {given.values[0]}")
    wanted.require_place(name)
    client = client_of(CondorConfig(os.environ), pool=wanted.pool)
    try:
        made = client.run(
            lambda pool: pool.token_requests.fetch(
                levels=wanted.levels, lifetime=wanted.lifetime or 0, key=key
            )
        )
    except CommandRefusedError as refusal:
        raise ToolError(f"Failed to request a session token: {refusal}") from None
    wanted.put(name, made.token)
    return 0
