"""
How a session stands, in a word and a sentence, as it is recorded; why jobs wait is asked of the pool and not recorded.
"""

from kettle_services.sessions.domain.members import Member
from kettle_services.sessions.domain.session import InteractiveSession
from kettle_wire.sessions import SessionState

HEADS = {"dask": "scheduler", "notebook": "server", "process": "program"}
"""What the head is called, by kind."""
_LONGEST = 500


def standing(session: InteractiveSession) -> tuple[SessionState, str]:
    """State and reason."""
    if session.ended:
        return "ended", session.over
    if session.closing:
        return "stopping", session.over
    if session.plan.local:
        return _local(session)
    head, what = session.head, HEADS[session.kind]
    if head is None or head.status == "ordered":
        return _without_head(session, what)
    if head.status == "held":
        held = f"its {what}, job {head.job}, is held: {head.reason}"[:_LONGEST]
        return ("degraded" if session.head_ran else "queued"), held
    if head.status == "idle":
        if session.head_ran:
            return "degraded", _lost(session, what, head)
        return "queued", f"its {what} waits as job {head.job}"
    if head.status == "matched":
        place = f" {head.machine}" if head.machine else ""
        return "starting", f"its {what} has the slot{place}: files and image are brought there"
    if session.kind == "dask" and not session.contact:
        return "starting", f"its {what} runs as job {head.job}, and has not said yet where it is reached"
    return _with_workers(session)


def _lost(session: InteractiveSession, what: str, head: Member) -> str:
    """Of a head that has lost its machine, or had to leave it for another job."""
    why = f" ({head.reason})" if head.reason else ""
    results = ", and with it what was computed" if session.kind == "dask" else ""
    return f"its {what} was lost{why}{results}; it waits as job {head.job} to run again"[:_LONGEST]


def _local(session: InteractiveSession) -> tuple[SessionState, str]:
    """Of a session whose scheduler is no job."""
    if not session.contact:
        whose = f"a program of {session.owner}'s"
        return "starting", f"its scheduler, which is {whose}, has not said yet where it is reached"
    return _with_workers(session)


def _without_head(session: InteractiveSession, what: str) -> tuple[SessionState, str]:
    if session.refused:
        refused = f"its {what} cannot be submitted: {session.refused}"[:_LONGEST]
        return ("degraded" if session.head_ran else "queued"), refused
    end = session.head_end
    if session.head_ran and (end is not None or session.head is not None):
        why = f" ({end.reason})" if end is not None and end.reason else ""
        return "degraded", f"its {what} was lost{why}: another one is started"[:_LONGEST]
    return "requested", ""


def _with_workers(session: InteractiveSession) -> tuple[SessionState, str]:
    workers = session.workers.values()
    held = [each for each in workers if each.status == "held" and not each.ending]
    if held:
        return "degraded", f"{_counted(held)} held: {held[0].reason}"[:_LONGEST]
    if session.refused:
        return "degraded", f"workers cannot be submitted: {session.refused}"[:_LONGEST]
    if session.missing and session.failures > 1:
        return "degraded", f"workers end at once, the last one so: {session.failure}"[:_LONGEST]
    if session.missing:
        lost = f"{session.missing} workers were" if session.missing > 1 else "a worker was"
        return "degraded", f"{lost} lost, and a new one is starting for each"
    return "ready", ""


def _counted(members: list[Member]) -> str:
    return "a worker is" if len(members) == 1 else f"{len(members)} workers are"
