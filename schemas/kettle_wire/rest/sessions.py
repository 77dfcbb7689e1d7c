"""Interactive sessions over HTTP: clusters of Dask, notebooks, and programs with which people work."""

from typing import Annotated

import msgspec

from kettle_wire.commands.sessions import (
    NewSession,
    SessionProfiles,
    SessionScheduler,
    WaitingMembers,
)
from kettle_wire.rest.route import Moment, Route
from kettle_wire.sessions import (
    Count,
    MemberRole,
    MemberStatus,
    SessionAdapt,
    SessionKind,
    SessionOutcome,
    SessionState,
    SessionTarget,
    Shares,
    Span,
)

SessionPlace = Annotated[
    str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
]
"""The id of a session, or the name of one."""
_Text = Annotated[str, msgspec.Meta(max_length=256)]


class ListWorkSessions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List one's own interactive sessions, and those that are shared with one, the oldest first."""

    everybody: bool = False
    """The sessions of all people: for administrators."""
    ended: bool = False
    """Also those that are over; they are listed for a day."""


class GetWorkSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Get a session, with its members and why they wait."""

    id: SessionPlace


class WorkSessionMember(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job of a session."""

    number: int
    role: MemberRole
    job: str = ""
    """Absent: it is not in the queue yet."""
    status: MemberStatus
    since: Moment
    site: str = ""
    machine: str = ""
    reason: str = ""
    retiring: bool = False


class WorkSession(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An interactive session."""

    id: str
    name: str
    owner: str
    kind: SessionKind
    profile: str
    state: SessionState
    reason: str = ""
    """Why it is not ready, or how it ended; a sentence."""
    outcome: SessionOutcome = ""
    wanted: int
    """Workers."""
    running: int
    waiting: int
    summary: str
    """All of it in one line, as `wanted 20, running 3, 17 waiting: ...`"""
    waits: list[WaitingMembers] = []
    target: SessionTarget
    image: str = ""
    site: str = ""
    spread: bool = False
    cpus: int = 1
    memory: int = 0
    gpus: int = 0
    disk: int = 1024
    created: Moment
    ends: Moment | None = None
    ended: Moment | None = None
    scheduler: SessionScheduler = SessionScheduler()
    versions: dict[str, str] = {}
    services: str = ""
    members: list[WorkSessionMember] = []
    lost: int = 0
    restarts: int = 0
    events: int = 0


class WorkSessions(msgspec.Struct, frozen=True, kw_only=True):
    """Without their members."""

    sessions: list[WorkSession]


class BeginWorkSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Begin a session. The answer comes when it is recorded, before anything of it runs; files are base64, and shown to its own jobs alone.
    """


class ChangeWorkSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have a session have another size, other limits, or be shared with others."""

    id: SessionPlace


class WorkersWanted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many workers."""

    workers: Count


class WorkSessionChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be otherwise; what is left out stays."""

    size: WorkersWanted | None = None
    """It is not adapted any more then."""
    adapt: SessionAdapt | None = None
    fixed: bool = False
    """Keep as many workers as are wanted now."""
    life: Span | None = None
    """Seconds from its beginning; 0: without end."""
    idle: Span | None = None
    """Seconds without use after which it ends; 0: never."""
    share: Shares | None = None


class RestartWorkSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Start the scheduler or server of a session again, and its workers with it."""

    id: SessionPlace


class StopWorkSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """End a session and its jobs."""

    id: SessionPlace
    reason: _Text = ""


class FollowWorkSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Follow what happens to a session, until it is over. The id of each event is its number: who comes back with Last-Event-ID, or
    with `after`, misses none.
    """

    id: SessionPlace
    after: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Begin behind so many; absent: with what comes."""


class WorkSessionEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something has happened to a session."""

    number: int
    time: Moment
    event: str
    """As `interactive.state_changed`."""
    sentence: str
    state: SessionState | None = None
    """Of `interactive.state_changed`."""
    reason: str = ""


class ListSessionProfiles(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List the kinds of sessions that there are to be had."""


class SignSessionCertificate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have a certificate by which the members of a session know a program of somebody who may use it."""

    id: SessionPlace


class CertificateRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A certificate request in PEM."""

    request: Annotated[str, msgspec.Meta(max_length=16 * 1024)]


class SignedCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """PEM, both."""

    certificate: str
    authority: str


_CHANGES = (404, 409, 413, 415, 422)
LIST_WORK_SESSIONS = Route(
    "GET", "/sessions", "list_sessions", parameters=ListWorkSessions, reply=WorkSessions
)
BEGIN_WORK_SESSION = Route(
    "POST",
    "/sessions",
    "create_session",
    parameters=BeginWorkSession,
    body=NewSession,
    reply=WorkSession,
    level="WRITE",
    errors=(409, 413, 415, 422),
    headers=("Idempotency-Key",),
    creates=True,
)
GET_WORK_SESSION = Route(
    "GET", "/sessions/{id}", "get_session", parameters=GetWorkSession, reply=WorkSession, errors=(404,)
)
CHANGE_WORK_SESSION = Route(
    "PATCH",
    "/sessions/{id}",
    "change_session",
    parameters=ChangeWorkSession,
    body=WorkSessionChange,
    reply=WorkSession,
    level="WRITE",
    errors=_CHANGES,
    headers=("Idempotency-Key",),
)
RESTART_WORK_SESSION = Route(
    "POST",
    "/sessions/{id}:restart",
    "restart_session",
    parameters=RestartWorkSession,
    reply=WorkSession,
    level="WRITE",
    errors=(404, 409, 422),
    headers=("Idempotency-Key",),
)
STOP_WORK_SESSION = Route(
    "DELETE",
    "/sessions/{id}",
    "stop_session",
    parameters=StopWorkSession,
    reply=WorkSession,
    level="WRITE",
    errors=(404, 409, 422),
    headers=("Idempotency-Key",),
)
FOLLOW_WORK_SESSION = Route(
    "GET",
    "/sessions/{id}/events",
    "follow_session",
    parameters=FollowWorkSession,
    reply=WorkSessionEvent,
    errors=(404,),
    stream=True,
    headers=("Last-Event-ID",),
)
SIGN_SESSION_CERTIFICATE = Route(
    "POST",
    "/sessions/{id}/certificate",
    "sign_session_certificate",
    parameters=SignSessionCertificate,
    body=CertificateRequest,
    reply=SignedCertificate,
    level="WRITE",
    errors=(404, 413, 415, 422),
)
LIST_SESSION_PROFILES = Route(
    "GET", "/session-profiles", "list_session_profiles", parameters=ListSessionProfiles, reply=SessionProfiles
)
