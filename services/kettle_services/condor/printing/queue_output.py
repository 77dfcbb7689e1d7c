"""The tables of condor_q, written as the jobs come."""

import sys
from collections.abc import Sequence

from kettle_services.condor.printing.dag_table import DagTable
from kettle_services.condor.printing.print_format import PrintFormat, print_format_of
from kettle_services.condor.printing.queue_table import BatchTable, JobTable, Totals
from kettle_services.condor.printing.queue_views import VIEWS, FormatView, View, own_totals
from kettle_services.condor.printing.queued_jobs import QueuedJobs, TableChoice
from kettle_wire.ads.types import Ad

_OWN: frozenset[str] = frozenset({"run", "held"})
"""Status of jobs that have a table with a line for each of them."""


def write_table(jobs: QueuedJobs, choice: TableChoice, layout: PrintFormat | None) -> None:
    """The table of a print format, or else the one that was chosen, with its totals."""
    view, totals = _view(choice, layout), Totals(jobs.person)
    head = jobs.head if layout is None or layout.title else ""
    begun = False

    def show(ads: Sequence[Ad]) -> list[str]:
        nonlocal begun
        if more := view.needs.of(ads):
            return more
        if not begun and (ads or not choice.empty):
            sys.stdout.writelines((head, *view.begin()))
            begun = True
        totals.add(ads)
        sys.stdout.writelines(view.add(ads))
        return []

    jobs.source([*dict.fromkeys((*view.needs.names, *totals.attributes))], show)
    if not begun:
        sys.stdout.write("All queues are empty\n")
        return
    sys.stdout.writelines(view.end(jobs.unmade))
    if view.totals:
        sys.stdout.writelines(totals.lines())
    elif layout is not None and layout.totals:
        found, mine = totals.counts()
        counts = {"": found, "My": mine, "Allusers": jobs.everybody()}
        sys.stdout.writelines(own_totals(layout, counts))


def _view(choice: TableChoice, layout: PrintFormat | None) -> View:
    if layout is not None:
        return FormatView(layout)
    if choice.totals:
        return FormatView(print_format_of("SELECT NOHEADER\nSUMMARY STANDARD"))
    if choice.table:
        return VIEWS[choice.table]()
    how = choice.status if choice.status in _OWN else "jobs"
    if choice.dag and not choice.batch:
        return DagTable(how, choice.time_of or "wall")
    by_job = choice.status in _OWN or bool(choice.time_of)
    if choice.status == "idle" and choice.batch is None and not by_job:
        return VIEWS["idle"]()
    if choice.batch or (choice.batch is None and not by_job):
        return BatchTable()
    return JobTable(how, choice.time_of or "wall")
