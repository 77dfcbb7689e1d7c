"""condor_q."""

import os
import sys
import time
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.client.connections.condor_config import CondorConfig, user_identity
from kettle.client.short_lived import ShortLivedClient
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood, whole_number
from kettle_services.condor.arguments.jobs import JobSelection, owner
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError
from kettle_services.condor.printing import options
from kettle_services.condor.printing.options import PRINTING, Printing
from kettle_services.condor.printing.queued_jobs import TableChoice
from kettle_wire.commands.queue import Select

if TYPE_CHECKING:
    from kettle_services.condor.printing.queued_jobs import QueuedJobs

_TABLES: Final = ("factory", "grid", "io", "jobset")
"""Options that ask for a table of their own."""
_TIMES: Final = {"cputime": "cpu", "cumulative-time": "wall", "currentrun": "current"}
"""Which time RUN_TIME is."""
_REFUSED: Final = {
    "autocluster": "the negotiator's autoclusters are not kept in the queue; a print format with SELECT UNIQUE counts jobs "
    "that are alike in its columns",
    "goodput": "HTCondor has no such option any more; -af:j CommittedTime RemoteWallClockTime has the figures",
    "unmatchable": "condor_q -better-analyze says of each job how many slots meet its requirements",
}
OPTIONS: Final = PRINTING | {
    "allusers": Option(also=("all", "all-users")),
    "batch": Option(letters=True),
    "constraint": Option(takes=1, also=("c",)),
    "dag": Option(),
    "debug": Option(letters=True),
    "global": Option(also=("g",)),
    "held": Option(also=("hold",)),
    "idle": Option(),
    "jobads": Option(takes=1, letters=True),
    "limit": Option(takes=1),
    "name": Option(takes=1, also=("n",)),
    "nobatch": Option(),
    "pool": Option(takes=1, also=("p",)),
    "run": Option(also=("r", "running")),
    "stream-results": Option(),
    "submitter": Option(takes=1, also=("s",)),
    "totals": Option(),
    "userlog": Option(takes=1),
    "wide": Option(letters=True, also=("w",)),
    "analyze": Option(letters=True),
    "better-analyze": Option(letters=True, also=("better",)),
    **{name: Option(letters=True) for name in (*_TABLES, *_REFUSED)},
    **{name: Option() for name in _TIMES},
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
  -dag                   the same, with the jobs of nodes by their names below the job of their DAG
  -cputime, -currentrun  the same, with the processor time, or with the time of the present run, in the place of all run time
  -factory, -jobset      a line for each cluster whose jobs come into the queue little by little, or for each job set
  -io, -grid             those whose files are being moved, with how much; those of the grid universe
  -totals                only how many there are
  -analyze               why they are where they are, and what would help
  -better-analyze        with their requirements, and how many slots meet each part of them
  -userlog FILE          those of which a job event log tells, as they are by it
  -jobads FILE           those whose ads are in a file
{options.HELP}\
  -name SCHEDD, -pool P  whose queue
  -wide, -debug, -stream-results   change nothing here
""",
}
_CONDITIONS: Final = {
    "grid": "JobUniverse == 9",
    "io": "TransferQueued =?= true || TransferringInput =?= true || TransferringOutput =?= true",
    "idle": "JobStatus == 1",
    "run": "JobStatus == 2 || JobStatus == 7",
    "held": "JobStatus == 5",
}


class _Wanted(msgspec.Struct):
    """What was typed."""

    chosen: JobSelection
    printing: Printing
    shown: TableChoice
    everybody: bool = False
    limit: int = 0
    analysis: str = ""
    """`analyze` or `better-analyze`."""
    name: str = ""
    pool: str = ""
    userlog: str = ""
    jobads: str = ""


def run(_name: str, words: list[str]) -> int:
    """Show the jobs."""
    knobs = CondorConfig(os.environ)
    wanted = _Wanted(JobSelection(), Printing(), TableChoice())
    for given in understood(words, OPTIONS):
        if not wanted.printing.read_option(given):
            _take(wanted, given)
    for option in (wanted.shown.status, wanted.shown.table):
        if option in _CONDITIONS:
            wanted.chosen.require(_CONDITIONS[option])
    layout = wanted.printing.layout
    if layout is not None and layout.where:
        wanted.chosen.require(layout.where)
    if wanted.userlog or wanted.jobads:
        _from_file(wanted)
        return 0
    if not knobs.flag("CONDOR_Q_ONLY_MY_JOBS", default=True):
        wanted.everybody = True
    client = client_of(knobs, pool=wanted.pool, name=wanted.name)
    _from_queue(client, _select(wanted, client), wanted)
    return 0


def _from_file(wanted: _Wanted) -> None:
    from kettle_services.condor.connections.job_files import jobs_in_file

    if wanted.analysis or wanted.shown.table:
        raise ToolError(
            "condor_q: only the jobs of a queue can be analysed, and -factory, -jobset, -io and -grid are about one"
        )
    _show(jobs_in_file(wanted.chosen, wanted.limit, log=wanted.userlog, ads=wanted.jobads), wanted)


def _from_queue(client: ShortLivedClient, select: Select, wanted: _Wanted) -> None:
    if wanted.analysis and not wanted.printing.said:
        _analyse(client, select, wanted)
    elif wanted.shown.totals and not wanted.printing.said:
        _count(client, select)
    else:
        from kettle_services.condor.connections.job_pages import jobs_in_queue

        _show(jobs_in_queue(client, select, wanted.limit), wanted)


def _take(wanted: _Wanted, given: TypedOption) -> None:
    value = given.values[0] if given.values else ""
    match given.name:
        case "" | "submitter" | "constraint":
            _choose(wanted.chosen, given.name, value)
        case "allusers" | "global":
            wanted.everybody = True
            wanted.shown.empty |= given.name == "global"
        case "idle" | "run" | "held":
            wanted.shown.status = given.name
        case "limit":
            wanted.limit = whole_number(given)
        case "analyze" | "better-analyze":
            wanted.analysis = given.name
        case "batch" | "nobatch":
            wanted.shown.batch = given.name == "batch"
        case "dag":
            wanted.shown.dag = True
        case name if name in _REFUSED:
            raise ToolError(f"condor_q: -{name} is not carried out: {_REFUSED[name]}")
        case name:
            _take_other(wanted, name, value)


def _take_other(wanted: _Wanted, name: str, value: str) -> None:
    if name in _TABLES:
        wanted.shown.table = name
    elif name in _TIMES:
        wanted.shown.time_of = _TIMES[name]
    elif name == "totals":
        wanted.shown.totals = True
    elif name in {"name", "pool", "userlog", "jobads"}:
        setattr(wanted, name, value)


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


def _show(jobs: "QueuedJobs", wanted: _Wanted) -> None:
    """In the form that was asked for, or as a table."""
    if wanted.printing.said and wanted.printing.layout is None:
        wanted.printing.show_from(jobs.source)
        return
    from kettle_services.condor.printing.queue_output import write_table

    write_table(jobs, wanted.shown, wanted.printing.layout)


def _count(client: ShortLivedClient, select: Select) -> None:
    from kettle_services.condor.printing import queue_table as tables

    counted = client.run(lambda pool: pool.totals(select))
    head = tables.head(client.pool, time.time())
    sys.stdout.write(f"{head}\n\n{tables.total('query', counted.statuses)}\n")


def _analyse(client: ShortLivedClient, select: Select, wanted: _Wanted) -> None:
    from kettle_services.condor.match_analysis import analysed

    jobs = client.run(lambda pool: pool.jobs(select, limit=wanted.limit))
    whole = wanted.analysis == "better-analyze"
    sys.stdout.writelines(analysed(client, jobs, whole=whole))
