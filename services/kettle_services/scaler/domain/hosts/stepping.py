"""
What follows for a machine of a static pool from what is seen of it and wanted of it: one step, from a state and a stimulus to events
and acts.

An attempt to have it asleep or awake is recorded before it is made, and is made once.  What became of it is seen at the machine
itself: the request to cancel its draining, or to drain it again, is answered if it is there.
"""

from typing import Final, Literal

import msgspec

from kettle_services.scaler.domain.hosts.host import Host
from kettle_services.scaler.domain.leases.timers import doubled, jittered
from kettle_wire.ads.types import Ad
from kettle_wire.events.host import (
    HostAsleep,
    HostAwake,
    HostBroken,
    HostEvent,
    HostFenced,
    HostForgotten,
    HostHibernating,
    HostMended,
    HostNotWoken,
    HostWaking,
)
from kettle_wire.events.lease import Demand
from kettle_wire.worker_pools import Hibernation, HostState

LONGEST_WORDS: Final = 1000


class HostTimers(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds, but for `tries`."""

    sleep: float = 120.0
    """A machine that was asked to sleep and answers for so long stays awake."""
    wake: float = 180.0
    """One that was woken has so long to answer."""
    tries: int = 3
    """After so many failures in a row it is broken."""
    pause: float = 300.0
    """From a failure to the next try; each pause is twice the one before."""
    longest_pause: float = 3600.0


class Idle(msgspec.Struct, frozen=True):
    """It has had no job for as long as its pool lets it, and none would run there."""

    level: Hibernation
    why: str
    slots: list[Ad]


class Needed(msgspec.Struct, frozen=True):
    """A job waits that it could run."""

    demand: list[Demand]
    why: str


class Emptied(msgspec.Struct, frozen=True):
    """Its startd says that it takes no more jobs because of us, and has none."""


class Occupied(msgspec.Struct, frozen=True):
    """Its startd does not give up taking jobs: it has one, or somebody else drains it."""

    words: str


class Heard(msgspec.Struct, frozen=True):
    """An ad of it came, perhaps its last one."""


class Answers(msgspec.Struct, frozen=True):
    """Its startd answers, and takes jobs again if it was us who kept it from that."""


class Silent(msgspec.Struct, frozen=True):
    """Its startd does not answer, or nothing was heard of it for long."""


class Switched(msgspec.Struct, frozen=True):
    """What its provider said about an attempt; `trouble`: nothing was done, and why."""

    to: Literal["sleep", "wake"]
    attempt: int
    trouble: str = ""


class TimePasses(msgspec.Struct, frozen=True):
    """Look at it."""


class Mended(msgspec.Struct, frozen=True):
    """Somebody has looked after it."""

    by: str


class Dropped(msgspec.Struct, frozen=True):
    """Its pool has it no more, or lets its machines be."""

    why: str


Stimulus = (
    Idle | Needed | Emptied | Occupied | Heard | Answers | Silent | Switched | TimePasses | Mended | Dropped
)


class Fence(msgspec.Struct, frozen=True):
    """
    Have its startd take no more jobs, if it has none; asked again, this changes nothing and shows that it is there.
    """

    machine: str
    attempt: int


class Release(msgspec.Struct, frozen=True):
    """Have its startd take jobs again if we keep it from that; the answer shows that it is there."""

    machine: str


class Switch(msgspec.Struct, frozen=True):
    """Have its provider put it to sleep, or wake it."""

    machine: str
    to: Literal["sleep", "wake"]
    attempt: int


HostAct = Fence | Release | Switch


class Step(msgspec.Struct, frozen=True):
    """What is recorded, and what is done when that is committed."""

    events: list[HostEvent] = []
    acts: list[HostAct] = []


_NOTHING: Final = Step()


def step(host: Host, stimulus: Stimulus, now: float, timers: HostTimers) -> Step:
    """What a stimulus comes to; whatever does not concern a machine as it is changes nothing."""
    if isinstance(stimulus, Dropped):
        acts: list[HostAct] = [Release(host.machine)] if host.state is HostState.HIBERNATING else []
        return Step([HostForgotten(why=_cut(stimulus.why))], acts)
    match host.state:
        case HostState.AWAKE:
            return _awake(host, stimulus, now, timers)
        case HostState.HIBERNATING:
            return _hibernating(host, stimulus, now, timers)
        case HostState.ASLEEP:
            return _asleep(host, stimulus, now, timers)
        case HostState.WAKING:
            return _waking(host, stimulus, now, timers)
        case HostState.BROKEN:
            return _broken(host, stimulus)


def _awake(host: Host, stimulus: Stimulus, now: float, timers: HostTimers) -> Step:
    match stimulus:
        case Idle(level, why, slots) if now >= host.again:
            attempt = host.attempt + 1
            event = HostHibernating(
                machine=host.machine,
                pool=host.pool,
                offer=host.offer,
                level=level,
                attempt=attempt,
                until=now + timers.sleep,
                why=_cut(why),
                slots=slots,
            )
            return Step([event], [Fence(host.machine, attempt)])
        case Silent():
            return Step([_asleep_by_itself(host, "nothing is heard of it")])
        case Emptied():  # an answer that nobody waits for any more
            return Step(acts=[Release(host.machine)])
        case _:
            return _NOTHING


def _hibernating(host: Host, stimulus: Stimulus, now: float, timers: HostTimers) -> Step:
    match stimulus:
        case Emptied() if not host.fenced:
            return Step([HostFenced(attempt=host.attempt)], [Switch(host.machine, "sleep", host.attempt)])
        case Occupied(words) if not host.fenced:
            return Step([HostAwake(words=_cut(words), again=now + timers.sleep)])
        case Silent():
            words = "" if host.fenced else "it stopped answering before it was put to sleep"
            return Step([_asleep_by_itself(host, words)])
        case Switched("sleep", attempt, trouble) if trouble and attempt == host.attempt:
            return _stays_awake(host, f"it was not put to sleep: {trouble}", now, timers)
        case TimePasses() if now >= host.until:
            words = f"it still answered {now - host.since:.0f} s after it was to sleep"
            return _stays_awake(host, words, now, timers)
        case TimePasses():
            return Step(acts=[Fence(host.machine, host.attempt)])
        case _:
            return _NOTHING


def _stays_awake(host: Host, words: str, now: float, timers: HostTimers) -> Step:
    pause = jittered(timers.pause, f"{host.machine}{host.attempt}")
    return Step([HostAwake(words=_cut(words), again=now + pause)], [Release(host.machine)])


def _asleep_by_itself(host: Host, words: str) -> HostAsleep:
    return HostAsleep(machine=host.machine, pool=host.pool, offer=host.offer, words=words)


def _asleep(host: Host, stimulus: Stimulus, now: float, timers: HostTimers) -> Step:
    match stimulus:
        case Needed(demand, why) if now >= host.again:
            attempt = host.attempt + 1
            event = HostWaking(attempt=attempt, until=now + timers.wake, demand=demand, why=_cut(why))
            return Step([event], [Switch(host.machine, "wake", attempt)])
        case Answers():
            return Step([HostAwake(words="it woke without us")])
        case Heard() | Emptied():
            return Step(acts=[Release(host.machine)])
        case _:
            return _NOTHING


def _waking(host: Host, stimulus: Stimulus, now: float, timers: HostTimers) -> Step:
    match stimulus:
        case Answers():
            return Step([HostAwake()])
        case Heard() | Emptied():
            return Step(acts=[Release(host.machine)])
        case Switched("wake", attempt, trouble) if trouble and attempt == host.attempt:
            return _failed(host, f"it was not woken: {trouble}", now, timers)
        case TimePasses() if now >= host.until:
            words = f"it did not answer within {now - host.since:.0f} s after it was woken"
            return _failed(host, words, now, timers)
        case TimePasses():
            return Step(acts=[Release(host.machine)])
        case _:
            return _NOTHING


def _failed(host: Host, words: str, now: float, timers: HostTimers) -> Step:
    failures = host.failures + 1
    if failures >= timers.tries:
        return Step([HostBroken(words=_cut(words), failures=failures)])
    pause = jittered(doubled(timers.pause, timers.longest_pause, failures), f"{host.machine}{host.attempt}")
    return Step([HostNotWoken(words=_cut(words), failures=failures, again=now + pause)])


def _broken(host: Host, stimulus: Stimulus) -> Step:
    match stimulus:
        case Answers():
            return Step([HostAwake(words="it is heard of again")])
        case Heard() | Emptied():
            return Step(acts=[Release(host.machine)])
        case Mended(by):
            return Step([HostMended(by=by)])
        case _:
            return _NOTHING


def _cut(words: str) -> str:
    return words[:LONGEST_WORDS]
