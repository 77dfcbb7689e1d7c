"""`kettle pool report`: what the machines of a pool were used for."""

import argparse
import time

from kettle.client.explanations.pool_use import PoolFigures, figures
from kettle.client.explanations.worker_pools import clock
from kettle.terminal.quantities import counted, duration
from kettle.worker_pools.texts import money_text
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen


def run(arguments: argparse.Namespace, screen: Screen) -> int:
    """Show it."""
    now = time.time()
    use = with_pool(
        arguments,
        lambda client: client.worker_pools.report(
            arguments.pool, since=now - arguments.since, now=now, by=arguments.by
        ),
    )
    found = figures(use.report.leases, use.used, now=now)
    if screen.as_json:
        screen.json({"since": use.report.since, "figures": found, "leases": use.report.leases})
        return 0
    screen.say(
        screen.paint(f"Pool {arguments.pool} since {clock(use.report.since, now=now)}", "strong")
        + f": {counted(found.machines, 'machine')}"
        + (f", {found.failed} that never became ready" if found.failed else "")
    )
    for line in lines(found):
        screen.say(f"  {line}")
    if found.shares:
        screen.say()
        rows = [
            (
                each.name or "(nobody)",
                each.jobs,
                duration(each.used),
                duration(each.lost),
                _money(each.claimed, found),
                _money(each.cost, found),
            )
            for each in found.shares
        ]
        titles = (arguments.by.upper(), "JOBS", "CORE TIME", "LOST", "USED FOR", "COST")
        screen.table(titles, rows, right=frozenset(titles[1:]))
    if len(found.days) > 1:
        screen.say()
        days = [(each.day, _money(each.cost, found)) for each in found.days]
        screen.table(("DAY (UTC)", "COST"), days, right=frozenset({"COST"}))
    return 0


def _money(amount: float, found: PoolFigures) -> str:
    return money_text(round(amount, 4), found.currency) if found.cost else "-"


def lines(found: PoolFigures) -> list[str]:
    """The figures, one in each line."""
    said = [
        f"provided  {duration(found.provided)} of cores",
        f"used      {duration(found.used)}; idle {duration(found.idle)}",
    ]
    if found.ratio:
        said.append(f"over-provisioning  {found.ratio:.2f} core-seconds provided for each one used")
    if found.boot:
        said.append(f"boot      {duration(found.boot)} (median)")
    if found.cost:
        said.append(f"cost      {money_text(round(found.cost, 4), found.currency)}")
    return said
