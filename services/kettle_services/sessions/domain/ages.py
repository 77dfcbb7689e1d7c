"""When something of a session is due: retries, releases of held members, the replacement of old workers."""

from collections.abc import Iterator
from typing import Final

from kettle_services.sessions.domain.members import Member
from kettle_services.sessions.domain.session import InteractiveSession
from kettle_wire.codes import HoldCode
from kettle_wire.sessions import SessionPlan

_RETRY_S: Final = 1.0
_LONGEST_RETRY_S: Final = 120.0
_IN_A_ROW: Final = 2
_RELEASE_S: Final = 5.0
_LONGEST_RELEASE_S: Final = 600.0
_LEAD_S: Final = 120.0
"""A successor is ordered so long before a worker's time is over."""


def retry_at(session: InteractiveSession) -> float:
    """When another order may be given; a moment that is over: at any time."""
    if session.refusals:
        return session.refused_at + _doubled(_RETRY_S, session.refusals, _LONGEST_RETRY_S)
    end = session.head_end
    if end is not None and session.short_runs:
        return end.at + _doubled(_RETRY_S, session.short_runs, _LONGEST_RETRY_S)
    return 0.0


def worker_retry_at(session: InteractiveSession) -> float:
    """
    When workers may be ordered again, of which some have ended at once; a moment that is over: at any time.
    """
    if session.failures < _IN_A_ROW:  # anything may end once
        return retry_at(session)
    pause = _doubled(_RETRY_S, session.failures - 1, _LONGEST_RETRY_S)
    return max(retry_at(session), session.failed_at + pause)


def release_at(member: Member) -> float | None:
    """When a held member is released; None: never by itself, because a person holds it."""
    if member.hold_code == HoldCode.UserRequest:
        return None
    return member.since + _doubled(_RELEASE_S, member.releases + 1, _LONGEST_RELEASE_S)


def due_for_replacement(plan: SessionPlan, number: int, member: Member, now: float) -> bool:
    """Whether a worker's time is nearly over; workers that began together do not end together."""
    at = replacement_at(plan, number, member)
    return at is not None and now >= at


def replacement_at(plan: SessionPlan, number: int, member: Member) -> float | None:
    """When a worker has to have a successor; None: never."""
    if not plan.worker_life or member.status != "running":
        return None
    lead = min(_LEAD_S + plan.grace, plan.worker_life / 2)
    stagger = plan.worker_life / 10 * (number * 7 % 10) / 10
    return member.started + plan.worker_life - lead - stagger


def next_time(session: InteractiveSession) -> float | None:
    """The next moment at which something may be due without anything happening; None: there is none."""
    return min(_times(session), default=None) if not session.ended else None


def _times(session: InteractiveSession) -> Iterator[float]:
    if session.closing:
        return
    if session.target.life:
        yield session.created + session.target.life
    yield from filter(None, (retry_at(session), worker_retry_at(session)))
    for number, each in session.members.items():
        if not each.ending:
            yield from _times_of(session.plan, number, each)


def _times_of(plan: SessionPlan, number: int, member: Member) -> Iterator[float]:
    if member.status == "held" and (release := release_at(member)) is not None:
        yield release
    if member.retiring:
        yield member.retiring + plan.grace
    elif member.replaced:
        yield member.started + plan.worker_life - plan.grace
    elif member.role == "worker" and (due := replacement_at(plan, number, member)) is not None:
        yield due


def _doubled(first: float, times: int, longest: float) -> float:
    return min(longest, first * 2.0 ** min(times - 1, 20))
