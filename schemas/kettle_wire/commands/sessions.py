"""What people, and the jobs of sessions, ask the service of interactive sessions."""

from typing import Annotated, Final

import msgspec

from kettle_wire.endpoint import Caller, CommandId, Endpoint, Position, Repeat
from kettle_wire.job_tokens import NeededToken
from kettle_wire.jobs import JobId, Number
from kettle_wire.sessions import (
    Count,
    MemberRole,
    MemberStatus,
    SessionAdapt,
    SessionId,
    SessionKind,
    SessionName,
    SessionOutcome,
    SessionSize,
    SessionState,
    SessionTarget,
    Shares,
    Span,
    Word,
)

LONGEST_WAIT_S: Final = 20.0
LONGEST_AGENT_WAIT_S: Final = 10.0
LARGEST_FILES: Final = 64 * 1024
"""Bytes of all files of a session together."""
Text64 = Annotated[str, msgspec.Meta(max_length=LARGEST_FILES)]
_FileName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$")]
_Variable = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
_Text = Annotated[str, msgspec.Meta(max_length=256)]
_Which = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
"""The id of a session, or the name of an own one."""


class NewSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What somebody wants of a new session; what is left out is as the profile says."""

    kind: SessionKind
    profile: _Text = ""
    """Empty: the one that is called as the kind is."""
    name: SessionName | None = None
    """None: it is made of the kind and the session's id."""
    image: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    size: SessionSize = SessionSize()
    adapt: SessionAdapt | None = None
    site: _Text = ""
    spread: bool | None = None
    life: Span | None = None
    idle: Span | None = None
    share: Shares = []
    command: Annotated[list[Word], msgspec.Meta(max_length=100)] = []
    """Of the head; empty: that of the profile."""
    services: _Text = ""
    """Of the head, in the words of the submit command `services`; empty: those of the profile."""
    local: bool = False
    """
    Of the kind `dask`: its scheduler is a program of who begins it, and no job. That program reports (`ReportScheduler`), and workers come
    to it within its own network.
    """
    environment: Annotated[dict[_Variable, Word], msgspec.Meta(max_length=100)] = {}
    """Recorded, and shown to who may look at the session: secrets belong into `files`."""
    files: Annotated[dict[_FileName, Text64], msgspec.Meta(max_length=20)] = {}
    """
    Never recorded: kept beside the service until the session is over, for its jobs alone, which find them as `NAME.use` in the
    directory that `_CONDOR_CREDS` names.
    """
    tokens: Annotated[list[NeededToken], msgspec.Meta(max_length=8)] = []
    """That the head has, as those of `use_oauth_services`."""

    def __repr__(self) -> str:
        """Without what is in its files."""
        return f"NewSession({self.kind}, {self.profile or self.kind})"


class CreateSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Begin a session. `id` makes a repeat harmless."""

    id: CommandId
    new: NewSession


class MemberView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A member of a session that is not over."""

    number: int
    role: MemberRole
    job: str = ""
    """Empty: it is not in the queue yet."""
    status: MemberStatus
    since: float
    """Seconds since the epoch."""
    site: str = ""
    machine: str = ""
    reason: str = ""
    retiring: bool = False


class WaitingMembers(msgspec.Struct, frozen=True, kw_only=True):
    """Members that wait for one reason."""

    count: int
    reason: str


