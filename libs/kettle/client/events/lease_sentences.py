"""What recorded events of pools of workers, their leases, offers and providers say, in a sentence each."""

from typing import assert_never

from kettle.client.events.host_sentences import host_sentence
from kettle.terminal.quantities import counted, duration
from kettle_wire.events.host import HostEvent
from kettle_wire.events.lease import (
    BreakerEvent,
    LeaseAccepted,
    LeaseBooting,
    LeaseBusy,
    LeaseConsole,
    LeaseDeferred,
    LeaseDraining,
    LeaseDuplicated,
    LeaseDuplicateGone,
    LeaseEvent,
    LeaseExtended,
    LeaseFailed,
    LeaseGone,
    LeaseInDoubt,
    LeaseJoining,
    LeaseLost,
    LeaseQuarantined,
    LeaseReady,
    LeaseRequested,
    LeaseSubmitting,
    LeaseTerminating,
    LeaseUnwanted,
    LeaseValidating,
    OfferClosed,
    OfferMeasured,
    OfferOpened,
    OrphanEvent,
    OrphanFound,
    OrphanGone,
    OrphanRemoving,
    ProviderClosed,
    ProviderFrozen,
    ProviderOpened,
    ProviderThawed,
    TemplateClosed,
    TemplateOpened,
)
from kettle_wire.events.plan import PlanMade
from kettle_wire.events.pool import PoolChanged, PoolEvent, PoolPaused, PoolResumed, PoolRetired

ElasticEvent = HostEvent | LeaseEvent | OrphanEvent | BreakerEvent | PoolEvent | PlanMade

_PLAIN = {
    LeaseBooting: ("its provider says that it runs", ""),
    LeaseJoining: ("it joins the pool", ""),
    LeaseValidating: ("it has joined, and examines itself", ""),
    LeaseReady: ("it takes jobs", "good"),
    LeaseBusy: ("jobs run on it", "running"),
}


def elastic_sentence(event: ElasticEvent) -> tuple[str, str]:
    """What an event says, and its meaning for colours."""
    if isinstance(event, PlanMade):
        return _plan(event), ""
    if isinstance(event, PoolEvent):
        return _of_pool(event), "strong"
    if isinstance(event, OrphanEvent):
        return _of_orphan(event)
    if isinstance(event, HostEvent):
        return host_sentence(event)
    if isinstance(event, BreakerEvent):
        return _of_breaker(event)
    return _of_lease(event)


def _plan(event: PlanMade) -> str:
    waiting = sum(each.jobs for each in event.waiting)
    ordered = sum(each.machines for each in event.machines) - len(event.wakes)
    return (
        f"plan {event.number}: {counted(waiting, 'job')} waited, {counted(ordered, 'machine')} ordered, "
        f"{counted(len(event.removals), 'machine')} to go"
        + (f", {len(event.wakes)} woken" if event.wakes else "")
        + (f", {len(event.sleeps)} to sleep" if event.sleeps else "")
    )


def _of_pool(event: PoolEvent) -> str:
    match event:
        case PoolChanged():
            return (
                f"{event.by} applied the pool {event.pool.name} ({counted(len(event.pool.offers), 'offer')})"
            )
        case PoolPaused():
            what = "has its machines go, and makes no more" if event.drain else "makes no more machines"
            return f"{event.by} paused it: it {what}{f': {event.reason}' if event.reason else ''}"
        case PoolResumed():
            return f"{event.by} resumed it"
        case PoolRetired():
            return f"{event.by} gave it up"
        case _:
            assert_never(event)


def _of_orphan(event: OrphanEvent) -> tuple[str, str]:
    match event:
        case OrphanFound():
            of = f" made for {event.lease}" if event.lease else ""
            return f"{event.provider} has a machine that no lease wants, {event.handle}{of}", "bad"
        case OrphanRemoving():
            return f"its provider is asked to remove it{_again(event.removal)}", ""
        case OrphanGone():
            return f"it is gone: {event.words}", "dim"
        case _:
            assert_never(event)


