"""What a scaler has planned, in sentences: one wording for commands, pages and programs."""

from collections.abc import Iterable, Mapping
from typing import Final

from kettle.terminal.quantities import counted, duration
from kettle_wire.commands.outlooks import OutlookKind, PoolOutlook
from kettle_wire.events.plan import (
    Bound,
    Obstacle,
    OfferObstacle,
    PlannedMachines,
    PlannedSleep,
    PlannedWake,
    Removal,
    RemovalCause,
    WaitingJobs,
)
from kettle_wire.leases import LeaseState

BOUNDS: Final[Mapping[Bound, str]] = {
    Bound.NEED: "no more are needed",
    Bound.POOL_MAX: "the pool has as many as it may have (max)",
    Bound.OWNER_MAX: "the pool has as many for one person's jobs as it may have (max_machines_per_owner)",
    Bound.OFFER_MAX: "the offer has as many as it may have (max of the offer)",
    Bound.ROOM: "the provider has no room for more",
    Bound.BUDGET: "the budget of this day (UTC) is used up",
    Bound.CANARY: "its template is tried with one machine first",
    Bound.RAMP: "machines of it failed lately, so that few are tried at a time",
    Bound.ACTIONS: "the rest comes with the next plan",
    Bound.AWAKE: "none of its machines is asleep any more that could be woken",
    Bound.WAKING: "as many of its machines wake as may at the same time (waking)",
    Bound.GANG: "there is not room for all machines of a job, so none is made",
}
REMOVALS: Final[Mapping[RemovalCause, str]] = {
    RemovalCause.UNNEEDED: "what it was for is gone",
    RemovalCause.IDLE: "it was idle for as long as its pool lets it",
    RemovalCause.PATIENCE: "the jobs that it was made for waited too long for it",
    RemovalCause.SPARSE: "it has few jobs, for which other machines have room",
    RemovalCause.MAX: "its pool is to be smaller",
    RemovalCause.BUDGET: "its pool has spent what it may on this day",
    RemovalCause.GANG: "others of its gang did not come in time",
    RemovalCause.POOL: "its pool is given up, or paused with its machines",
}
STATES: Final[Mapping[LeaseState, str]] = {
    LeaseState.REQUESTED: "planned",
    LeaseState.SUBMITTING: "being asked for",
    LeaseState.IN_DOUBT: "asked for, and looked for",
    LeaseState.ACCEPTED: "asked for",
    LeaseState.BOOTING: "booting",
    LeaseState.JOINING: "joining",
    LeaseState.VALIDATING: "examining itself",
    LeaseState.READY: "ready",
    LeaseState.BUSY: "busy",
    LeaseState.QUARANTINED: "in quarantine",
    LeaseState.DRAINING: "draining",
    LeaseState.TERMINATING: "being removed",
    LeaseState.LOST: "lost",
    LeaseState.FAILED: "failed",
    LeaseState.GONE: "gone",
}


def clock(at: float, *, now: float) -> str:
    """A moment as people say it: the time, with the date if that is another day."""
    import time

    form = "%H:%M" if abs(at - now) < 43_200 else "%m/%d %H:%M"
    return time.strftime(form, time.localtime(at))


def outlook_sentence(outlook: PoolOutlook, *, now: float) -> str:
    """What one pool of workers does about a job that waits."""
    pool = f"pool {outlook.pool}"
    again = f"; it is tried again at {clock(outlook.next_try, now=now)}" if outlook.next_try > now else ""
    match outlook.kind:
        case OutlookKind.PLANNED:
            return f"{pool}: {_coming(outlook, now=now)}"
        case OutlookKind.WAKING:
            return f"{pool}: {_waking(outlook, now=now)}"
        case OutlookKind.YOUNG:
            return f"{pool}: it has not waited long enough to be a reason for new machines"
        case OutlookKind.CLOSED:
            words = f": {outlook.words}" if outlook.words else ""
            return f"{pool}: it waits for machines of {outlook.offer}, which cannot be had now{words}{again}"
        case OutlookKind.BUDGET:
            return f"{pool}: {BOUNDS[Bound.BUDGET]}, so no machine comes before midnight UTC"
        case OutlookKind.BOUNDED:
            return f"{pool}: no machine comes for it: {_bound(outlook.words)}"
        case OutlookKind.PAUSED:
            return f"{pool}: it is paused {outlook.words}; go on with: kettle pool resume {outlook.pool}"
        case OutlookKind.LIMITED:
            return f"{pool}: its submitter has as much as it may have, so machines would not help"
        case OutlookKind.IMPOSSIBLE:
            return f"{pool}: no machine of its offers could run it: {outlook.words}"


