"""condor_history."""

import os
import sys
from collections.abc import Iterator
from itertools import takewhile
from typing import Final

import msgspec

from kettle.client.client import Client
from kettle.client.connections.condor_config import CondorConfig
from kettle.client.errors import ClientError, CommandRefusedError
from kettle.client.jobs.status import id_of
from kettle.terminal.text import visible_ads
from kettle_services.condor.arguments.grammar import Option, TypedOption, understood, whole_number
from kettle_services.condor.arguments.jobs import JobSelection
from kettle_services.condor.connections.pool_client import client_of
from kettle_services.condor.errors import ToolError
from kettle_services.condor.printing import options as asked
from kettle_services.condor.printing.options import PRINTING, Printing
from kettle_services.condor.printing.values import number
from kettle_wire.ads.types import Ad
from kettle_wire.commands.queue import Select
from kettle_wire.endpoint import Position
from kettle_wire.jobs import JobId

_RUNS: Final = "no ads of single runs are kept: kettle events ID tells what each run of a job did"
_REFUSED: Final = {
    "daemon": "daemons keep no history of themselves; kettle log show and kettle logs have what they recorded and wrote",
    "directory": "there are no files of single jobs or runs; write the ids of the jobs instead",
    "epochs": _RUNS,
    "extract": "write the ads that are wanted into a file with -long, which -file reads",
    "search": "there are no files of single jobs or runs; -file FILE reads one file of ads",
    "startd": "machines keep no history; -constraint with LastRemoteHost finds the jobs of one",
    "transfer-history": _RUNS,
    "type": _RUNS,
}
"""What else there is for what an option asks."""
OPTIONS: Final = PRINTING | {
    "allusers": Option(also=("all",)),
    "backwards": Option(),
    "completedsince": Option(takes=1),
    "constraint": Option(takes=1, also=("c",)),
    "debug": Option(letters=True),
    "file": Option(takes=1),
    "forwards": Option(),
    "limit": Option(takes=1),
    "local": Option(),
    "match": Option(takes=1),
    "name": Option(takes=1, also=("n",)),
    "pool": Option(takes=1, also=("p",)),
    "scanlimit": Option(takes=1),
    "schedd": Option(),
    "since": Option(takes=1),
    "stream-results": Option(letters=True),
    "userlog": Option(takes=1),
    "wide": Option(letters=True, also=("w",)),
    **{name: Option(letters=True) for name in _REFUSED},
}
HELP: Final = {
    "condor_history": f"""\
usage: condor_history [options] [ID|USER ...]

Jobs that have left the queue, everybody's, the newest first; or those that are named as CLUSTER, as CLUSTER.PROC, or by
whom they belong to.  Finding none is no failure.

  -limit N, -match N     at most so many
  -constraint EXPRESSION those for whose ads it is true
  -since ID|EXPRESSION   those that left the queue after that job, or after the newest for which it is true
  -completedsince TIME   those that left the queue then or later (seconds since the epoch)
  -forwards              the oldest first
  -file FILE             those whose ads are in a file, which has the newest last: of HTCondor, or of -long, -json or -xml
  -userlog FILE          those of which a job event log tells
  -scanlimit N           look at no more than so many jobs of a file
{asked.HELP}\
  -name SCHEDD, -pool P  of which pool
  -backwards, -local, -schedd, -stream-results, -wide, -debug   change nothing here
""",
}
_ASKED: Final = 10
"""About so many jobs the schedd is asked, one by one."""
_TITLE: Final = " ID     OWNER          SUBMITTED   RUN_TIME     ST COMPLETED   CMD"


class _Wanted(msgspec.Struct):
    """What was typed."""

    chosen: JobSelection
    printing: Printing
    limit: int = 0
    since: float | None = None
    newer_than: Select | None = None
    """Only the jobs that left after the newest of these."""
    forwards: bool = False
    name: str = ""
    pool: str = ""
    file: str = ""
    userlog: str = ""
    scanlimit: int = 0


def run(_name: str, words: list[str]) -> int:
    """Show the jobs."""
    wanted = _Wanted(JobSelection(), Printing())
    for given in understood(words, OPTIONS):
        if not wanted.printing.read_option(given):
            _take(wanted, given)
    if wanted.printing.said:
        wanted.printing.show(lambda _names: _jobs(wanted))
    else:
        sys.stdout.writelines(_table(visible_ads(_jobs(wanted))))
    return 0


def _jobs(wanted: _Wanted) -> list[Ad]:
    """The jobs in their order: of a pool, or of a file."""
    if wanted.file or wanted.userlog:
        return _in_file(wanted)
    client = client_of(CondorConfig(os.environ), pool=wanted.pool, name=wanted.name)
    return client.run(lambda pool: _found(pool, wanted))


def _in_file(wanted: _Wanted) -> list[Ad]:
    """From the end of the file on, or from its beginning."""
    from kettle_services.condor.connections.job_files import ads_of_file, jobs_of_log, meant

    every = jobs_of_log(wanted.userlog) if wanted.userlog else ads_of_file(wanted.file)
    every = every if wanted.forwards else every[::-1]
    every = every[: wanted.scanlimit] if wanted.scanlimit else every
    if (newer := wanted.newer_than) is not None:
        last = JobSelection(newer.jobs, newer.clusters, newer.owners, newer.constraint)
        every = list(takewhile(lambda ad: not meant([ad], last), every))
    since = wanted.since
    ads = [ad for ad in meant(every, wanted.chosen) if since is None or number(ad, "CompletionDate") >= since]
    return ads[: wanted.limit] if wanted.limit else ads


