"""`kettle pool leases` and `lease`: machines of pools, one by one."""

import argparse
import time

from kettle.client.events.sentences import sentence
from kettle.client.explanations.worker_pools import STATES, clock
from kettle.terminal.nearest_names import did_you_mean
from kettle.terminal.quantities import duration, moment
from kettle.worker_pools.texts import money_text
from kettle_services.cli.errors import UsageError
from kettle_services.cli.options import with_pool
from kettle_services.cli.output.screen import Screen
from kettle_wire.commands.worker_pools import LeaseShown
from kettle_wire.events import decode, tag_of
from kettle_wire.leases import LeaseState

_STYLES = {
    LeaseState.READY: "good", LeaseState.BUSY: "running", LeaseState.IN_DOUBT: "bad", LeaseState.QUARANTINED: "bad",
    LeaseState.LOST: "bad", LeaseState.FAILED: "bad", LeaseState.GONE: "dim", LeaseState.TERMINATING: "dim",
}  # fmt: skip


def leases(arguments: argparse.Namespace, screen: Screen) -> int:
    """A list."""
    states = [_state(each) for each in arguments.state]
    found = with_pool(arguments, lambda client: client.worker_pools.leases(arguments.pool, states=states))
    if screen.as_json:
        screen.json(found)
        return 0
    if not found.leases:
        of = f"of the pool {arguments.pool}" if arguments.pool else "of any pool"
        screen.say(f"No machine {of} is {' or '.join(each.value for each in states) or 'there now'}.")
        return 0
    now = time.time()
    rows = [_row(each, now=now) for each in found.leases]
    screen.table(
        ("LEASE", "OFFER", "IS", "FOR", "UNTIL", "COST", "WORDS"),
        rows,
        styles=[_STYLES.get(each.state, "") for each in found.leases],
        right=frozenset({"FOR", "COST"}),
    )
    if found.more:
        screen.note(f"{found.more} older ones are left out; name a pool or a state (--state)")
    return 0


def lease(arguments: argparse.Namespace, screen: Screen) -> int:
    """What happened to one, or what it wrote."""
    if arguments.console:
        text = with_pool(arguments, lambda client: client.worker_pools.console(arguments.lease))
        if screen.as_json:
            screen.json({"console": text})
        else:
            screen.block(text or "There is nothing.")
        return 0
    history = with_pool(arguments, lambda client: client.worker_pools.timeline(arguments.lease))
    told = [(each.at, decode(each.data)) for each in history.moments]
    if screen.as_json:
        moments = [
            {"at": at, "what": tag_of(event), "sentence": sentence(event)[0], "event": event}
            for at, event in told
        ]
        screen.json({"lease": history.lease, "moments": moments})
        return 0
    shown = history.lease
    screen.say(
        screen.paint(shown.lease, "strong")
        + f" is {STATES[shown.state]}: a machine of {shown.offer} ({shown.provider}) of pool {shown.pool}"
    )
    for at, event in told:
        said, style = sentence(event)
        screen.say(f"{screen.paint(moment(at), 'dim')}  {screen.paint(said, style)}")
    if shown.deadline:
        screen.say(
            f"Something is done about it at {clock(shown.deadline, now=time.time())} if nothing is heard."
        )
    return 0


def _state(text: str) -> LeaseState:
    known = [state.value for state in LeaseState]
    if text not in known:
        raise UsageError(
            f"no lease is ever '{text}': its states are {', '.join(known)}{did_you_mean(text, known)}"
        )
    return LeaseState(text)


def _row(shown: LeaseShown, *, now: float) -> tuple[str, ...]:
    until = shown.expected if shown.expected > now else shown.deadline
    about = "about " if shown.expected > now else ""
    return (
        shown.lease,
        shown.offer,
        STATES[shown.state],
        duration(max(0.0, now - shown.since)),
        f"{about}{clock(until, now=now)}" if until else "-",
        money_text(round(shown.cost, 4), shown.currency) if shown.price else "-",
        shown.words,
    )
