"""condor_reschedule: there is nothing to do, because each change is published as it happens."""

import os
import sys
from typing import Final

from kettle.client.connections.condor_config import CondorConfig
from kettle_services.condor.arguments.grammar import Option, understood
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError

OPTIONS: Final = {
    "addr": Option(takes=1),
    "all": Option(),
    "constraint": Option(takes=1),
    "debug": Option(),
    "name": Option(takes=1),
    "pool": Option(takes=1),
}
HELP: Final = {
    "condor_reschedule": """\
usage: condor_reschedule [options] [SCHEDD ...]

Nothing has to be rescheduled: a schedd tells the negotiator of each change as it happens, and that begins a negotiation.
The command says whether the schedd answers, and why a job waits is said by condor_q -better-analyze.

  -name SCHEDD           the same as SCHEDD
  -pool P                of which pool
""",
}


def run(_name: str, words: list[str]) -> int:
    """See whether each schedd is there."""
    names: list[str] = []
    pool = ""
    for given in understood(words, OPTIONS):
        match given.name:
            case "" | "name":
                names += given.values
            case "pool":
                pool = given.values[0]
            case "debug":
                pass
            case refused:
                raise ToolError(f"condor_reschedule: -{refused} is not carried out; name the schedd")
    knobs = CondorConfig(os.environ)
    for name in names or [""]:
        client = client_of(knobs, pool=pool, name=name)
        client.run(lambda answering: answering.totals())
        schedd = client.pool.schedd
        sys.stdout.write(
            f"The schedd {schedd} tells the negotiator of each change by itself: nothing to do\n"
        )
    return 0
