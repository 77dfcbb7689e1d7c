"""
condor_on, condor_off, condor_restart and condor_reconfig: what the masters of hosts do with their daemons.
"""

import os
import sys
from typing import Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.errors import ClientError
from kettle.client.short_lived import ShortLivedClient
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.arguments.jobs import checked
from kettle_services.condor.arguments.machines import host_of, names_of, one_of
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError
from kettle_wire.commands.master import ControlAction, Controlled, How

_ROLES: Final = ("collector", "master", "negotiator", "schedd", "startd")
_ENDING: Final = {"fast": Option(), "graceful": Option(), "peaceful": Option()}
OPTIONS: Final = {
    "addr": Option(takes=1),
    "all": Option(),
    "constraint": Option(takes=1),
    "daemon": Option(takes=1, also=("subsystem", "subsys")),
    "debug": Option(),
    "name": Option(takes=1),
    "pool": Option(takes=1),
    **{role: Option() for role in _ROLES},
}
_OWN: Final = {"condor_off": _ENDING, "condor_restart": _ENDING}
_ACTIONS: Final[dict[str, tuple[ControlAction, str, str]]] = {
    "condor_on": ("on", "Spawn-All-Daemons", "Spawn-Daemon"),
    "condor_off": ("off", "Kill-All-Daemons", "Kill-Daemon"),
    "condor_restart": ("restart", "Restart", "Restart-Daemon"),
    "condor_reconfig": ("reconfig", "Reconfig", "Reconfig"),
}
"""What is done, and how HTCondor calls it for a whole host and for one daemon."""
_WAYS: Final = {"graceful": "", "fast": "-Fast", "peaceful": "-Peacefully"}
_HELP: Final = """\
usage: {name} [options] [HOST ...]

{what}.
Without a HOST it is about this one.  Only the administrators of a host may do it.  When the command ends it has begun;
condor_status -master and condor_who -daemons tell how far it is.

  -daemon NAME           of this daemon alone: a role as schedd, or schedd.NAME; may be repeated; -subsystem is the same
  -schedd, -startd, -negotiator, -collector   the same as -daemon with these
  -all                   on all hosts of the pool
  -name HOST             the same as HOST
  -constraint EXPRESSION hosts for whose master's ad it is true
{more}  -pool P                of which pool
"""
_MORE: Final = """\
  -graceful              daemons and jobs have their time to end (this is the default)
  -peaceful              jobs that run end by themselves first, however long that takes
  -fast                  at once: jobs get no time to end, and run again elsewhere
"""
_WHAT: Final = {
    "condor_on": "Switch on daemons that condor_off has switched off",
    "condor_off": "Switch daemons off; the master stays, and hears condor_on.  What is off stays off",
    "condor_restart": "Restart the daemons, and with them their master unless some are named",
    "condor_reconfig": "Have daemons read their settings again, and renew those whose settings have changed",
}
HELP: Final = {
    name: _HELP.format(name=name, what=what, more=_MORE if name in _OWN else "")
    for name, what in _WHAT.items()
}


class _Wanted(msgspec.Struct):
    """What was typed."""

    hosts: list[str] = []
    daemons: list[str] = []
    how: How = "graceful"
    everywhere: bool = False
    constraint: str = ""
    pool: str = ""


def run(name: str, words: list[str]) -> int:
    """Send the command to each master; returns 1 if one did not answer or refused."""
    wanted = _Wanted()
    for given in understood(words, OPTIONS | _OWN.get(name, {})):
        _take(name, wanted, given)
    client = client_of(CondorConfig(os.environ), pool=wanted.pool)
    action, whole, single = _ACTIONS[name]
    sent = (single if wanted.daemons else whole) + _WAYS[wanted.how]
    whom = f" for {', '.join(map(_quoted, wanted.daemons))}" if wanted.daemons else ""
    status = 0
    for host, called in _meant(client, wanted):
        try:
            answer = _controlled(client, host, action, wanted)
            refused = _refusals(answer)
        except ClientError as error:
            refused = [str(error)]
        else:
            sys.stdout.write(f'Sent "{sent}" command{whom} to {called}\n')
            for why in answer.warnings:
                sys.stderr.write(f"WARNING: {called}: {why}\n")
        for why in refused:
            sys.stderr.write(f"{name}: {called}: {why}\n")
            status = 1
    return status


def _controlled(client: ShortLivedClient, host: str, action: ControlAction, wanted: _Wanted) -> Controlled:
    return client.run(
        lambda pool: pool.hosts.control(action, host=host, daemons=wanted.daemons, how=wanted.how)
    )


def _take(command: str, wanted: _Wanted, given: TypedOption) -> None:
    value = given.values[0] if given.values else ""
    match given.name:
        case "" | "name":
            wanted.hosts.append(value)
        case "daemon":
            wanted.daemons.append(value.lower())
        case "master" if command == "condor_off":
            raise ToolError(
                "condor_off: -master is not carried out: the master stays, so that condor_on can reach it; leave it out, or "
                "end everything on a host with: kettle down"
            )
        case role if role in _ROLES:
            wanted.daemons.append(role)
        case "fast" | "graceful" | "peaceful" as how:
            wanted.how = how
        case "all":
            wanted.everywhere = True
        case "constraint" | "pool" as name:
            setattr(wanted, name, checked(value) if name == "constraint" else value)
        case "addr":
            raise ToolError(f"{command}: -addr is not carried out; hosts are known by their names")
        case _:
            pass


def _meant(client: ShortLivedClient, wanted: _Wanted) -> list[tuple[str, str]]:
    """The masters, and what they are called."""
    if wanted.everywhere or wanted.constraint:
        found = names_of(client, "DaemonMaster", wanted.constraint)
        if not found:
            raise ToolError(f"no master meets the constraint ({wanted.constraint or 'true'})")
        return [(name, f"master {name}") for name in found]
    if not wanted.hosts:
        return [(host_of(client), "local master")]
    names = [one_of(client, "master", "DaemonMaster", host) for host in wanted.hosts]
    return [(name, f"master {name}") for name in names]


def _refusals(answer: Controlled) -> list[str]:
    return [f"{one.daemon}: {one.why}" for one in answer.switched if one.outcome == "refused"]


def _quoted(name: str) -> str:
    return f'"{name.upper()}"'
