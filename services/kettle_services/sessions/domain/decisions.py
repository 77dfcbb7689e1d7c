"""
What is to be done about a session: the events that follow from its state, the time, and what its scheduler has said last.

Pure. The wanted number of workers is on its way or running, none is submitted twice, and none goes that holds something, unless its
grace time is over.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from kettle_services.sessions.domain.ages import due_for_replacement, release_at, retry_at, worker_retry_at
from kettle_services.sessions.domain.members import Member
from kettle_services.sessions.domain.session import HeadEnd, InteractiveSession, evolve
from kettle_services.sessions.domain.standing import standing
from kettle_wire.events.interactive import (
    InteractiveChanged,
    InteractiveClosing,
    InteractiveEnded,
    InteractiveEvent,
    InteractiveMembersEnding,
    InteractiveMembersOrdered,
    InteractiveMembersReleased,
    InteractiveStateChanged,
    InteractiveWorkersRetired,
    InteractiveWorkersRetiring,
)

SILENT_S: Final = 60.0
"""A scheduler that is no job, and that says nothing for so long, is gone."""
SHORT_RUNS: Final = 3
"""Heads in a row that run for a moment only, after which a session is given up."""
_TURNS: Final = 50
"""So often at most something follows from what was decided; more is a mistake here."""


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What the program of the head said last; None of it is recorded, because it says it again."""

    workers: Mapping[str, float] = {}
    """By job since how many seconds it has had nothing to do."""
    retired: frozenset[str] = frozenset()
    target: int | None = None
    idle_since: float = 0.0
    """Since when nobody has used the session, seconds since the epoch; 0: it is in use, or has not said."""
    at: float = 0.0
    """When it said that, or since when it is listened to; seconds since the epoch."""


NOTHING: Final = Heard()


def decided(
    session: InteractiveSession, now: float, heard: Heard = NOTHING
) -> tuple[list[InteractiveEvent], InteractiveSession]:
    """All events that follow now, and the session after them."""
    found: list[InteractiveEvent] = []
    for _ in range(_TURNS):
        events = _step(session, now, heard)
        if not events:
            return found, session
        for event in events:
            after = evolve(session, event, now)
            assert after is not None, "no decision has a session be forgotten"
            session = after
        found += events
    raise AssertionError(f"session {session.id} does not come to rest: {found[-3:]}")


def _step(session: InteractiveSession, now: float, heard: Heard) -> list[InteractiveEvent]:
    if session.ended:
        return _told(session)
    if session.closing:
        return _closed(session) or _told(session)
    for decide in (_over, _head, _target, _workers, _excess, _retirements, _replacements, _releases):
        if events := decide(session, now, heard):
            return events
    return _told(session)


def _told(session: InteractiveSession) -> list[InteractiveEvent]:
    state, reason = standing(session)
    if (state, reason) == (session.state, session.reason):
        return []
    return [InteractiveStateChanged(state=state, reason=reason)]


def _closed(session: InteractiveSession) -> list[InteractiveEvent]:
    staying = [number for number, each in session.members.items() if not each.ending]
    if staying:
        return [InteractiveMembersEnding(numbers=staying, reason=session.over)]
    if not session.members:
        return [InteractiveEnded(outcome=session.outcome, reason=session.over)]
    return []


def _over(session: InteractiveSession, now: float, heard: Heard) -> list[InteractiveEvent]:
    target = session.target
    if target.life and now >= session.created + target.life:
        return [InteractiveClosing(outcome="expired", reason=f"its life of {_span(target.life)} is over")]
    if target.idle and heard.idle_since and now >= heard.idle_since + target.idle:
        return [InteractiveClosing(outcome="idle", reason=f"nobody has used it for {_span(target.idle)}")]
    if session.plan.local and now >= silent_at(session, heard):
        said = (
            f"its scheduler, which is a program of {session.owner}'s, has said nothing for {_span(SILENT_S)}"
        )
        return [InteractiveClosing(outcome="failed", reason=said)]
    return []


def silent_at(session: InteractiveSession, heard: Heard) -> float:
    """When a scheduler that is no job is given up unless it says something."""
    return max(session.created, heard.at) + SILENT_S


def _head(session: InteractiveSession, now: float, _heard: Heard) -> list[InteractiveEvent]:
    if session.head is not None or session.plan.local:
        return []
    if (end := session.head_end) is not None and (closing := _end_of(session, end)) is not None:
        return [closing]
    if now < retry_at(session):
        return []
    return [
        InteractiveMembersOrdered(
            batch=session.next_batch,
            role="head",
            first=session.next_member,
            count=1,
            site=session.plan.site,
        )
    ]


def _end_of(session: InteractiveSession, end: HeadEnd) -> InteractiveClosing | None:
    """Whether the session is over with its head; None: another one is started."""
    if end.ordered:
        return None
    if end.removed_by:
        return InteractiveClosing(outcome="stopped", reason=end.reason, by=end.removed_by)
    if end.exit == 0:
        return InteractiveClosing(outcome="completed", reason="its program has ended with code 0")
    if end.exit is not None and end.exit > 0 and session.kind != "dask":
        return InteractiveClosing(outcome="failed", reason=f"its program has ended with code {end.exit}")
    if session.short_runs >= SHORT_RUNS:
        return InteractiveClosing(
            outcome="failed", reason=f"its program ended {session.short_runs} times at once: {end.reason}"
        )
    return None


