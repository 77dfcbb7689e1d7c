"""`kettle q`: the queue."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from kettle.client.jobs.status import status_of
from kettle.terminal.quantities import counted
from kettle_services.cli.options import (
    at_least,
    attributes_of,
    attributes_option,
    everybody_option,
    job_options,
    json_option,
    now_of,
    pool_options,
    recorded_options,
    selection,
    with_pool,
)
from kettle_services.cli.output.ads_as_json import JsonArray
from kettle_services.cli.output.screen import Screen
from kettle_services.cli.tables.attributes import show_attributes, show_long
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
from kettle_wire.commands.queue import JobAds, Select, Unmade

if TYPE_CHECKING:
    from kettle.client import Client

HELP: Final = """\
The jobs in the queue: those that wait (I), run (R) or are held (H).  Jobs that have ended are in kettle history.

examples:
  kettle q                                    your jobs
  kettle q 12                                 cluster 12
  kettle q --all-users                        everybody's
  kettle q --all-users --totals               only how many there are
  kettle q --batch                            one line for each batch: batch_name, or the cluster
  kettle q --jobsets                          one line for each of your job sets
  kettle q --held                             held jobs, with the reason
  kettle q --constraint 'RequestMemory > 4096'
  kettle q 12.0 --long                        everything that is known about a job
  kettle q --attributes ClusterId,ProcId,RemoteHost
  kettle q --json | jq '.[].JobStatus'
  kettle q --simulated events --at 2h         of a pool that kettle simulate has played, two hours after it began
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    job_options(parser, verb="show only")
    everybody_option(parser)
    parser.add_argument("--held", action="store_true", help="only held jobs, and why they are held")
    together = parser.add_mutually_exclusive_group()
    together.add_argument(
        "--batch", action="store_true", help="one line for each batch_name, or cluster without one"
    )
    together.add_argument("--jobsets", action="store_true", help="one line for each job set")
    parser.add_argument("--totals", action="store_true", help="only how many jobs there are of each status")
    parser.add_argument("--long", action="store_true", help="whole job ads")
    attributes_option(parser, "job")
    parser.add_argument(
        "--limit",
        type=at_least(0),
        metavar="N",
        help="at most so many jobs (default: as many as a terminal shows, elsewhere all; 0: all)",
    )
    json_option(parser)
    pool_options(parser)
    recorded_options(parser)


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show the jobs; finding none is no failure."""
    chosen = attributes_of(arguments)
    question = _Question(arguments)
    if arguments.batch or arguments.jobsets:
        _show_together(arguments, question, screen)
    elif arguments.totals:
        _show_totals(with_pool(arguments, question.totals), screen)
    elif screen.as_json:
        written = JsonArray(screen)
        show = partial(_add_json, written)
        with_pool(arguments, lambda pool: question.each_page(pool, chosen, arguments.limit or 0, show))
        written.end()
    elif arguments.long:
        show = partial(_show_long, screen)
        with_pool(arguments, lambda pool: question.each_page(pool, [], arguments.limit or 0, show))
    else:
        _show_table(arguments, question, chosen, screen)
    return 0


class _Question:
    """What the schedd is asked about."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        select = selection(arguments)
        if arguments.held:
            held = "JobStatus == 5"
            constraint = f"({select.constraint}) && {held}" if select.constraint else held
            select = Select(
                jobs=select.jobs, clusters=select.clusters, owners=select.owners, constraint=constraint
            )
        self._select = select
        anybody = arguments.all or select.jobs or select.clusters or select.owners or arguments.constraint
        self._mine = not anybody

    def _of(self, pool: Client) -> Select:
        mine = self._mine and pool.pool.user
        return Select(owners=[pool.pool.user], constraint=self._select.constraint) if mine else self._select

    async def jobs(self, pool: Client, names: Sequence[str], limit: int) -> JobAds:
        """Those attributes of all the jobs, or of the first."""
        return await pool.queue(self._of(pool), projection=names, limit=limit)

    async def each_page(
        self, pool: Client, names: Sequence[str], limit: int, show: Callable[[JobAds], None]
    ) -> None:
        """Have the jobs shown little by little, so that no more than a part is in memory."""
        async for page in pool.pages(self._of(pool), projection=names, limit=limit):
            show(page)

    async def totals(self, pool: Client) -> JobAds:
        """How many there are."""
        return await pool.totals(self._of(pool))


def _add_json(written: JsonArray, page: JobAds) -> None:
    written.add(page.jobs)


def _show_long(screen: Screen, page: JobAds) -> None:
    show_long(page.jobs, screen)


def _show_table(
    arguments: argparse.Namespace, question: _Question, chosen: Sequence[str], screen: Screen
) -> None:
    """As many rows as somebody wants to see, and what there is beside them."""
    limit = screen.page if arguments.limit is None else arguments.limit

    async def ask(pool: Client) -> tuple[JobAds, JobAds | None]:
        found = await question.jobs(pool, chosen or QUEUE_ATTRIBUTES, limit)
        cut = limit and len(found.jobs) >= limit
        return found, await question.totals(pool) if cut else None

    found, totals = with_pool(arguments, ask)
    if chosen:
        show_attributes(found.jobs, chosen, screen)
    else:
        _show(found, totals, screen, held=arguments.held, now=now_of(arguments))
    if totals is not None and totals.total > len(found.jobs):
        more = counted(totals.total - len(found.jobs), "more job")
        screen.note(f"And {more}: --limit 0 shows all of them, --totals or --batch how many they are.")


def _show_together(arguments: argparse.Namespace, question: _Question, screen: Screen) -> None:
    from kettle.client import batches
    from kettle_services.cli.tables.batches import BATCH_TITLES, RIGHT, SET_TITLES, row

    found = with_pool(arguments, lambda pool: question.jobs(pool, batches.ATTRIBUTES, arguments.limit or 0))
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


def _show(found: JobAds, totals: JobAds | None, screen: Screen, *, held: bool, now: float) -> None:
    ads = found.jobs
    statuses = [status_of(ad) for ad in ads]
    if held:
        screen.table(HELD_TITLES, [held_row(ad) for ad in ads], styles=statuses, right=RIGHT, whole=True)
    else:
        screen.table(QUEUE_TITLES, [queue_row(ad, now) for ad in ads], styles=statuses, right=RIGHT)
    screen.say()
    screen.say(total_line(Counter(statuses) if totals is None else totals.statuses))
    _show_unmade(found.unmade, screen)


def _show_unmade(unmade: list[Unmade], screen: Screen) -> None:
    for one in unmade:
        how = "held" if one.paused else "made as there is room"
        screen.say(f"Cluster {one.cluster}: {one.total - one.made} of {one.total} jobs not yet made ({how}).")
