"""`kettle pool list` and `show`."""

import argparse
import time

from kettle.client.explanations.worker_pools import clock, in_states
from kettle.terminal.quantities import duration
from kettle.worker_pools.texts import money_text, size_text, span_text
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.commands.worker_pools import HostShown, OfferStanding, PoolShown, PoolStanding, PoolSummary
from kettle_wire.worker_pools import HostState, Offer, PoolKind, WorkerPool

_STYLES: dict[PoolStanding, str] = {
    "active": "",
    "paused": "idle",
    "draining": "idle",
    "retiring": "dim",
    "retired": "dim",
}


_HOST_STYLES: dict[HostState, str] = {
    HostState.AWAKE: "good",
    HostState.HIBERNATING: "idle",
    HostState.ASLEEP: "dim",
    HostState.WAKING: "running",
    HostState.BROKEN: "bad",
}


def pools(arguments: argparse.Namespace, screen: Screen) -> int:
    """All pools."""
    found = with_pool(arguments, lambda client: client.worker_pools.list())
    if screen.as_json:
        screen.json(found)
        return 0
    rows = [
        (
            each.name,
            each.kind,
            _said(each),
            sum(each.leases.values()) + sum(each.hosts.values()),
            each.max if each.kind != PoolKind.STATIC else "-",
            in_states({**each.hosts, **each.leases}),
            money_text(round(each.spent, 4), each.currency) if each.currency else "-",
            f"{each.closed} closed" if each.closed else "open",
        )
        for each in found
    ]
    screen.table(
        ("POOL", "KIND", "IS", "MACHINES", "MAX", "THEY ARE", "TODAY", "OFFERS"),
        rows,
        styles=["bad" if each.closed else _STYLES[each.standing] for each in found],
        right=frozenset({"MACHINES", "MAX", "TODAY"}),
    )
    return 0


def pool(arguments: argparse.Namespace, screen: Screen) -> int:
    """One pool."""
    found = with_pool(arguments, lambda client: client.worker_pools.show(arguments.pool))
    if screen.as_json:
        screen.json(found)
        return 0
    now = time.time()
    summary = found.summary
    screen.say(
        screen.paint(f"Pool {summary.name} is {_said(summary)}", "strong")
        + f", version {summary.version} since {clock(summary.changed, now=now)} by {found.applied_by}"
    )
    for name, value in _facts(found):
        screen.say(f"  {name:<12} {value}")
    screen.say()
    by_name = {offer.name: offer for offer in found.pool.offers}
    rows = [_offer_row(each, by_name[each.offer], now=now) for each in found.offers]
    screen.table(
        ("OFFER", "PROVIDER", "CPUS", "MEMORY", "GPUS", "PRICE/H", "MACHINES", "BOOT", "SUCCESS", "IS"),
        rows,
        styles=["bad" if each.closed_until else "" for each in found.offers],
        right=frozenset({"CPUS", "MEMORY", "GPUS", "PRICE/H", "MACHINES", "BOOT", "SUCCESS"}),
    )
    if found.hosts:
        screen.say()
        screen.table(
            ("MACHINE", "OFFER", "IS", "SINCE", "DEADLINE", "WHY"),
            [_host_row(each, now=now) for each in found.hosts],
            styles=[_HOST_STYLES[each.state] for each in found.hosts],
        )
    return 0


def _host_row(host: HostShown, *, now: float) -> tuple[str, ...]:
    again = f"; tried again at {clock(host.again, now=now)}" if host.again > now else ""
    return (
        host.machine,
        host.offer,
        host.state.value,
        clock(host.since, now=now) if host.since else "-",
        clock(host.deadline, now=now) if host.deadline else "-",
        f"{host.words}{again}" or "-",
    )


def _said(summary: PoolSummary) -> str:
    by = f" by {summary.by}" if summary.by else ""
    return f"{summary.standing}{by}{f': {summary.reason}' if summary.reason else ''}"


def _facts(found: PoolShown) -> list[tuple[str, str]]:
    pool: WorkerPool = found.pool
    facts = [("kind", pool.kind.value)]
    if pool.kind is PoolKind.STATIC:
        facts.append(
            ("machines", in_states(found.summary.hosts) if pool.hibernates else "nobody counts them")
        )
        sleeps = f"{span_text(pool.idle)}, then a machine goes to sleep ({pool.hibernate})"
        facts.append(("idle", sleeps if pool.hibernates else "its machines are let be"))
    else:
        facts += [
            ("machines", f"{in_states(found.summary.leases)}; from {pool.min} to {pool.max}"),
            ("idle", f"{span_text(pool.idle)}, then a machine goes ({pool.scale_down})"),
            ("life", span_text(pool.life)),
        ]
    if pool.spare:
        facts.append(("spare", f"{pool.spare} idle machines are kept"))
    if pool.budget:
        facts.append(("budget", f"{money_text(pool.budget, pool.currency)} a day (UTC)"))
    if found.summary.currency:
        facts.append(("spent today", money_text(round(found.summary.spent, 4), found.summary.currency)))
    if pool.owners or pool.groups:
        facts.append(("only for", ", ".join([*pool.owners, *(f"group {each}" for each in pool.groups)])))
    return facts


def _offer_row(standing: OfferStanding, offer: Offer, *, now: float) -> tuple[str | int, ...]:
    closed = standing.closed_until
    until = "until somebody resumes" if closed < 0 else f"until {clock(closed, now=now)}"
    is_ = f"closed {until}: {standing.words}" if closed else "open"
    return (
        standing.offer,
        standing.provider,
        offer.cpus,
        size_text(offer.memory),
        offer.gpus,
        money_text(offer.price, offer.currency) if offer.price else "-",
        standing.leases,
        duration(standing.boot) if standing.boot else f"({duration(offer.boot)})",
        f"{standing.success:.0%}" if standing.success else "-",
        is_,
    )
