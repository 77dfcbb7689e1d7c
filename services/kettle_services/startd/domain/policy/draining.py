"""
Draining: empties the machine on request, for example for maintenance, and takes it into use again.

    peaceful   jobs end by themselves
    graceful   jobs have their retirement time, then their vacate time
    quick      jobs have their vacate time
    fast       jobs are killed

Claims that come while the machine drains, by the START of the request, do not delay the drain: they stay until the
earlier claims have ended, and are then ended in the same way.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from kettle.classad import ClassAd, EvaluationFailed, evaluate, is_true, parse
from kettle_services.startd.domain.ads import question, slot_ads
from kettle_services.startd.domain.claims.requests import end_claim
from kettle_services.startd.domain.state.changes import Change, ClaimRemoved, Drained, Draining, Reopened
from kettle_services.startd.domain.state.claim import Claim, DrainInForce, Now, Speed, StopOrder
from kettle_services.startd.domain.state.machine import Machine
from kettle_services.startd.domain.state.slot_transitions import finish, retire
from kettle_wire.attempts import Ending
from kettle_wire.codes import VacateCode

_CALLED_OFF: Final = frozenset({VacateCode.StartdDraining, VacateCode.StartdPreemptingClaimRank})
"""
Why jobs retire that go on after all when draining is cancelled: who waited for their slots was sent away by it.
"""
_ORDER: Final[tuple[Speed, ...]] = ("peaceful", "graceful", "quick", "fast")


class DrainRefused(Exception):  # noqa: N818 - a refusal is an answer, not an error
    """A request that is refused; nothing has changed."""


def begin(machine: Machine, wish: DrainInForce, check: str, now: Now) -> list[Change]:
    """
    Begin to empty the machine, or hurry.  A repeat changes nothing.

    `check` is an expression that has to be true of every slot, empty: there is none.

    Raises:
        DrainRefused: the machine is drained as fast already, or a slot does not meet `check`.
    """
    known = machine.drain
    if known is not None and known.id == wish.id:
        return []
    if known is not None and _ORDER.index(wish.speed) <= _ORDER.index(known.speed):
        raise DrainRefused(f"the machine is being drained already ({known.speed}, request {known.id})")
    if check and (name := _unfit(machine, check, now)):
        raise DrainRefused(f"the slot {name} does not meet the check {check}; nothing was drained")
    staying = [claim.key.claim for claim in machine.shared] if known is None else known.staying
    wish = msgspec.structs.replace(wish, staying=staying, at=now.time)
    waiting = [ClaimRemoved(claim.key.claim) for claim in machine.waiting.values()]
    return [Draining(wish), *waiting, *_end(machine, wish, _present(machine, wish), now)]


def require_idle(machine: Machine, wish: DrainInForce, *, results: int) -> None:
    """
    Raise DrainRefused if a slot is claimed, somebody waits for one, or `results` of jobs have not arrived at their access
    points; not for a repeat, which has won already.
    """
    if machine.drain is not None and machine.drain.id == wish.id:
        return
    if claims := len(machine.shared) + len(machine.waiting):
        raise DrainRefused(f"the machine has {claims} claim(s); nothing was drained")
    if results:
        raise DrainRefused(f"the results of {results} job(s) have not arrived; nothing was drained")


def _unfit(machine: Machine, check: str, now: Now) -> str:
    """The name of a slot that does not meet the check; empty if all do."""
    expression = parse(check)
    for ad in slot_ads(machine, now=now.time):
        try:
            fit = is_true(evaluate(expression, ClassAd.from_wire(ad), None, now.context))
        except EvaluationFailed:
            fit = False
        if not fit:
            return str(ad["Name"])
    return ""


def proceed(machine: Machine, now: Now) -> list[Change]:
    """
    The consequences of claims that have ended since: later claims are ended, and the machine is taken into use again.
    """
    drain = machine.drain
    if drain is None or _present(machine, drain):
        return []
    if machine.shared:
        late = [claim for claim in machine.shared if not claim.ending]
        return _end(machine, drain, late, now)
    return [Drained(now.time)] if drain.resume else []


def cancel(machine: Machine, request: str, now: Now) -> list[Change]:
    """
    Take the machine into use again.  Jobs in their retirement time continue, those that were told to end do end.

    Raises:
        DrainRefused: it is not being drained, or by another request than the named one.
    """
    drain = machine.drain
    if drain is None:
        raise DrainRefused("the machine is not being drained")
    if request and request != drain.id:
        raise DrainRefused(f"the machine is being drained by request {drain.id}, not by {request}")
    return [
        Drained(now.time),
        *(
            Reopened(claim.key.claim, now.time)
            for claim in machine.claims.values()
            if claim.then is not None and claim.then.ending.code in _CALLED_OFF and not claim.preempting
        ),
    ]


def _present(machine: Machine, drain: DrainInForce) -> list[Claim]:
    return [claim for name in drain.staying if (claim := machine.claims.get(name)) is not None]


def _end(machine: Machine, drain: DrainInForce, claims: Iterable[Claim], now: Now) -> list[Change]:
    reason = f"the machine is being drained{f': {drain.reason}' if drain.reason else ''}"
    stop = StopOrder(Ending(code=VacateCode.StartdDraining, reason=reason), hard=drain.speed == "fast")
    changes: list[Change] = []
    for claim in claims:
        if drain.speed == "peaceful":
            changes += finish(claim, reason, now)
        elif drain.speed == "graceful":
            changes += retire(claim, stop, question(machine, claim, now), now)
        else:
            changes += end_claim(claim, stop, now)
    return changes