def _waking(outlook: PoolOutlook, *, now: float) -> str:
    """Which sleeping machines are woken for a job."""
    others = f" or {len(outlook.machines) - 1} more" if len(outlook.machines) > 1 else ""
    return (
        f"{outlook.machines[0]}{others} was asleep and is being woken for it since {clock(outlook.since, now=now)},"
        f" and has to answer by {clock(outlook.next_try, now=now)}"
    )


def _coming(outlook: PoolOutlook, *, now: float) -> str:
    """Which machines come for a job."""
    if not outlook.leases:
        return "there is room for it, or it comes free"
    how = STATES[LeaseState(outlook.state)] if outlook.state else "planned"
    when = f", ready about {clock(outlook.next_try, now=now)}" if outlook.next_try > now else ""
    others = f" or {len(outlook.leases) - 1} more" if len(outlook.leases) > 1 else ""
    return f"it is planned on {outlook.leases[0]} ({how}{when}){others}"


def obstacle_sentence(obstacle: OfferObstacle, *, now: float) -> str:
    """Why one offer is nothing for waiting jobs, and until when."""
    again = f", until {clock(obstacle.until, now=now)}" if obstacle.until else ""
    return f"{obstacle.pool}.{obstacle.offer}: {obstacle_words(obstacle, again)}"


def obstacle_words(obstacle: OfferObstacle, again: str = "") -> str:
    """Why one offer is nothing for waiting jobs; `again`: when a closed one is tried again, in words."""
    words = obstacle.words
    match obstacle.obstacle:
        case Obstacle.CLAUSE:
            return f"this is not met: {words}"
        case Obstacle.LIFE:
            return f"its machines do not live long enough{f' ({words})' if words else ''}"
        case Obstacle.OWNER:
            return "its pool is for others"
        case Obstacle.SCALING:
            return words or "the jobs ask for machines of another shape, or for none"
        case Obstacle.CLOSED:
            return f"it is closed{again}{f': {words}' if words else ''}"
        case Obstacle.PAUSED:
            return "its pool is paused"
        case Obstacle.BOUND:
            return _bound(words)


def _bound(words: str) -> str:
    """The sentence of a bound, by its word."""
    return next((said for bound, said in BOUNDS.items() if bound.value == words), words)


def jobs_sentence(waiting: WaitingJobs) -> str:
    """What is planned for a group of waiting jobs."""
    parts = [
        f"{number} {said}"
        for number, said in (
            (waiting.free, "fit where there is room now"),
            (waiting.coming, "have machines on their way"),
            (waiting.planned, "get machines by this plan"),
            (waiting.limited, "may not run yet"),
            (waiting.young, "have just come"),
        )
        if number
    ]
    left = waiting.jobs - waiting.free - waiting.coming - waiting.planned - waiting.limited - waiting.young
    if left > 0:
        parts.append(f"{left} must wait")
    return ", ".join(parts) or "nothing is known"


def machines_sentence(planned: PlannedMachines) -> str:
    """How many machines of an offer are ordered, and what limited it."""
    ordered = f"{counted(planned.machines, 'machine')} of {planned.pool}.{planned.offer} ({planned.shape})"
    if planned.bound is Bound.NEED:
        return ordered
    return f"{ordered} instead of {planned.wanted}: {BOUNDS[planned.bound]}"


def removal_sentence(removal: Removal) -> str:
    """Which machine is to go, and why."""
    return f"{removal.lease} is to go: {REMOVALS[removal.cause]}{', with what runs there' * removal.force}"


def wake_sentence(wake: PlannedWake) -> str:
    """Which machine is woken."""
    return f"{wake.machine} is woken: a job waits that it could run"


def sleep_sentence(sleep: PlannedSleep) -> str:
    """Which machine goes to sleep, and why."""
    return f"{sleep.machine} goes to sleep: it was idle for as long as its pool lets it"


def ago(at: float, *, now: float) -> str:
    """How long something is past."""
    return f"{duration(max(0.0, now - at))} ago"


def in_states(leases: Mapping[str, int] | Iterable[tuple[str, int]]) -> str:
    """`3 busy, 1 booting`; `none`."""
    return ", ".join(f"{number} {state}" for state, number in dict(leases).items()) or "none"
