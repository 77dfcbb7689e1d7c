"""condor_qusers: who has jobs in the queue, and how many."""

import os
import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig
from kettle.client.short_lived import ShortLivedClient
from kettle.terminal.text import visible_ads
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood
from kettle_services.condor.arguments.jobs import both, checked, owner
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError
from kettle_services.condor.printing import options
from kettle_services.condor.printing.options import PRINTING, Printing
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus
from kettle_wire.commands.queue import Select

if TYPE_CHECKING:
    from kettle.client import Client

OPTIONS: Final = PRINTING | {
    "add": Option(),
    "constraint": Option(takes=1),
    "debug": Option(),
    "disable": Option(),
    "edit": Option(),
    "enable": Option(),
    "name": Option(takes=1),
    "pool": Option(takes=1),
    "projects": Option(letters=True),
    "reason": Option(takes=1),
    "remove": Option(),
    "usage": Option(),
    "user": Option(takes=1),
}
HELP: Final = {
    "condor_qusers": f"""\
usage: condor_qusers [options] [USER ...]

Who has jobs in the queue, and how many of each status: everybody, or those who are named.

  -user USER             the same as USER
  -constraint EXPRESSION those for whose record it is true, as in 'NumHeld > 0'
{options.HELP}\
  -name SCHEDD, -pool P  whose queue
  -debug                 changes nothing here
""",
}
_REFUSED: Final = {
    "add": "who has an account at the access point may submit",
    "disable": "a submit requirement of the schedd refuses somebody's jobs; max_jobs_per_owner limits them",
    "edit": "records of users have no attributes of their own",
    "enable": "who has an account at the access point may submit",
    "projects": "accounting groups are shown by condor_userprio -grouprollup",
    "reason": "nobody is disabled here",
    "remove": "a user is there as long as jobs of his are",
    "usage": "condor_userprio -usage, and kettle usage, tell what was used",
}
_LAYOUT: Final = """\
SELECT
   User         AS USER      WIDTH AUTO
   OsUser       AS OS_USER   WIDTH AUTO
   NumIdle      AS JOBS:Idle WIDTH AUTO PRINTF %9d
   NumRunning   AS Running   WIDTH AUTO PRINTF %7d
   NumHeld      AS '   Held' WIDTH AUTO PRINTF %7d
   NumRemoved   AS Removed   WIDTH AUTO PRINTF %7d
   NumCompleted AS Completed WIDTH AUTO PRINTF %9d
"""
_ASKED: Final = ("Owner", "User", "JobStatus")
_COUNTED: Final = {
    JobStatus.IDLE: "NumIdle",
    JobStatus.RUNNING: "NumRunning",
    JobStatus.REMOVED: "NumRemoved",
    JobStatus.COMPLETED: "NumCompleted",
    JobStatus.HELD: "NumHeld",
    JobStatus.SUSPENDED: "NumSuspended",
}


class _Wanted(msgspec.Struct):
    """What was typed."""

    printing: Printing
    users: list[str] = []
    constraint: str = ""
    name: str = ""
    pool: str = ""


def run(_name: str, words: list[str]) -> int:
    """Show them."""
    wanted = _Wanted(Printing())
    for given in understood(words, OPTIONS):
        if not wanted.printing.read_option(given):
            _take(wanted, given)
    client = client_of(CondorConfig(os.environ), pool=wanted.pool, name=wanted.name)
    ads = _chosen(_records(client, wanted.users), wanted.constraint)
    if wanted.printing.said:
        wanted.printing.show(lambda _names: ads)
    else:
        sys.stdout.writelines(_table(ads))
    return 0


def _take(wanted: _Wanted, given: TypedOption) -> None:
    match given.name:
        case "" | "user":
            wanted.users.append(owner(given.values[0]))
        case "constraint":
            wanted.constraint = both(wanted.constraint, checked(given.values[0]))
        case "name" | "pool" as name:
            setattr(wanted, name, given.values[0])
        case refused if refused in _REFUSED:
            raise ToolError(f"condor_qusers: -{refused} is not carried out: {_REFUSED[refused]}")
        case _:
            pass


def _records(client: ShortLivedClient, users: Sequence[str]) -> list[Ad]:
    """Counted page by page, because a queue may be long."""
    counts: dict[str, Counter[str]] = {}
    called: dict[str, str] = {}

    async def count(pool: "Client") -> None:
        counts.clear()  # it may be asked again
        async for page in pool.pages(Select(owners=list(users)), projection=_ASKED):
            for ad in page.jobs:
                name = str(ad.get("Owner"))
                called[name] = str(ad.get("User", name))
                status = (
                    _COUNTED.get(JobStatus(ad["JobStatus"])) if isinstance(ad["JobStatus"], int) else None
                )
                counts.setdefault(name, Counter())[status or "NumIdle"] += 1

    client.run(count)
    return [record(name, called[name], counts[name]) for name in sorted(counts)]


def record(name: str, user: str, counts: Counter[str]) -> Ad:
    """What is known of one, in HTCondor's words."""
    return {
        "MyType": "User",
        "User": user,
        "OsUser": name,
        "Enabled": True,
        **{attribute: counts[attribute] for attribute in _COUNTED.values()},
        "NumJobs": counts.total(),
    }


def _chosen(ads: list[Ad], constraint: str) -> list[Ad]:
    if not constraint:
        return ads
    from kettle_services.condor.printing.values import AdRow

    return [ad for ad in ads if AdRow(ad).meets(constraint)]


def _table(ads: Sequence[Ad]) -> list[str]:
    from kettle_services.condor.printing.print_format import print_format_of
    from kettle_services.condor.printing.print_table import PrintTable

    return list(PrintTable(print_format_of(_LAYOUT, "condor_qusers")).lines(visible_ads(ads)))
