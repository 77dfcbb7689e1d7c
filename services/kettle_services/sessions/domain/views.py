"""A session as people see it."""

from collections import Counter
from collections.abc import Sequence

from kettle_services.sessions.domain.profiles import Profile
from kettle_services.sessions.domain.session import InteractiveSession
from kettle_wire.commands.sessions import (
    MemberView,
    ProfileView,
    SessionScheduler,
    SessionView,
    WaitingMembers,
)

_LISTED = 1_000
"""Members that are shown one by one."""


def view(
    session: InteractiveSession, waits: Sequence[WaitingMembers] = (), *, members: bool = True
) -> SessionView:
    """`waits`: why members wait, as the pool says; without it what the record says of them."""
    workers = [each for each in session.workers.values() if not each.ending]
    running = sum(each.status == "running" for each in workers)
    wanted = session.target.workers
    waits = list(waits) or _recorded(session)
    head, plan = session.head, session.plan
    size = plan.worker or plan.head
    shown = list(session.members.items())[:_LISTED] if members else []
    return SessionView(
        id=session.id,
        name=session.name,
        owner=session.owner,
        kind=session.kind,
        profile=plan.profile,
        state=session.state,
        reason=_reason(session, waits),
        outcome=session.outcome if session.ended else "",
        wanted=wanted,
        running=running,
        waiting=max(0, wanted - running) if not session.ended else 0,
        summary=_summary(session, wanted, running, waits),
        waits=waits,
        target=session.target,
        image=plan.image,
        site=session.site,
        spread=plan.spread,
        cpus=size.cpus,
        memory=size.memory,
        gpus=size.gpus,
        disk=size.disk,
        created=session.created,
        ends=session.created + session.target.life if session.target.life else 0.0,
        ended=session.ended,
        scheduler=SessionScheduler(job=head.job if head is not None else "", contact=session.contact),
        versions=session.versions,
        services=plan.head.services,
        members=[
            MemberView(
                number=number,
                role=each.role,
                job=each.job,
                status=each.status,
                since=each.since,
                site=each.site,
                machine=each.machine,
                reason=each.reason,
                retiring=bool(each.retiring or each.ending),
            )
            for number, each in shown
        ],
        lost=session.lost,
        restarts=session.restarts,
        events=session.events,
    )


def _recorded(session: InteractiveSession) -> list[WaitingMembers]:
    reasons = Counter(
        f"held: {each.reason}"
        for each in session.members.values()
        if each.status == "held" and not each.ending
    )
    if session.refused:
        reasons[f"cannot be submitted: {session.refused}"] += 1
    return [WaitingMembers(count=count, reason=reason) for reason, count in reasons.most_common()]


def _reason(session: InteractiveSession, waits: Sequence[WaitingMembers]) -> str:
    """What is recorded, with the pool's own words for why the head waits."""
    waiting = session.head is not None and session.head.status == "idle"
    if waiting and waits and session.state in {"queued", "degraded"}:
        return f"{session.reason}: {waits[0].reason}"
    return session.reason


def _summary(session: InteractiveSession, wanted: int, running: int, waits: Sequence[WaitingMembers]) -> str:
    if session.ended:
        return f"{session.outcome}: {session.over}"
    if session.plan.worker is None:
        return session.state if not session.reason else f"{session.state}: {session.reason}"
    waiting = max(0, wanted - running)
    said = f"wanted {wanted}, running {running}"
    if not waiting:
        return said
    return f"{said}, {waiting} waiting" + (f": {waits[0].reason}" if waits else "")


def profile_view(name: str, profile: Profile) -> ProfileView:
    """A profile, without the commands that it runs."""
    return ProfileView(
        name=name,
        kind=profile.kind,
        title=profile.title,
        image=profile.image,
        site=profile.site,
        requirements=profile.requirements,
        workers=profile.workers,
        most_workers=profile.workers_allowed[1] if profile.has_workers else 0,
        cpus=profile.cpus,
        memory=profile.memory,
        gpus=profile.gpus,
        disk=profile.disk,
        cpus_allowed=list(profile.cpus_allowed or ()),
        memory_allowed=list(profile.memory_allowed or ()),
        gpus_allowed=list(profile.gpus_allowed or ()),
        disk_allowed=list(profile.disk_allowed or ()),
        services=profile.services,
        life=profile.life,
        idle=profile.idle,
    )