def _of_breaker(event: BreakerEvent) -> tuple[str, str]:
    match event:
        case OfferClosed() | TemplateClosed() | ProviderClosed():
            noun = {OfferClosed: "offer", TemplateClosed: "template", ProviderClosed: "provider"}[type(event)]
            kind = f" ({event.error})" if event.error else ""
            until = "" if event.until else ", until somebody opens it"
            return f"the {noun} is closed{_times(event.times)}{until}{kind}: {event.words}", "bad"
        case OfferOpened() | TemplateOpened() | ProviderOpened():
            return f"it is open: {event.why}", "good"
        case OfferMeasured(boot=boot):
            if boot:
                return f"{event.lease} was ready after {duration(boot)}", "good"
            return f"{event.lease} did not become ready", "bad"
        case ProviderFrozen():
            return (
                f"{event.missing} of {event.of} machines seem to be lost at once: none is given up for now",
                "bad",
            )
        case ProviderThawed():
            return f"it is believed again: {event.why}", "good"
        case _:
            assert_never(event)


def _of_lease(event: LeaseEvent) -> tuple[str, str]:  # noqa: C901, PLR0912 - one case for each event
    match event:
        case LeaseRequested():
            by = f"plan {event.plan}" if event.plan else event.by or "somebody"
            jobs = sum(each.jobs for each in event.demand)
            of = f" for {counted(jobs, 'job')}" if jobs else ""
            return f"{by} asks for a machine of {event.offer.name} ({event.offer.provider}){of}", "strong"
        case LeaseSubmitting():
            return f"its provider is asked{_attempt(event.attempt)}", "idle"
        case LeaseInDoubt():
            return f"nobody knows whether it was made, so it is looked for{_because(event.words)}", "bad"
        case LeaseDeferred():
            return f"its provider refused for a moment ({event.error}): {event.words}", "bad"
        case LeaseAccepted():
            how = "was found as" if event.found else "is"
            return f"it {how} {event.handle}", ""
        case LeaseExtended():
            return f"it goes on: {event.progress}", "dim"
        case LeaseQuarantined():
            return f"it takes no jobs, and will be removed: {event.words}", "bad"
        case LeaseDraining():
            return f"it takes no more jobs: {event.why}", "idle"
        case LeaseUnwanted():
            return f"nobody wants it any more: {event.why}", "idle"
        case LeaseTerminating():
            return f"its provider is asked to remove it{_again(event.removal)}: {event.why}", "idle"
        case LeaseDuplicated():
            return f"another machine carries its name, {event.handle}, which is removed", "bad"
        case LeaseDuplicateGone():
            return f"the other machine, {event.handle}, is gone", "dim"
        case LeaseConsole(size=size):
            return f"the last {counted(size, 'character')} that it wrote are kept", "dim"
        case LeaseLost():
            return f"it is lost: {event.words}", "bad"
        case LeaseFailed():
            return f"there is no machine{f' ({event.error})' if event.error else ''}: {event.words}", "bad"
        case LeaseGone():
            cost = f", for {event.cost:.4g} {event.currency}" if event.cost else ""
            return f"it is gone after {duration(event.seconds)}{cost}: {event.words}", "dim"
        case LeaseBooting() | LeaseJoining() | LeaseValidating() | LeaseReady() | LeaseBusy():
            return _PLAIN[type(event)]
        case _:
            assert_never(event)


def _because(words: str) -> str:
    return f": {words}" if words else ""


def _attempt(attempt: int) -> str:
    return f" (attempt {attempt})" if attempt > 1 else ""


def _again(count: int) -> str:
    return f" (for the {count}th time)" if count > 3 else " again" if count > 1 else ""


def _times(count: int) -> str:
    return f" again ({count} times in a row)" if count > 1 else ""
