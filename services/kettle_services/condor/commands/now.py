"""condor_now."""

import os
import sys
from typing import Final

from kettle.client.connections.condor_config import CondorConfig
from kettle_services.condor.arguments.grammar import Option, understood
from kettle_services.condor.arguments.jobs import one_job
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import WordsError

OPTIONS: Final = {"debug": Option(), "name": Option(takes=1), "pool": Option(takes=1)}
HELP: Final = {
    "condor_now": """\
usage: condor_now [options] NOW-JOB VACATE-JOB ...

Run an idle job of yours at once, in the place of running jobs of yours on one machine.  These are asked to end and wait in
the queue; the idle job gets their slot without a negotiation, or what they have together, if they are parts of one slot.
If the machine refuses the job nothing happens, and it says why.

  -name SCHEDD, -pool P  whose queue
""",
}


def run(_name: str, words: list[str]) -> int:
    """Ask for it."""
    named: dict[str, str] = {}
    ids: list[str] = []
    for given in understood(words, OPTIONS):
        if given.name in {"name", "pool"}:
            named[given.name] = given.values[0]
        elif not given.name:
            ids += given.values
    if len(ids) < 2:
        raise WordsError("You must specify both the now-job and (at least one) vacate-job")
    job, *victims = map(one_job, ids)
    client = client_of(CondorConfig(os.environ), **named)
    client.run(lambda pool: pool.run_now(job, victims))
    gone = ", ".join(map(str, victims))
    sys.stdout.write(f"Job {job} runs as soon as {gone} {'is' if len(victims) == 1 else 'are'} gone.\n")
    return 0