class SessionScheduler(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The program of the head."""

    job: str = ""
    contact: str = ""
    """Where it is reached, in its own words; empty: it has not said so yet."""


class SessionView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A session."""

    id: str
    name: str
    owner: str
    kind: SessionKind
    profile: str
    state: SessionState
    reason: str = ""
    """Of `queued`, `starting`, `degraded` and `ended` why, or how far it is; a sentence."""
    outcome: SessionOutcome = ""
    wanted: int
    """Workers."""
    running: int
    waiting: int
    summary: str
    """`wanted 20, running 3, 17 waiting: ...`"""
    waits: list[WaitingMembers] = []
    target: SessionTarget
    image: str = ""
    site: str = ""
    """Of its workers."""
    spread: bool = False
    cpus: int = 1
    memory: int = 0
    gpus: int = 0
    disk: int = 1024
    """Of each worker, or of the head where there are none."""
    created: float
    ends: float = 0.0
    """When its life is over; 0: never."""
    ended: float = 0.0
    scheduler: SessionScheduler = SessionScheduler()
    versions: dict[str, str] = {}
    services: str = ""
    """What its head publishes."""
    members: list[MemberView] = []
    lost: int = 0
    """Workers that were lost and replaced."""
    restarts: int = 0
    events: int = 0
    """How many there are of it; see `FollowSession`."""


class SessionTold(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded; this is how the session is then."""

    position: Position
    session: SessionView


class ListInteractive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List one's own sessions, and those that are shared with one."""

    everybody: bool = False
    """All sessions: for administrators."""
    ended: bool = False
    """Also those that are over."""


class InteractiveSessions(msgspec.Struct, frozen=True, kw_only=True):
    """The oldest first; without their members."""

    sessions: list[SessionView]


class ShowInteractive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Show one."""

    session: _Which


class ChangeInteractive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have a session have another size, other limits, or be shared with others; what is left out stays."""

    id: CommandId
    session: _Which
    workers: Count | None = None
    adapt: SessionAdapt | None = None
    fixed: bool = False
    """Not adapted any more."""
    life: Span | None = None
    idle: Span | None = None
    share: Shares | None = None


class RestartInteractive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Start the head again, and the workers with it."""

    id: CommandId
    session: _Which
    reason: _Text = ""


class StopInteractive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """End a session and its jobs. One that is over stays so."""

    id: CommandId
    session: _Which
    reason: _Text = ""


class FollowInteractive(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The events of a session behind so many; waits for some."""

    session: _Which
    after: Annotated[int, msgspec.Meta(ge=0)] = 0
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT_S)] = 0.0


class RecordedSessionEvent(msgspec.Struct, frozen=True, array_like=True):
    """One event, and when it was recorded, microseconds since the epoch."""

    at: int
    data: msgspec.Raw


class SessionNews(msgspec.Struct, frozen=True, kw_only=True):
    """What has happened."""

    events: list[RecordedSessionEvent]
    session: SessionView
    """As it is after all of its events."""


class ListProfiles(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which kinds of sessions there are to be had."""


class ProfileView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A named kind of session."""

    name: str
    kind: SessionKind
    title: str = ""
    image: str = ""
    site: str = ""
    requirements: str = ""
    workers: int = 0
    most_workers: int = 0
    cpus: int = 1
    memory: int = 1024
    gpus: int = 0
    disk: int = 1024
    cpus_allowed: list[int] = []
    """Smallest and largest."""
    memory_allowed: list[int] = []
    gpus_allowed: list[int] = []
    disk_allowed: list[int] = []
    services: str = ""
    life: float = 0.0
    idle: float = 0.0


class SessionProfiles(msgspec.Struct, frozen=True, kw_only=True):
    """By name; `problems`: what is wrong with a newer file, which is not in force then."""

    profiles: list[ProfileView]
    source: str = ""
    """The file; empty: those that are built in."""
    problems: list[str] = []


class SignCertificate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have a certificate of a session, by which those who may use it know each other. No key travels."""

    session: _Which
    request: Annotated[bytes, msgspec.Meta(max_length=16 * 1024)]
    """PEM of a certificate request."""


class SessionCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """PEM, both."""

    certificate: bytes
    authority: bytes


class AgentWorker(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as the scheduler knows it."""

    name: str
    """Its job."""
    state: Annotated[str, msgspec.Meta(max_length=32)] = "running"
    """`retired`: it holds nothing that would be lost."""
    idle_s: float = 0.0
    memory: int = 0
    """Bytes in use."""


class AgentReport(msgspec.Struct, frozen=True, kw_only=True):
    """What the program of the head says."""

    workers: Annotated[list[AgentWorker], msgspec.Meta(max_length=10_000)] = []
    target: Count | None = None
    """How many workers would be right; None: it does not know."""
    idle_s: float = 0.0
    """Since when nobody has used the session."""
    contact: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    versions: Annotated[dict[_Text, _Text], msgspec.Meta(max_length=50)] = {}
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_AGENT_WAIT_S)] = 0.0
    """Seconds that the answer may wait for something to do."""


