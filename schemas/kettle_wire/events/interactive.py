"""
What happens to an interactive session, on the stream `session/<id>` of the shard `sessions.<schedd>`.

Members are numbers, which are used once in the life of a session; times are those of the frames unless said otherwise.
"""

import msgspec

from kettle_wire.events.base import Event
from kettle_wire.sessions import (
    MemberRole,
    MemberStatus,
    SessionKind,
    SessionOutcome,
    SessionPlan,
    SessionState,
    SessionTarget,
)


class InteractiveCreated(Event, frozen=True, tag="interactive.created/1"):
    """Somebody wants a session."""

    session: str
    owner: str
    """From the credential of who has asked."""
    name: str
    kind: SessionKind
    plan: SessionPlan
    target: SessionTarget
    followed: int
    """Frames of the schedd's shard up to this one have nothing of this session."""


class InteractiveChanged(Event, frozen=True, tag="interactive.changed/1"):
    """Another size, other limits of adaptation, another life, or other people with whom it is shared."""

    target: SessionTarget
    by: str
    """A person; `scheduler`: the session's own, within what `adapt` lets it."""
    what: str
    """Which parts are others, as a sentence has them."""


class InteractiveMembersOrdered(Event, frozen=True, tag="interactive.members_ordered/1"):
    """
    Jobs are to be submitted; their command has an id that is made of the session and this batch, so that they come once.
    """

    batch: int
    role: MemberRole
    first: int
    """The number of the first member; the others follow."""
    count: int
    site: str = ""
    replaced: list[int] = []
    """The members that go when these run."""


class InteractiveMembersSubmitted(Event, frozen=True, tag="interactive.members_submitted/1"):
    """The schedd has the jobs of a batch."""

    frame: int
    batch: int
    cluster: int


class InteractiveMembersRefused(Event, frozen=True, tag="interactive.members_refused/1"):
    """The schedd does not take the jobs of a batch."""

    batch: int
    code: str
    reason: str


class MemberChange(msgspec.Struct, frozen=True, array_like=True):
    """What has become of a member."""

    number: int
    status: MemberStatus
    reason: str = ""
    """Of `held` and `gone` why."""
    site: str = ""
    """Of `matched` where."""
    machine: str = ""
    exit: int | None = None
    """Of `gone`: the exit code of its program, or the number of the signal below zero; None: it did not end by itself."""
    code: int = 0
    """Of `held`: HoldReasonCode."""
    removed_by: str = ""
    """Of `gone`: who removed its job."""


class InteractiveMembersSeen(Event, frozen=True, tag="interactive.members_seen/1"):
    """What a frame of the schedd's shard says of the members, in its order."""

    frame: int
    changes: list[MemberChange]


class InteractiveWorkersRetiring(Event, frozen=True, tag="interactive.workers_retiring/1"):
    """The scheduler is asked to have these workers hand over what they hold."""

    numbers: list[int]
    reason: str


class InteractiveWorkersRetired(Event, frozen=True, tag="interactive.workers_retired/1"):
    """The scheduler says that these workers hold nothing that would be lost."""

    numbers: list[int]


class InteractiveMembersEnding(Event, frozen=True, tag="interactive.members_ending/1"):
    """The jobs of these members are to be removed."""

    numbers: list[int]
    reason: str


class InteractiveMembersReleased(Event, frozen=True, tag="interactive.members_released/1"):
    """Held members are released, because what held them may be gone."""

    numbers: list[int]


class InteractiveSchedulerSeen(Event, frozen=True, tag="interactive.scheduler_seen/1"):
    """The program of the head says where it is reached, and of which versions it is."""

    contact: str
    versions: dict[str, str] = {}


class InteractiveRestarted(Event, frozen=True, tag="interactive.restarted/1"):
    """The head is started again, and the workers with it."""

    by: str
    reason: str = ""


class InteractiveStateChanged(Event, frozen=True, tag="interactive.state_changed/1"):
    """What people are told of it has changed."""

    state: SessionState
    reason: str = ""


class InteractiveClosing(Event, frozen=True, tag="interactive.closing/1"):
    """The session is over as soon as its jobs have ended."""

    outcome: SessionOutcome
    reason: str
    by: str = ""
    """Empty: nobody; it came to this."""


class InteractiveEnded(Event, frozen=True, tag="interactive.ended/1"):
    """No job of it is left."""

    outcome: SessionOutcome
    reason: str


class InteractiveForgotten(Event, frozen=True, tag="interactive.forgotten/1"):
    """It is not listed any more; the log keeps it."""


InteractiveEvent = (
    InteractiveCreated
    | InteractiveChanged
    | InteractiveMembersOrdered
    | InteractiveMembersSubmitted
    | InteractiveMembersRefused
    | InteractiveMembersSeen
    | InteractiveWorkersRetiring
    | InteractiveWorkersRetired
    | InteractiveMembersEnding
    | InteractiveMembersReleased
    | InteractiveSchedulerSeen
    | InteractiveRestarted
    | InteractiveStateChanged
    | InteractiveClosing
    | InteractiveEnded
    | InteractiveForgotten
)
