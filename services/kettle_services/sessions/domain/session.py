"""
What an interactive session is after its events: a value, and one function that makes the next value of it.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from kettle_services.sessions.domain.members import Member
from kettle_wire.events.interactive import (
    InteractiveChanged,
    InteractiveClosing,
    InteractiveCreated,
    InteractiveEnded,
    InteractiveEvent,
    InteractiveForgotten,
    InteractiveMembersEnding,
    InteractiveMembersOrdered,
    InteractiveMembersRefused,
    InteractiveMembersReleased,
    InteractiveMembersSeen,
    InteractiveMembersSubmitted,
    InteractiveRestarted,
    InteractiveSchedulerSeen,
    InteractiveStateChanged,
    InteractiveWorkersRetired,
    InteractiveWorkersRetiring,
    MemberChange,
)
from kettle_wire.sessions import SessionKind, SessionOutcome, SessionPlan, SessionState, SessionTarget

SHORT_S: Final = 10.0
"""A program that ran for less than this has not done anything."""
_APART_S: Final = 300.0
"""Failures of workers with so much time in between are not in a row."""


class HeadEnd(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the last head ended."""

    at: float
    reason: str
    exit: int | None = None
    removed_by: str = ""
    ordered: bool = False
    """We ended it."""


class InteractiveSession(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session."""

    id: str
    owner: str
    name: str
    kind: SessionKind
    plan: SessionPlan
    target: SessionTarget
    created: float
    frame: int
    """The last frame of the schedd's shard of which something is recorded."""
    members: dict[int, Member] = {}
    next_member: int = 1
    next_batch: int = 1
    head_site: str = ""
    """Where the head runs, or ran last."""
    head_ran: bool = False
    """The head has run."""
    head_end: HeadEnd | None = None
    """How the last one ended, until another one runs."""
    short_runs: int = 0
    """Heads in a row that ran for a moment only."""
    contact: str = ""
    versions: dict[str, str] = {}
    state: SessionState = "requested"
    reason: str = ""
    refused: str = ""
    """Why the last order was refused."""
    refused_at: float = 0.0
    refusals: int = 0
    """In a row."""
    lost: int = 0
    missing: int = 0
    """Workers that were lost, and in whose place none runs yet."""
    failures: int = 0
    """Workers in a row whose programs ended at once."""
    failed_at: float = 0.0
    failure: str = ""
    """How the last of them ended."""
    restarts: int = 0
    closing: float = 0.0
    outcome: SessionOutcome = ""
    over: str = ""
    """Why it is closed."""
    ended: float = 0.0
    events: int = 0

    @property
    def head(self) -> Member | None:
        """The head, if there is one that is not being ended."""
        return next((each for each in self.members.values() if each.role == "head" and not each.ending), None)

    @property
    def workers(self) -> dict[int, Member]:
        """All workers, also those that go."""
        return {number: each for number, each in self.members.items() if each.role == "worker"}

    @property
    def site(self) -> str:
        """Where workers are to run; empty: anywhere."""
        return self.plan.site or ("" if self.plan.spread else self.head_site)


def evolve(
    session: InteractiveSession | None, event: InteractiveEvent, at: float
) -> InteractiveSession | None:
    """
    The session after an event, which was recorded at a time in seconds since the epoch; None: it is forgotten.
    """
    if isinstance(event, InteractiveForgotten):
        return None
    if isinstance(event, InteractiveCreated):
        return InteractiveSession(
            id=event.session,
            owner=event.owner,
            name=event.name,
            kind=event.kind,
            plan=event.plan,
            target=event.target,
            created=at,
            frame=event.followed,
            events=1,
        )
    assert session is not None, "the first event of a session is that it was created"
    return _with(_FOLDS[type(event)](session, event, at), events=session.events + 1)


def _with(session: InteractiveSession, **fields: Any) -> InteractiveSession:
    return msgspec.structs.replace(session, **fields)


def _each(
    session: InteractiveSession, numbers: Iterable[int], change: Callable[[Member], Member]
) -> dict[int, Member]:
    """All members, of which these are others; those that are not there any more do not come back."""
    members = dict(session.members)
    for number in numbers:
        if number in members:
            members[number] = change(members[number])
    return members


def _changed(session: InteractiveSession, event: InteractiveChanged, _at: float) -> InteractiveSession:
    fewer = event.target.workers < session.target.workers
    return _with(session, target=event.target, missing=0 if fewer else session.missing)


def _ordered(session: InteractiveSession, event: InteractiveMembersOrdered, at: float) -> InteractiveSession:
    members = _each(session, event.replaced, lambda each: msgspec.structs.replace(each, replaced=True))
    for place in range(event.count):
        replaces = event.replaced[place : place + 1]
        members[event.first + place] = Member(
            role=event.role, batch=event.batch, place=place, since=at, replaces=replaces
        )
    return _with(
        session,
        members=members,
        next_member=event.first + event.count,
        next_batch=event.batch + 1,
    )


def _submitted(
    session: InteractiveSession, event: InteractiveMembersSubmitted, at: float
) -> InteractiveSession:
    members = dict(session.members)
    for number, each in session.members.items():
        if each.batch == event.batch and not each.job:
            job = f"{event.cluster}.{each.place}"
            members[number] = msgspec.structs.replace(each, job=job, status="idle", since=at)
    return _with(session, members=members, frame=event.frame, refused="", refusals=0)


def _refused(session: InteractiveSession, event: InteractiveMembersRefused, at: float) -> InteractiveSession:
    members: dict[int, Member] = {}
    back: list[int] = []
    for number, each in session.members.items():
        if each.batch == event.batch and not each.job:
            back += each.replaces
        else:
            members[number] = each
    for number in back:
        if number in members:
            members[number] = msgspec.structs.replace(members[number], replaced=False)
    return _with(session, members=members, refused=event.reason, refused_at=at, refusals=session.refusals + 1)


def _seen(session: InteractiveSession, event: InteractiveMembersSeen, at: float) -> InteractiveSession:
    session = _with(session, frame=max(session.frame, event.frame))
    for change in event.changes:
        if change.number in session.members:
            session = _one_seen(session, change, at)
    return session


def _one_seen(session: InteractiveSession, change: MemberChange, at: float) -> InteractiveSession:
    before = session.members[change.number]
    members = dict(session.members)
    if change.status == "gone":
        del members[change.number]
    else:
        members[change.number] = before.changed(change, at)
    session = _with(session, members=members)
    if before.role == "head":
        return _head_seen(session, before, change, at)
    ended = change.status == "gone" and change.exit is not None and before.started
    if ended and before.stays and at - before.started < SHORT_S:
        row = session.failures + 1 if at - session.failed_at < _APART_S else 1
        session = _with(session, failures=row, failed_at=at, failure=change.reason)
    stopped = before.status == "running" and change.status != "running" and before.stays
    if stopped or (change.status == "gone" and before.stays):
        return _with(session, lost=session.lost + 1, missing=session.missing + 1)
    if change.status == "running" and before.status != "running":
        return _with(session, missing=max(0, session.missing - 1))
    return session


def _head_seen(
    session: InteractiveSession, before: Member, change: MemberChange, at: float
) -> InteractiveSession:
    if change.status == "running":
        site = change.site or before.site or session.head_site
        return _with(session, head_ran=True, head_site=site, head_end=None, contact="", versions={})
    if change.status != "gone":
        return session
    if session.head is not None:  # that was the one before
        return session
    short = before.status == "running" and at - before.started < SHORT_S
    end = HeadEnd(
        at=at,
        reason=change.reason,
        exit=change.exit,
        removed_by="" if before.ending else change.removed_by,
        ordered=before.ending,
    )
    return _with(
        session,
        head_end=end,
        contact="",
        short_runs=session.short_runs + 1 if short and not before.ending else 0,
    )


def _retiring(
    session: InteractiveSession, event: InteractiveWorkersRetiring, at: float
) -> InteractiveSession:
    return _with(
        session,
        members=_each(session, event.numbers, lambda each: msgspec.structs.replace(each, retiring=at)),
    )


def _retired(session: InteractiveSession, event: InteractiveWorkersRetired, _at: float) -> InteractiveSession:
    return _with(
        session,
        members=_each(session, event.numbers, lambda each: msgspec.structs.replace(each, retired=True)),
    )


def _ending(session: InteractiveSession, event: InteractiveMembersEnding, _at: float) -> InteractiveSession:
    return _with(
        session,
        members=_each(session, event.numbers, lambda each: msgspec.structs.replace(each, ending=True)),
    )


def _released(
    session: InteractiveSession, event: InteractiveMembersReleased, at: float
) -> InteractiveSession:
    def again(each: Member) -> Member:
        return msgspec.structs.replace(each, releases=each.releases + 1, since=at)

    return _with(session, members=_each(session, event.numbers, again))


def _scheduler_seen(
    session: InteractiveSession, event: InteractiveSchedulerSeen, _at: float
) -> InteractiveSession:
    return _with(session, contact=event.contact, versions=event.versions)


def _restarted(session: InteractiveSession, event: InteractiveRestarted, _at: float) -> InteractiveSession:
    del event
    ends = _each(session, session.members, lambda each: msgspec.structs.replace(each, ending=True))
    return _with(
        session,
        members=ends,
        restarts=session.restarts + 1,
        contact="",
        versions={},
        head_end=None,
        short_runs=0,
        missing=0,
        failures=0,
        refused="",
        refusals=0,
    )


def _state_changed(
    session: InteractiveSession, event: InteractiveStateChanged, _at: float
) -> InteractiveSession:
    return _with(session, state=event.state, reason=event.reason)


def _closing(session: InteractiveSession, event: InteractiveClosing, at: float) -> InteractiveSession:
    return _with(session, closing=at, outcome=event.outcome, over=event.reason)


def _ended(session: InteractiveSession, event: InteractiveEnded, at: float) -> InteractiveSession:
    return _with(session, ended=at, outcome=event.outcome, over=event.reason, members={}, contact="")


_FOLDS: Final[Mapping[type, Callable[..., InteractiveSession]]] = {
    InteractiveChanged: _changed,
    InteractiveMembersOrdered: _ordered,
    InteractiveMembersSubmitted: _submitted,
    InteractiveMembersRefused: _refused,
    InteractiveMembersSeen: _seen,
    InteractiveWorkersRetiring: _retiring,
    InteractiveWorkersRetired: _retired,
    InteractiveMembersEnding: _ending,
    InteractiveMembersReleased: _released,
    InteractiveSchedulerSeen: _scheduler_seen,
    InteractiveRestarted: _restarted,
    InteractiveStateChanged: _state_changed,
    InteractiveClosing: _closing,
    InteractiveEnded: _ended,
}
