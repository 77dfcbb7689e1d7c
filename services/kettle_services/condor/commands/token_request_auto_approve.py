"""condor_token_request_auto_approve."""

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

OPTIONS: Final = DAEMON | {"lifetime": Option(takes=1), "netblock": Option(takes=1, also=("ne",))}
HELP: Final = {
    "condor_token_request_auto_approve": f"""\
usage: condor_token_request_auto_approve -netblock NETWORK [options]

For some time, has what daemons of new machines of a network ask for themselves approved at once: tokens for condor that are
limited to ADVERTISE_MASTER, ADVERTISE_STARTD and ADVERTISE_SCHEDD.  Do not use it where others have accounts on such machines.

  -netblock NETWORK      such as 192.0.2.0/24
  -lifetime SECONDS      how long (3600)
{DAEMON_HELP}""",
}
_RULE: Final = "=" * 50


def run(name: str, words: list[str]) -> int:
    """Make the rule."""
    wanted, netblock = TokenWords(lifetime=3600), ""
    for given in understood(words, OPTIONS):
        if given.name == "netblock":
            netblock = given.values[0]
        elif not wanted.read(name, given):
            raise WordsError(f"Invalid command line argument: {given.values[0]}")
    if not netblock:
        raise ToolError(f"{name}: -netblock argument is required.\nExample: {name} -netblock 192.168.0.0/24")
    lifetime = wanted.lifetime or 0
    if lifetime <= 0:
        raise ToolError(
            "Failed to create new auto-approval rule: Auto-approval rule lifetimes must be greater than zero."
        )
    client = client_of(CondorConfig(os.environ), pool=wanted.pool)
    try:
        client.run(lambda pool: pool.token_requests.auto_approve(netblock, lifetime=lifetime))
        sys.stdout.write(
            f"Successfully installed auto-approval rule for netblock {netblock} with lifetime of"
            f" {lifetime / 3600:.2f} hours\n"
        )
        remaining = client.run(lambda pool: pool.token_requests.waiting())
    except CommandRefusedError as refusal:
        raise ToolError(f"Failed to create new auto-approval rule: {refusal}") from None
    if not remaining:
        sys.stderr.write("Remote daemon reports no un-approved requests pending.\n")
        return 0
    sys.stdout.write(f"The following requests remain after auto-approval rule was installed:\n{_RULE}\n")
    sys.stdout.writelines(FORMS["long"]([]).add(ads(remaining)))
    sys.stdout.write(
        f"{_RULE}\nTo approve these requests, please run condor_token_request_approve manually.\n"
    )
    return 0
