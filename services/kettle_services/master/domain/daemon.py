"""
The life of one daemon under a master, as a state machine: what happens to it, and what is then to be done.

    off ──on──> waiting ──due──> launching ──> starting ──ready──> running / standby
     ^             ^  ^                            │  │                 │  │
     │             │  └────────── ended ───────────┘  └──silent──┬──────┘  │
     │             └──────────────────────── ended ──── hung <───┘         │
     └─ ended ── stopping <─────────────── off, restart ───────────────────┘

`left` is a daemon that must not be started again until somebody says so.  Times are seconds of a clock that never
goes back; every function returns the new state and the steps that its caller takes, in order.
"""

import math
from typing import Final, Literal

import msgspec

from kettle.retry.backoff import Backoff
from kettle_services.master.domain.restart import HTCONDOR, RECOVER_S, Leave, after_end, silent

Phase = Literal["off", "waiting", "launching", "starting", "running", "standby", "stopping", "hung", "left"]
How = Literal["peaceful", "graceful", "fast"]
Ask = Literal["peaceful", "graceful", "fast", "kill"]
Step = Literal["start", "peaceful", "graceful", "fast", "kill", "abort", "renew"]
"""`abort`: end it so that it writes its stacks.  `renew`: make it use changed settings."""

EXIT_RENEWED: Final = 75
"""
The status of a service that has ended to be started again with other settings (`kettle.runtime.EXIT_RENEWED`).
"""

ALIVE: Final[frozenset[Phase]] = frozenset({"starting", "running", "standby", "stopping", "hung"})
"""The phases with a process that can receive a signal."""

_HARSHNESS: Final[tuple[Ask, ...]] = ("peaceful", "graceful", "fast", "kill")


class RestartRules(msgspec.Struct, frozen=True, kw_only=True):
    """The times, in seconds; the defaults are HTCondor's."""

    backoff: Backoff = HTCONDOR
    recover: float = RECOVER_S
    start: float = 120.0
    not_responding: float = 3600.0
    graceful: float = 1800.0
    fast: float = 300.0
    abort: float = 10.0
    """For a daemon that hangs to write down its stacks and end."""


class SupervisedDaemon(msgspec.Struct, frozen=True, kw_only=True):
    """One daemon as its master knows it."""

    phase: Phase = "waiting"
    wanted: bool = True
    """Whether it is started again after its end."""
    failures: int = 0
    """Ends in a row that nobody had asked for."""
    began: float = 0.0
    """When it was started."""
    sign: float = 0.0
    """When it last gave a sign of life."""
    due: float = 0.0
    """When it is started (`waiting`), or asked more harshly to end (`stopping`, `hung`)."""
    asked: Ask | None = None
    """How it was asked to end, at the harshest."""
    left: str = ""
    """Why it is not started again (`left`)."""


Change = tuple[SupervisedDaemon, tuple[Step, ...]]


def off(child: SupervisedDaemon, how: How, *, now: float, rules: RestartRules) -> Change:
    """It is to end, and not to be started again."""
    return _end(msgspec.structs.replace(child, wanted=False), how, now=now, rules=rules)


def restart(child: SupervisedDaemon, how: How, *, now: float, rules: RestartRules) -> Change:
    """It is to end and to be started again; one that does not run is started now."""
    if child.phase in {"off", "left", "waiting", "launching"}:
        return on(child, now=now)
    return _end(msgspec.structs.replace(child, wanted=True), how, now=now, rules=rules)


def on(child: SupervisedDaemon, *, now: float) -> Change:
    """It is to run; one that waits for its start does not wait longer."""
    if child.phase in {"off", "left", "waiting"}:
        return SupervisedDaemon(phase="waiting", due=now), ()
    if child.phase == "launching":  # the request to end was cancelled in time
        return msgspec.structs.replace(child, wanted=True, asked=None), ()
    return msgspec.structs.replace(child, wanted=True), ()