def _take(wanted: _Wanted, given: TypedOption) -> None:
    match given.name:
        case "":
            wanted.chosen.take(given.values[0])
        case "constraint":
            wanted.chosen.require(given.values[0])
        case "limit" | "match":
            wanted.limit = whole_number(given)
        case "completedsince":
            wanted.since = float(whole_number(given))
        case "since":
            wanted.newer_than = _newest(given.values[0])
        case "forwards":
            wanted.forwards = True
        case "name" | "pool" | "file" | "userlog" as name:
            setattr(wanted, name, given.values[0])
        case "scanlimit":
            wanted.scanlimit = whole_number(given)
        case name if name in _REFUSED:
            raise ToolError(f"condor_history: -{name} is not carried out: {_REFUSED[name]}")
        case _:
            pass


def _newest(text: str) -> Select:
    """The job, the jobs of the cluster, or those that meet the condition that `-since` names."""
    cluster, _, proc = text.partition(".")
    if cluster.isdecimal() and proc.isdecimal():
        return Select(jobs=[JobId(int(cluster), int(proc))])
    if text.isdecimal():
        return Select(clusters=[int(text)])
    chosen = JobSelection()
    chosen.require(text)
    return Select(constraint=chosen.constraint)


async def _found(pool: Client, wanted: _Wanted) -> list[Ad]:
    """Those that were asked for, newer than what `-since` names; if that has not been, all of them."""
    named = None if wanted.newer_than is None else await pool.history(wanted.newer_than, limit=1)
    if not named:
        return await _selected(pool, wanted)
    left = max(number(named[0], "CompletionDate"), number(named[0], "EnteredCurrentStatus"))
    wanted.since = max(wanted.since or 0.0, left)
    found = await _selected(pool, wanted)
    found = found[::-1] if wanted.forwards else found
    newer = list(takewhile(lambda ad: id_of(ad) != id_of(named[0]), found))
    return newer[::-1] if wanted.forwards else newer


async def _selected(pool: Client, wanted: _Wanted) -> list[Ad]:
    """Whole ads, because accounting keeps them so."""
    chosen = wanted.chosen
    select = Select(
        jobs=chosen.jobs, clusters=chosen.clusters, owners=chosen.owners, constraint=chosen.constraint
    )
    found = await pool.history(select, limit=wanted.limit, since=wanted.since)
    asked: set[JobId] = set()
    while missing := [job for job in _missing(wanted, found) if job not in asked]:
        asked.update(missing)
        if seen := await _seen(pool, missing):
            found = await pool.history(select, limit=wanted.limit, since=wanted.since, at_least=seen)
    return found[::-1] if wanted.forwards else found


def _missing(wanted: _Wanted, found: list[Ad]) -> list[JobId]:
    """
    Jobs that were named and not found; of a cluster the first, or if some are found the last.

    Who removes a whole cluster removes that one last.
    """
    if wanted.chosen.constraint or (wanted.limit and len(found) >= wanted.limit):
        return []
    jobs = {JobId(int(number(ad, "ClusterId")), int(number(ad, "ProcId"))) for ad in found}
    totals = {int(number(ad, "ClusterId")): int(number(ad, "TotalSubmitProcs")) for ad in found}
    of_clusters = [JobId(cluster, max(totals.get(cluster, 1), 1) - 1) for cluster in wanted.chosen.clusters]
    return [job for job in (*wanted.chosen.jobs, *of_clusters) if job not in jobs]


async def _seen(pool: Client, missing: list[JobId]) -> Position | None:
    """
    The frame up to which accounting must have read, so that a job that has just left the queue is in the history.

    A program that queries the queue and then the history would treat a job that is in neither as one that never
    existed: so an access point that is slow is waited for as with any question, and only one that does not answer at all is
    done without.
    """
    last: Position | None = None
    for job in missing[:_ASKED]:
        try:
            recorded = await pool.recorded(job)
        except CommandRefusedError:
            continue  # there never was such a job
        except ClientError:
            break
        for event in recorded.events:
            if last is None or event.frame > last.frame:
                last = Position(recorded.shard, event.frame)
    return last


def _table(ads: list[Ad]) -> Iterator[str]:
    from kettle.client.jobs.status import status_of
    from kettle_services.condor.printing import queue_table as tables

    yield _TITLE + "\n"
    for ad in ads:
        status = status_of(ad)
        ended = number(ad, "CompletionDate")
        yield (
            f"{tables.beginning(ad)} {tables.moment(number(ad, 'QDate'))} "
            f"{tables.run_time(number(ad, 'RemoteWallClockTime')):>12} {tables.LETTERS[status]:<2} "
            f"{tables.moment(ended) if ended and status == 'completed' else '???':>11} {ad.get('Cmd', '')} "
            f"{tables.arguments(ad)}".rstrip()
            + "\n"
        )