class ReportScheduler(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the scheduler of a session says that is a program of its owner's, and no job."""

    session: _Which
    report: AgentReport


class AgentOrders(msgspec.Struct, frozen=True, kw_only=True):
    """What it is to do."""

    wanted: int
    retire: list[str]
    """Names of workers that are to hand over what they hold."""
    closing: bool


class MemberAsks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a running job of a session asks, by way of its shadow, which says which job that is."""

    session: SessionId
    job: JobId
    attempt: Number
    verb: Annotated[str, msgspec.Meta(max_length=32)]
    """`access`, `agent`, `certificate`, `files` or `show`."""
    body: Annotated[bytes, msgspec.Meta(max_length=4 * 1024 * 1024)]
    """The request, as it travels: `AgentReport`, `SignCertificate`, or nothing."""


class MemberAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The reply, as it travels."""

    body: bytes


class SessionFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files that its owner has given to a session."""

    files: dict[str, str]

    def __repr__(self) -> str:
        """Without what is in them."""
        return f"SessionFiles({', '.join(self.files)})"


_PEOPLE = (Caller.USER,)

CREATE_SESSION = Endpoint(
    "sessions",
    "create",
    CreateSession,
    SessionTold,
    callers=_PEOPLE,
    repeat=Repeat.FIRST_ANSWER,
    largest=256 * 1024,
)
LIST_INTERACTIVE = Endpoint(
    "sessions", "list", ListInteractive, InteractiveSessions, callers=_PEOPLE, repeat=Repeat.QUERY
)
SHOW_INTERACTIVE = Endpoint(
    "sessions", "show", ShowInteractive, SessionView, callers=_PEOPLE, repeat=Repeat.QUERY
)
CHANGE_INTERACTIVE = Endpoint(
    "sessions", "change", ChangeInteractive, SessionTold, callers=_PEOPLE, repeat=Repeat.FIRST_ANSWER
)
RESTART_INTERACTIVE = Endpoint(
    "sessions", "restart", RestartInteractive, SessionTold, callers=_PEOPLE, repeat=Repeat.FIRST_ANSWER
)
STOP_INTERACTIVE = Endpoint(
    "sessions", "stop", StopInteractive, SessionTold, callers=_PEOPLE, repeat=Repeat.FIRST_ANSWER
)
FOLLOW_INTERACTIVE = Endpoint(
    "sessions", "follow", FollowInteractive, SessionNews, callers=_PEOPLE, repeat=Repeat.QUERY, limited=True
)
LIST_PROFILES = Endpoint(
    "sessions", "profiles", ListProfiles, SessionProfiles, callers=_PEOPLE, repeat=Repeat.QUERY
)
SIGN_CERTIFICATE = Endpoint(
    "sessions",
    "certificate",
    SignCertificate,
    SessionCertificate,
    callers=_PEOPLE,
    repeat=Repeat.QUERY,
    reads=False,
)
REPORT_SCHEDULER = Endpoint(
    "sessions", "report", ReportScheduler, AgentOrders, callers=_PEOPLE, repeat=Repeat.HARMLESS
)
MEMBER_ASKS = Endpoint(
    "sessions", "member", MemberAsks, MemberAnswer, callers=(Caller.SHADOW,), repeat=Repeat.HARMLESS
)