def renew(child: SupervisedDaemon) -> Change:
    """It is to take on its settings as they are now."""
    return child, ("renew",) if child.phase in {"running", "standby"} else ()


def launched(child: SupervisedDaemon, *, now: float, rules: RestartRules) -> Change:
    """Its process is there."""
    child = msgspec.structs.replace(child, phase="starting", sign=now)
    if child.asked is None:
        return child, ()
    how: How = child.asked if child.asked != "kill" else "fast"
    return _end(msgspec.structs.replace(child, asked=None), how, now=now, rules=rules)


def heard(child: SupervisedDaemon, *, now: float, ready: bool, standby: bool) -> SupervisedDaemon:
    """It sent a heartbeat, and perhaps that it serves or stands by."""
    child = msgspec.structs.replace(child, sign=now)
    if ready and child.phase in {"starting", "running", "standby"}:
        return msgspec.structs.replace(child, phase="standby" if standby else "running")
    return child


def ended(child: SupervisedDaemon, status: int, *, now: float, rules: RestartRules) -> SupervisedDaemon:
    """
    Its process has ended, with an exit status or minus the number of a signal; or it could not be started.
    """
    if not child.wanted:
        return SupervisedDaemon(phase="off", wanted=False)
    if child.phase == "stopping" or status == EXIT_RENEWED:
        return SupervisedDaemon(phase="waiting", due=now)
    verdict = after_end(
        rules.backoff,
        recover=rules.recover,
        failures=child.failures,
        ran_s=now - child.began,
        status=status,
    )
    if isinstance(verdict, Leave):
        return SupervisedDaemon(phase="left", failures=child.failures + 1, left=verdict.reason)
    return SupervisedDaemon(phase="waiting", failures=verdict.failures, due=now + verdict.delay)


def tick(child: SupervisedDaemon, *, now: float, looked: float, period: float, rules: RestartRules) -> Change:
    """
    Time has passed; `looked` is when this was asked last, `period` after how long at the most it is asked.
    """
    if child.phase == "waiting" and now >= child.due:
        child = msgspec.structs.replace(child, phase="launching", began=now, sign=now, asked=None)
        return child, ("start",)
    if child.phase in {"stopping", "hung"} and now >= child.due:
        if child.phase == "hung" or child.asked in {"fast", "kill"}:
            return msgspec.structs.replace(child, asked="kill", due=now + rules.abort), ("kill",)
        return _end(child, "fast", now=now, rules=rules)
    if child.phase not in {"starting", "running", "standby"}:
        return child, ()
    if now - looked > 3 * period:  # this process was stopped itself: messages still have to be read
        return msgspec.structs.replace(child, sign=now), ()
    timeout = rules.start if child.phase == "starting" else rules.not_responding
    if not silent(now=now, last_sign=child.sign, timeout=timeout, looked=looked, period=period):
        return child, ()
    return msgspec.structs.replace(child, phase="hung", due=now + rules.abort), ("abort",)


def _end(child: SupervisedDaemon, how: How, *, now: float, rules: RestartRules) -> Change:
    match child.phase:
        case "off" | "waiting" | "left":
            return SupervisedDaemon(phase="off", wanted=False), ()
        case "launching":
            return msgspec.structs.replace(child, asked=_harsher(child.asked, how)), ()
        case "hung":  # it is being ended already, as harshly as its stacks allow
            return child, ()
        case _:
            pass
    if child.asked is not None and _HARSHNESS.index(child.asked) >= _HARSHNESS.index(how):
        return child, ()
    patience = {"peaceful": math.inf, "graceful": rules.graceful, "fast": rules.fast}[how]
    return msgspec.structs.replace(child, phase="stopping", asked=how, due=now + patience), (how,)


def _harsher(one: Ask | None, other: Ask) -> Ask:
    return one if one is not None and _HARSHNESS.index(one) > _HARSHNESS.index(other) else other
