"""`kettle q`: the queue."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, cast

from kettle.client.jobs.status import status_of
from kettle_services.cli.options import at_least, job_options, json_option, pool_options, selection, with_pool
from kettle_services.cli.output.screen import Cell, Screen, plain
from kettle_services.cli.tables.jobs import (
    HELD_TITLES,
    QUEUE_ATTRIBUTES,
    QUEUE_TITLES,
    RIGHT,
    TOTALS,
    held_row,
    queue_row,
    total_line,
)
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.commands.queue import JobAds, Select, Unmade

if TYPE_CHECKING:
    from kettle.client import Client

HELP: Final = """\
The jobs in the queue: those that wait (I), run (R) or are held (H).  Jobs that have ended are in kettle history.

examples:
  kettle q                                    your jobs
  kettle q 12                                 cluster 12
  kettle q --all                              everybody's
  kettle q --all --totals                     only how many there are
  kettle q --batch                            one line for each batch: batch_name, or the cluster
  kettle q --jobsets                          one line for each of your job sets
  kettle q --held                             held jobs, with the reason
  kettle q --constraint 'RequestMemory > 4096'
  kettle q 12.0 --long                        everything that is known about a job
  kettle q --attributes ClusterId,ProcId,RemoteHost
  kettle q --json | jq '.[].JobStatus'
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    job_options(parser, verb="show only")
    parser.add_argument("--all", action="store_true", help="everybody's jobs")
    parser.add_argument("--held", action="store_true", help="only held jobs, and why they are held")
    together = parser.add_mutually_exclusive_group()
    together.add_argument(
        "--batch", action="store_true", help="one line for each batch_name, or cluster without one"
    )
    together.add_argument("--jobsets", action="store_true", help="one line for each job set")
    parser.add_argument("--totals", action="store_true", help="only how many jobs there are of each status")
    parser.add_argument("--long", action="store_true", help="whole job ads")
    parser.add_argument(
        "--attributes", default="", metavar="A,B,...", help="these attributes, one job per line"
    )
    parser.add_argument("--limit", type=at_least(0), default=0, metavar="N", help="at most so many jobs")
    json_option(parser)
    pool_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show the jobs; finding none is no failure."""
    chosen = [name.strip() for name in arguments.attributes.split(",") if name.strip()]
    whole = arguments.long or (screen.as_json and not chosen)
    if arguments.batch or arguments.jobsets:
        _show_together(arguments, screen)
        return 0
    found = _found(arguments, [] if whole else chosen or list(QUEUE_ATTRIBUTES))
    if arguments.totals:
        _show_totals(found, screen)
    elif screen.as_json:
        screen.json([plain(ad) for ad in found.jobs])
    elif arguments.long:
        show_long(found.jobs, screen)
    elif chosen:
        columns = [_cells(found.jobs, name) for name in chosen]
        screen.table(chosen, list(zip(*columns, strict=True)))
    else:
        _show(found, screen, held=arguments.held)
    return 0


def _found(arguments: argparse.Namespace, projection: list[str]) -> JobAds:
    """What the schedd answers."""
    select = selection(arguments)
    if arguments.held:
        held = "JobStatus == 5"
        constraint = f"({select.constraint}) && {held}" if select.constraint else held
        select = Select(
            jobs=select.jobs, clusters=select.clusters, owners=select.owners, constraint=constraint
        )
    anybody = arguments.all or select.jobs or select.clusters or select.owners or arguments.constraint

    async def ask(pool: Client) -> JobAds:
        mine = select
        if not anybody and pool.pool.user:
            mine = Select(owners=[pool.pool.user], constraint=select.constraint)
        if arguments.totals:
            return await pool.totals(mine)
        return await pool.queue(mine, projection=projection, limit=arguments.limit)

    return with_pool(arguments, ask)


def _show_together(arguments: argparse.Namespace, screen: Screen) -> None:
    from kettle.client import batches
    from kettle_services.cli.tables.batches import BATCH_TITLES, RIGHT, SET_TITLES, row

    found = _found(arguments, list(batches.ATTRIBUTES))
    key_of = batches.by_set if arguments.jobsets else batches.by_batch
    rows = list(batches.grouped(found.jobs, found.unmade, key_of))
    if screen.as_json:
        screen.json(rows)
        return
    titles = SET_TITLES if arguments.jobsets else BATCH_TITLES
    screen.table(titles, [row(each) for each in rows], right=RIGHT)
    screen.say()
    screen.say(total_line(Counter(map(status_of, found.jobs))))


def _show_totals(found: JobAds, screen: Screen) -> None:
    if screen.as_json:
        screen.json({"jobs": found.total, **dict.fromkeys(TOTALS, 0), **found.statuses})
        return
    screen.say(total_line(found.statuses))
    _show_unmade(found.unmade, screen)


def _show(found: JobAds, screen: Screen, *, held: bool) -> None:
    ads, now = found.jobs, time.time()
    statuses = [status_of(ad) for ad in ads]
    if held:
        screen.table(HELD_TITLES, [held_row(ad) for ad in ads], styles=statuses, right=RIGHT, whole=True)
    else:
        screen.table(QUEUE_TITLES, [queue_row(ad, now) for ad in ads], styles=statuses, right=RIGHT)
    screen.say()
    screen.say(total_line(Counter(statuses)))
    _show_unmade(found.unmade, screen)


def _show_unmade(unmade: list[Unmade], screen: Screen) -> None:
    for one in unmade:
        how = "held" if one.paused else "made as there is room"
        screen.say(f"Cluster {one.cluster}: {one.total - one.made} of {one.total} jobs not yet made ({how}).")


def show_long(ads: list[Ad], screen: Screen) -> None:
    """Whole ads, each followed by an empty line."""
    from kettle.classad import ClassAd
    from kettle.classad.long_form import list_long

    for ad in ads:
        screen.block(list_long(ClassAd.from_wire(ad)).rstrip())
        screen.say()


def _cells(ads: list[Ad], name: str) -> Sequence[Cell]:
    values = [ad.get(name) for ad in ads]
    if {int, str}.issuperset(map(type, values)):
        return cast("list[int | str]", values)
    return [_cell(ad, name) for ad in ads]


def _cell(ad: Ad, name: str) -> str:
    value = ad.get(name)
    if value is None:
        value = next((value for key, value in ad.items() if key.lower() == name.lower()), None)
    match value:
        case None:
            return "undefined"
        case Expr(expr=text):
            return text
        case bool():
            return str(value).lower()
        case _:
            return str(value)
