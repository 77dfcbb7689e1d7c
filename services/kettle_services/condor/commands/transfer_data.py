"""condor_transfer_data."""

import os
import sys
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig, user_identity
from kettle.client.errors import ClientError
from kettle_services.condor.arguments.grammar import Option, understood
from kettle_services.condor.arguments.jobs import JobSelection
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError, WordsError

OPTIONS: Final = {
    "all": Option(),
    "constraint": Option(takes=1),
    "debug": Option(),
    "name": Option(takes=1),
    "pool": Option(takes=1),
}
HELP: Final = {
    "condor_transfer_data": """\
usage: condor_transfer_data [options] ID|USER ...

Fetch what jobs left at the access point whose files were sent there with condor_submit -spool, to where their descriptions
say. Those that have ended then leave the queue.

  -all                    all of yours
  -constraint EXPRESSION  those for whose ads it is true; of what was named only those
  -name SCHEDD, -pool P   whose queue
""",
}


class _Wanted(msgspec.Struct):
    """What was typed."""

    chosen: JobSelection
    everything: bool = False
    name: str = ""
    pool: str = ""


def run(_name: str, words: list[str]) -> int:
    """Fetch."""
    wanted = _wanted(words)
    knobs = CondorConfig(os.environ)
    client = client_of(knobs, pool=wanted.pool, name=wanted.name)
    chosen = wanted.chosen
    if wanted.everything or not (chosen.jobs or chosen.clusters or chosen.owners):
        chosen.owners.append(user_identity(client.pool))
    select = chosen.select()
    sys.stdout.write("Fetching data files...\n")
    sys.stdout.flush()
    try:
        fetched = client.run(lambda pool: pool.spools.fetch(select))
    except ClientError as error:
        raise ToolError(f"\nERROR: {error}\nERROR: Failed to spool job files.") from error
    named = {*select.jobs, *(job for job in fetched.skipped if job.cluster in select.clusters)}
    if trouble := [job for job in fetched.skipped if job in named]:
        raise ToolError(
            f"ERROR: Job {trouble[0]} was not submitted with -spool, or its files are not all there"
        )
    if gone := [job for job in select.jobs if job not in fetched.jobs]:
        raise ToolError(f"ERROR: Job {gone[0]} not found")
    return 0


def _wanted(words: list[str]) -> _Wanted:
    wanted = _Wanted(chosen=JobSelection())
    for given in understood(words, OPTIONS):
        value = given.values[0] if given.values else ""
        match given.name:
            case "":
                wanted.chosen.take(value)
            case "constraint":
                wanted.chosen.require(value)
            case "all":
                wanted.everything = True
            case "name" | "pool" as name:
                setattr(wanted, name, value)
            case _:
                pass
    if not (wanted.chosen.anything or wanted.everything):
        raise WordsError("You did not specify any jobs: name them, or use -all")
    return wanted
