"""condor_q."""

import os
import sys
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig, user_identity
from kettle.client.short_lived import ShortLivedClient
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood, whole_number
from kettle_services.condor.arguments.jobs import JobSelection, owner
from kettle_services.condor.connections.job_pages import job_pages
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError
from kettle_services.condor.printing import options
from kettle_services.condor.printing.options import PRINTING, Printing
from kettle_wire.commands.queue import Select, Unmade

if TYPE_CHECKING:
    from kettle.client.client import Client

OPTIONS: Final = PRINTING | {
    "allusers": Option(also=("all",)),
    "batch": Option(),
    "constraint": Option(takes=1, also=("c",)),
    "dag": Option(),
    "debug": Option(letters=True),
    "global": Option(also=("g",)),
    "held": Option(also=("hold",)),
    "idle": Option(),
    "limit": Option(takes=1),
    "name": Option(takes=1, also=("n",)),
    "nobatch": Option(),
    "pool": Option(takes=1, also=("p",)),
    "run": Option(also=("r", "running")),
    "submitter": Option(takes=1, also=("s",)),
    "totals": Option(),
    "wide": Option(letters=True, also=("w",)),
    "analyze": Option(letters=True),
    "better-analyze": Option(letters=True, also=("better",)),
    **{name: Option() for name in ("cputime", "currentrun", "goodput", "grid", "io")},
    "userlog": Option(takes=1),
    "jobads": Option(takes=1),
}
HELP: Final = {
    "condor_q": f"""\
usage: condor_q [options] [ID|USER ...]

The jobs in the queue: yours, unless some are named as CLUSTER, as CLUSTER.PROC, or by whom they belong to.
Finding none is no failure.

  -allusers, -global     everybody's
  -submitter USER        those of a person
  -constraint EXPRESSION those for whose ads it is true
  -idle, -run, -hold     those that wait, run (with their hosts) or are held (with the reason)
  -limit N               at most so many
  -nobatch               a line for each job, not for each batch
  -totals                only how many there are
  -analyze               why they are where they are, and what would help
  -better-analyze        with their requirements, and how many slots meet each part of them
{options.HELP}\
  -name SCHEDD, -pool P  whose queue
  -wide, -dag, -debug    change nothing here
""",
}
_STATUS: Final = {
    "idle": "JobStatus == 1",
    "run": "JobStatus == 2 || JobStatus == 7",
    "held": "JobStatus == 5",
}
_INSTEAD: Final = {
    "userlog": "condor_wait, or kettle events ID",
}


class _Wanted(msgspec.Struct):
    """What was typed."""

    chosen: JobSelection
    printing: Printing
    everybody: bool = False
    status: str = ""
    limit: int = 0
    totals: bool = False
    analysis: str = ""
    """`analyze` or `better-analyze`."""
    batch: bool = True
    empty: bool = False
    """Whether `-global` was given: then an empty queue has its own message."""
    name: str = ""
    pool: str = ""


def run(_name: str, words: list[str]) -> int:
    """Show the jobs."""
    knobs = CondorConfig(os.environ)
    wanted = _Wanted(JobSelection(), Printing())
    for given in understood(words, OPTIONS):
        if not wanted.printing.read_option(given):
            _take(wanted, given)
    if wanted.status:
        wanted.chosen.require(_STATUS[wanted.status])
    if not knobs.flag("CONDOR_Q_ONLY_MY_JOBS", default=True):
        wanted.everybody = True
    client = client_of(knobs, pool=wanted.pool, name=wanted.name)
    select = _select(wanted, client)
    if wanted.printing.said:
        wanted.printing.show_from(job_pages(client, select, wanted.limit))
    elif wanted.analysis:
        _analyse(client, select, wanted)
    else:
        _table(client, select, wanted)
    return 0


def _take(wanted: _Wanted, given: TypedOption) -> None:
    value = given.values[0] if given.values else ""
    match given.name:
        case "" | "submitter" | "constraint":
            _choose(wanted.chosen, given.name, value)
        case "allusers" | "global":
            wanted.everybody = True
            wanted.empty = wanted.empty or given.name == "global"
        case "idle" | "run" | "held":
            wanted.status = given.name
        case "limit":
            wanted.limit = whole_number(given)
        case "analyze" | "better-analyze":
            wanted.analysis = given.name
        case "totals" | "batch":
            setattr(wanted, given.name, True)
        case "nobatch":
            wanted.batch = False
        case "name" | "pool" as name:
            setattr(wanted, name, value)
        case "dag" | "debug" | "wide":
            pass
        case refused:
            instead = f"; try: {_INSTEAD[refused]}" if refused in _INSTEAD else ""
            raise ToolError(f"condor_q: -{refused} is not carried out by this version of Kettle{instead}")


def _choose(chosen: JobSelection, option: str, value: str) -> None:
    match option:
        case "submitter":
            chosen.owners.append(owner(value))
        case "constraint":
            chosen.require(value)
        case _:
            chosen.take(value)


def _select(wanted: _Wanted, client: ShortLivedClient) -> Select:
    chosen = wanted.chosen
    anybody = wanted.everybody or chosen.jobs or chosen.clusters or chosen.owners
    mine = [] if anybody else [user_identity(client.pool)]
    return Select(
        jobs=chosen.jobs, clusters=chosen.clusters, owners=chosen.owners or mine, constraint=chosen.constraint
    )


def _table(client: ShortLivedClient, select: Select, wanted: _Wanted) -> None:
    from kettle_services.condor.printing import queue_table as tables

    head = tables.head(client.pool, time.time()) + "\n"
    if wanted.totals:
        counted = client.run(lambda pool: pool.totals(select))
        sys.stdout.write(head + "\n" + tables.total("query", counted.statuses) + "\n")
        return
    how = wanted.status if wanted.status in {"run", "held"} else "batch" if wanted.batch else "jobs"
    table, totals = tables.table_of(how), tables.Totals(user_identity(client.pool))
    names = [*dict.fromkeys((*table.attributes, *totals.attributes))]
    unmade: list[Unmade] = []
    begun = False

    async def show(pool: "Client") -> None:
        nonlocal begun
        async with aclosing(pool.pages(select, projection=names, limit=wanted.limit)) as pages:
            async for page in pages:
                unmade.extend(page.unmade)
                if not begun and (page.jobs or not wanted.empty):
                    sys.stdout.writelines((head, *table.begin()))
                    begun = True
                totals.add(page.jobs)
                sys.stdout.writelines(table.add(page.jobs))

    client.run(show)
    if not begun:
        sys.stdout.write("All queues are empty\n")
        return
    sys.stdout.writelines(table.end(unmade))
    sys.stdout.writelines(totals.lines())


def _analyse(client: ShortLivedClient, select: Select, wanted: _Wanted) -> None:
    from kettle_services.condor.match_analysis import analysed

    jobs = client.run(lambda pool: pool.jobs(select, limit=wanted.limit))
    whole = wanted.analysis == "better-analyze"
    sys.stdout.writelines(analysed(client, jobs, whole=whole))