def _target(session: InteractiveSession, now: float, heard: Heard) -> list[InteractiveEvent]:
    """
    What the scheduler wants, within what it may; before it has said something, no less than the smallest number.

    It says another number whenever its load is another: that is recorded when something else is to be done for it.
    """
    adapt, target = session.target.adapt, session.target
    if adapt is None or session.plan.worker is None:
        return []
    wanted = target.workers if heard.target is None else heard.target
    wanted = max(adapt.minimum, min(adapt.maximum, wanted))
    if wanted == target.workers:
        return []
    new = msgspec.structs.replace(target, workers=wanted)
    after = msgspec.structs.replace(session, target=new)
    if _to_be_done(session, now, heard) == _to_be_done(after, now, heard):
        return []
    return [InteractiveChanged(target=new, by="scheduler", what=f"{wanted} workers")]


def _to_be_done(
    session: InteractiveSession, now: float, heard: Heard
) -> tuple[list[InteractiveEvent], list[InteractiveEvent]]:
    return _workers(session, now, heard), _excess(session, now, heard)


def _workers(session: InteractiveSession, now: float, _heard: Heard) -> list[InteractiveEvent]:
    missing = session.target.workers - sum(each.stays for each in session.workers.values())
    if (
        session.plan.worker is None
        or missing <= 0
        or now < worker_retry_at(session)
        or not _may_begin(session)
    ):
        return []
    return [_order(session, missing, [])]


def _may_begin(session: InteractiveSession) -> bool:
    """
    Workers wait for their head: they run where it does, and find it by its job, or by what it says if it is none.
    """
    if session.plan.local:
        return bool(session.contact)
    head = session.head
    return head is not None and (head.status == "running" or bool(head.job and session.head_ran))


def _order(session: InteractiveSession, count: int, replaced: list[int]) -> InteractiveMembersOrdered:
    return InteractiveMembersOrdered(
        batch=session.next_batch,
        role="worker",
        first=session.next_member,
        count=count,
        site=session.site,
        replaced=replaced,
    )


def _excess(session: InteractiveSession, _now: float, heard: Heard) -> list[InteractiveEvent]:
    staying = {number: each for number, each in session.workers.items() if each.stays}
    excess = len(staying) - session.target.workers
    if excess <= 0:
        return []
    waiting = [number for number, each in staying.items() if each.status in {"idle", "matched", "held"}]
    reason = f"{session.target.workers} workers are wanted"
    if waiting:
        return [InteractiveMembersEnding(numbers=sorted(waiting, reverse=True)[:excess], reason=reason)]
    running = [number for number, each in staying.items() if each.status == "running"]
    running.sort(key=lambda number: (-heard.workers.get(staying[number].job, 0.0), -number))
    return [InteractiveWorkersRetiring(numbers=running[:excess], reason=reason)] if running else []


def _retirements(session: InteractiveSession, now: float, heard: Heard) -> list[InteractiveEvent]:
    """Those that hold nothing any more go, and those whose time is over."""
    retiring = {n: each for n, each in session.workers.items() if each.retiring and not each.ending}
    safe = [n for n, each in retiring.items() if each.job in heard.retired and not each.retired]
    if safe:
        return [InteractiveWorkersRetired(numbers=safe)]
    hands_over = session.kind == "dask" or bool(session.contact)
    go = [
        n
        for n, each in retiring.items()
        if each.retired
        or each.status != "running"
        or now >= each.retiring + session.plan.grace
        or not hands_over
    ]
    return [InteractiveMembersEnding(numbers=go, reason="it is not wanted any more")] if go else []


def _replacements(session: InteractiveSession, now: float, _heard: Heard) -> list[InteractiveEvent]:
    """
    Workers whose time is nearly over have a successor, and go when that runs, or when their time is over.
    """
    workers = session.workers
    due = [n for n, each in workers.items() if each.stays and due_for_replacement(session.plan, n, each, now)]
    if due and now >= worker_retry_at(session) and _may_begin(session):
        return [_order(session, len(due), due)]
    succeeded = [
        old
        for each in workers.values()
        if each.status == "running"
        for old in each.replaces
        if _still(workers.get(old))
    ]
    life = session.plan.worker_life
    late = [
        n
        for n, each in workers.items()
        if each.replaced and _still(each) and now >= each.started + life - session.plan.grace
    ]
    numbers = sorted({*succeeded, *late})
    return [InteractiveWorkersRetiring(numbers=numbers, reason="its time is nearly over")] if numbers else []


def _still(member: Member | None) -> bool:
    return member is not None and not member.retiring and not member.ending


def _releases(session: InteractiveSession, now: float, _heard: Heard) -> list[InteractiveEvent]:
    numbers = [
        n
        for n, each in session.members.items()
        if each.status == "held" and not each.ending and (at := release_at(each)) is not None and now >= at
    ]
    return [InteractiveMembersReleased(numbers=numbers)] if numbers else []


def _span(seconds: float) -> str:
    whole = round(seconds)
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if whole >= size and whole % size == 0:
            count = whole // size
            return f"{count} {unit}{'s' if count > 1 else ''}"
    return f"{seconds:g} seconds"
