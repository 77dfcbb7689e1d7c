"""
condor_vacate: of machines, by their own word; of single slots, by that of the schedd whose job is there.
"""

import os
import sys
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.errors import ClientError
from kettle.client.hosts import Speed
from kettle.client.short_lived import ShortLivedClient
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.arguments.jobs import checked
from kettle_services.condor.arguments.machines import host_of, names_of, slot_of, startd_of
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError
from kettle_wire.commands.queue import Action, Select
from kettle_wire.jobs import JobId

OPTIONS: Final = {
    "addr": Option(takes=1),
    "all": Option(),
    "constraint": Option(takes=1),
    "debug": Option(),
    "fast": Option(),
    "graceful": Option(),
    "name": Option(takes=1),
    "pool": Option(takes=1),
}
HELP: Final = {
    "condor_vacate": """\
usage: condor_vacate [options] [MACHINE|SLOT ...]

Have all jobs leave a machine (this one, if none is named), or the job of a slot.  They go back into the queue, and the
machine takes work again as soon as they are gone.  A machine is emptied for its administrators, a slot for the owner of its
job and for super users of that queue.  Jobs by their ids are for condor_vacate_job.

  -graceful              they have their time to end (this is the default)
  -fast                  they are killed at once
  -name NAME             the same as NAME
  -constraint EXPRESSION machines with slots for whose ads it is true
  -all                   all machines of the pool
  -pool P                of which pool
""",
}
_REASON: Final = "condor_vacate"


class _Wanted(msgspec.Struct):
    """What was typed."""

    names: list[str] = []
    everywhere: bool = False
    constraint: str = ""
    fast: bool = False
    pool: str = ""


def run(_name: str, words: list[str]) -> int:
    """Do it everywhere; 1 if it failed somewhere."""
    wanted = _Wanted()
    for given in understood(words, OPTIONS):
        _take(wanted, given)
    client = client_of(CondorConfig(os.environ), pool=wanted.pool)
    status = 0
    for name in _meant(client, wanted):
        try:
            vacate = _slot if slot_of(name) else _machine
            sys.stdout.write(vacate(client, name, fast=wanted.fast))
        except (ClientError, ToolError) as error:
            sys.stderr.write(f"condor_vacate: {name}: {error}\n")
            status = 1
    return status


def _take(wanted: _Wanted, given: TypedOption) -> None:
    value = given.values[0] if given.values else ""
    match given.name:
        case "" | "name":
            wanted.names.append(value)
        case "all":
            wanted.everywhere = True
        case "constraint":
            wanted.constraint = checked(value)
        case "fast" | "graceful" as how:
            wanted.fast = how == "fast"
        case "pool":
            wanted.pool = value
        case "addr":
            raise ToolError("condor_vacate: -addr is not carried out; machines are known by their names")
        case _:
            pass


def _meant(client: ShortLivedClient, wanted: _Wanted) -> list[str]:
    if wanted.everywhere:
        return names_of(client, "StartDaemon")
    if wanted.constraint:
        ads = client.run(
            lambda pool: pool.ads("Machine", constraint=wanted.constraint, projection=["StartdName"])
        )
        found = sorted({str(ad.get("StartdName", "")) for ad in ads})
        if not found:
            raise ToolError(f"condor_vacate: no slot meets the constraint ({wanted.constraint})")
        return found
    return wanted.names or [host_of(client)]


def _machine(client: ShortLivedClient, name: str, *, fast: bool) -> str:
    """
    It is drained, and takes work again when it is empty: docs/decisions/0061-condor-commands-for-machines.md.
    """
    startd = startd_of(client, name)
    speed: Speed = "fast" if fast else "quick"
    client.run(lambda pool: pool.hosts.drain(startd, speed=speed, reason=_REASON, resume=True))
    return f'Sent "Vacate-All-Claims{"-Fast" if fast else ""}" command to startd {startd}\n'


def _slot(client: ShortLivedClient, name: str, *, fast: bool) -> str:
    from kettle.classad.printing import quoted_string

    asked = f"Name == {quoted_string(name)}"
    names = ["JobId", "RemoteScheddName"]
    ads = client.run(lambda pool: pool.ads("Machine", constraint=asked, projection=names))
    if not ads:
        raise ToolError(f"Can't find address for startd {name}: the pool has no such slot, see condor_status")
    job, schedd = ads[0].get("JobId"), ads[0].get("RemoteScheddName")
    if not isinstance(job, str) or not isinstance(schedd, str):
        raise ToolError("no job runs on it")
    action: Action = "vacate_fast" if fast else "vacate"
    select = Select(jobs=[JobId.parse(job)], constraint=f"RemoteHost == {quoted_string(name)}")
    acted = client.run(lambda pool: pool.at(schedd).act(action, select, _REASON))
    outcomes = {one.outcome for one in acted.outcomes}
    if "denied" in outcomes:
        raise ToolError(f"Permission denied to vacate job {job}")
    if not outcomes & {"done", "already_done"}:
        raise ToolError(f"job {job} has left it meanwhile")
    return f'Sent "Vacate-Claim{"-Fast" if fast else ""}" command to startd {name}\n'
