"""What the events of interactive sessions say, in a sentence, and its meaning for colours."""

from kettle.terminal.quantities import counted
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

_COLOURS = {"ready": "running", "degraded": "warning", "ended": "", "queued": "idle"}
_WORDS = {
    "idle": "waits",
    "matched": "has a slot",
    "running": "runs",
    "held": "is held",
    "removing": "is being removed",
    "gone": "is gone",
}


def session_sentence(event: InteractiveEvent) -> tuple[str, str]:
    """What it says, and what colour that has."""
    match event:
        case InteractiveCreated(owner=owner, name=name, kind=kind):
            return f"{owner} has asked for the {kind} session {name}", "strong"
        case InteractiveStateChanged(state=state, reason=reason):
            return f"{state}: {reason}" if reason else state, _COLOURS.get(state, "")
        case InteractiveChanged(by=by, what=what):
            return f"{by} wants {what}", ""
        case InteractiveRestarted(by=by):
            return f"{by} has it started again", ""
        case InteractiveClosing(reason=reason):
            return f"is being stopped: {reason}", ""
        case InteractiveEnded(outcome=outcome, reason=reason):
            return f"ended ({outcome}): {reason}", "strong"
        case InteractiveForgotten():
            return "is not listed any more", ""
        case InteractiveSchedulerSeen(contact=contact):
            return f"its scheduler is reached at {contact}", ""
        case _:
            return _of_members(event)


def _of_members(event: InteractiveEvent) -> tuple[str, str]:
    match event:
        case InteractiveMembersOrdered(role=role, count=count):
            return f"{counted(count, role)} ordered", ""
        case InteractiveMembersSubmitted(cluster=cluster):
            return f"submitted as cluster {cluster}", ""
        case InteractiveMembersRefused(reason=reason):
            return f"the queue takes no more: {reason}", "warning"
        case InteractiveMembersSeen(changes=changes):
            return "; ".join(map(_change, changes[:3])) + (
                " ..." if len(changes) > len(changes[:3]) else ""
            ), ""
        case InteractiveWorkersRetiring(numbers=numbers, reason=reason):
            return f"{counted(len(numbers), 'worker')} to hand over what they hold: {reason}", ""
        case InteractiveWorkersRetired(numbers=numbers):
            return f"{counted(len(numbers), 'worker')} hold nothing any more", ""
        case InteractiveMembersEnding(numbers=numbers, reason=reason):
            return f"{counted(len(numbers), 'member')} to go: {reason}", ""
        case InteractiveMembersReleased(numbers=numbers):
            return f"{counted(len(numbers), 'held member')} released", ""
        case _:
            return type(event).__name__, ""


def _change(change: MemberChange) -> str:
    where = f" {change.machine}" if change.status == "matched" else ""
    why = f" ({change.reason})" if change.reason else ""
    return f"member {change.number} {_WORDS.get(change.status, change.status)}{where}{why}"
