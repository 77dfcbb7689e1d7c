"""
What iam is asked over the bus: by administrators about machines, bans and the record, by people about themselves.

A secret is made by who will hold it; only its SHA-256 is sent, so no answer that is stored with a command has one.
"""

from typing import Annotated, Final

import msgspec

from kettle_wire.endpoint import Caller, CommandId, Endpoint, Position, Repeat
from kettle_wire.events.iam import Joins

LONGEST_JOIN_S: Final = 30 * 86_400
"""The longest life of a join token."""
LONGEST_LEASE_JOIN_S: Final = 1800.0
"""The longest life of a join token of a lease: it is sent with user data that others can read."""
MOST_ACTS: Final = 10_000
"""The most entries of the record in one answer."""

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]
Sha256 = Annotated[str, msgspec.Meta(min_length=64, max_length=64, pattern=r"^[0-9a-f]+$")]
Login = Annotated[str, msgspec.Meta(max_length=256, pattern=r"^[!-~]*$")]
Whom = Annotated[str, msgspec.Meta(max_length=512, pattern=r"^(user|subject|issuer|client|worker):[!-~]+$")]
Note = Annotated[str, msgspec.Meta(max_length=256, pattern=r"^[^\x00-\x1f]*$")]
Scope = Annotated[str, msgspec.Meta(min_length=1, max_length=256, pattern=r"^[!#-\[\]-~]+$")]
"""One scope, as RFC 6749 section 3.3 allows it."""
Scopes = Annotated[list[Scope], msgspec.Meta(max_length=64)]
Audiences = Annotated[
    list[Annotated[str, msgspec.Meta(min_length=1, max_length=512, pattern=r"^[!-~]+$")]],
    msgspec.Meta(max_length=16),
]
Lifetime = Annotated[float, msgspec.Meta(gt=0, le=400 * 86_400.0)]


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """It is recorded."""

    position: Position


class CreateJoinToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Let machines join with a secret that the caller has made."""

    id: CommandId
    hash: Sha256
    """SHA-256 of the secret."""
    joins: Joins = "worker"
    owner: Login = ""
    """Whose jobs alone the machines run; empty: everybody's."""
    lifetime: Annotated[float, msgspec.Meta(gt=0, le=LONGEST_JOIN_S)] = 1800.0
    max_uses: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1
    group: Login = ""
    """The accounting group whose jobs alone the machines run; empty: any."""
    machine: Login = ""
    """
    The only name under which a machine may join with it, and only once; a provisioner has to name that of its lease. Empty: any.
    """
    life: Annotated[float, msgspec.Meta(ge=0, le=400 * 86_400.0)] = 0.0
    """Seconds after joining for which the machine's credential is valid; 0: as long as the pool gives them for."""


class JoinTokenMade(msgspec.Struct, frozen=True, kw_only=True):
    """What the token says besides its secret."""

    token: str
    """Its id."""
    pin: str
    """SHA-256 by which the joining machine knows this pool, in hexadecimal digits."""
    url: str
    """Where to join."""
    expires: float
    position: Position


class ListJoinTokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The join tokens that can be used."""


class JoinTokenShown(msgspec.Struct, frozen=True, kw_only=True):
    """One of them; nothing that it shows lets anybody in."""

    token: str
    joins: Joins
    owner: str
    by: str
    created: float
    expires: float
    max_uses: int
    used: list[str]
    """The machines that have joined with it."""
    group: str = ""
    machine: str = ""
    own: bool = False
    """As of the machines that join with it."""


class JoinTokens(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, the first that ends first."""

    tokens: list[JoinTokenShown]


class RevokeJoinToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Withdraw a join token; machines that have joined with it stay."""

    id: CommandId
    token: Id


class ListWorkers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The machines that have joined by a token."""


class WorkerShown(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    worker: str
    joins: Joins
    owner: str
    key: str
    token: str
    joined: float
    expires: float
    """0: never."""
    group: str = ""
    leased: bool = False
    own: bool = False
    """The person whose jobs it runs has let it in, and may remove it."""


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, by name."""

    workers: list[WorkerShown]


class RemoveWorker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have the credential of a machine be invalid; it does not drain the machine."""

    id: CommandId
    worker: Login


class Leave(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have the caller's own credential be invalid: a machine that has joined leaves."""

    id: CommandId


class SetBan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Let somebody in no more."""

    id: CommandId
    whom: Whom
    reason: Note = ""
    lifetime: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0
    """Seconds; 0: until it is lifted."""


class LiftBan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Let somebody in again."""

    id: CommandId
    whom: Whom


class ListBans(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who is banned."""


class BanShown(msgspec.Struct, frozen=True, kw_only=True):
    """One ban."""

    whom: str
    reason: str
    by: str
    at: float
    until: float
    """0: until it is lifted."""


class Bans(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, by name."""

    bans: list[BanShown]


class RegisterClient(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Let a program ask for tokens with a secret that the caller has made; registered again with `replace`, it gets the new
    rules and secret.
    """

    id: CommandId
    client: Id
    hash: Sha256
    owner: Annotated[Login, msgspec.Meta(min_length=1)]
    scopes: Scopes = []
    audiences: Audiences = []
    lifetime: Lifetime = 1200.0
    exchanges: bool = False
    replace: bool = False


class RemoveClient(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Let a program have no more tokens."""

    id: CommandId
    client: Id


class ListClients(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The programs that may ask for tokens."""


class ClientShown(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    client: str
    owner: str
    scopes: list[str]
    audiences: list[str]
    lifetime: float
    exchanges: bool
    by: str
    at: float


class Clients(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, by name."""

    clients: list[ClientShown]


class BeginSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have a refresh token for oneself, whose secret the caller has made."""

    id: CommandId
    hash: Sha256
    scopes: Scopes = []
    """Empty: what the service gives by default."""
    audiences: Audiences = []
    note: Note = ""


class SessionMade(msgspec.Struct, frozen=True, kw_only=True):
    """What it is good for."""

    session: str
    """Its id, which is a part of the refresh token."""
    issuer: str
    scopes: list[str]
    audiences: list[str]
    expires: float
    """If it is not used before."""
    ends: float
    """In any case."""
    position: Position


class IssueToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have an access token for oneself. Asked again, there is another one: no token is stored anywhere."""

    scopes: Scopes = []
    audiences: Audiences = []
    lifetime: Annotated[float, msgspec.Meta(gt=0, le=86_400.0)] = 1200.0


class TokenMade(msgspec.Struct, frozen=True, kw_only=True):
    """The token."""

    token: str
    id: str
    scopes: list[str]
    audiences: list[str]
    expires: float


class ListTokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sessions that there are: one's own, or those of all."""


class SessionShown(msgspec.Struct, frozen=True, kw_only=True):
    """One session."""

    session: str
    subject: str
    scopes: list[str]
    audiences: list[str]
    note: str
    opened: float
    used: float
    """When it was used last."""
    expires: float


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, the last used first."""

    sessions: list[SessionShown]


class RevokeToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """End a session, or, where administrators ask, one of somebody else or an access token by its id."""

    id: CommandId
    token: Id


class QueryAudit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The newest entries of the record that match all that is said."""

    who: Login = ""
    """Who did it, or to whom it was done."""
    what: Note = ""
    """The beginning of a type of event, such as `ban` or `jointoken.misused`."""
    since: float = 0.0
    until: float = 0.0
    """0: now."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ACTS)] = 1000


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the record."""

    at: float
    what: str
    who: str
    whom: str
    sentence: str
    address: str
    alarm: bool
    """Somebody should look at it."""
    frame: int


class AuditEntries(msgspec.Struct, frozen=True, kw_only=True):
    """In the order of time."""

    acts: list[AuditEntry]
    complete: bool
    """Whether there are no older ones that match."""


class WhoAmI(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who the pool takes the caller for."""


class Right(msgspec.Struct, frozen=True, kw_only=True):
    """Something that somebody may do, and the rule that gives it."""

    level: str
    because: str


class Whoami(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An identity, how it was shown, and what it may do."""

    identity: str
    method: str
    subject: str
    issuer: str = ""
    groups: list[str] = []
    levels: list[Right] = []
    scopes: list[str] = []
    expires: float = 0.0
    """0: does not end by itself."""
    banned: str = ""
    """Why, if it is banned."""


class AccessExplained(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Allowed or not, and by which rule."""

    action: str
    allowed: bool
    level: str
    """The level that the command needs."""
    rule: str
    """The first rule that decided."""
    missing: str = ""


_ADMINISTRATOR: Final = (Caller.ADMINISTRATOR,)
_USER: Final = (Caller.USER,)
_OF_LEASES: Final = (Caller.ADMINISTRATOR, Caller.PROVISIONER, Caller.SCALER)
"""Who removes machines: of leases, those that have ordered them may, too."""

CREATE_JOIN_TOKEN = Endpoint(
    "iam",
    "create_join_token",
    CreateJoinToken,
    JoinTokenMade,
    callers=(Caller.ADMINISTRATOR, Caller.PROVISIONER),
    repeat=Repeat.FIRST_ANSWER,
)
LIST_JOIN_TOKENS = Endpoint(
    "iam", "list_join_tokens", ListJoinTokens, JoinTokens, callers=_ADMINISTRATOR, repeat=Repeat.QUERY
)
REVOKE_JOIN_TOKEN = Endpoint(
    "iam", "revoke_join_token", RevokeJoinToken, Recorded, callers=_ADMINISTRATOR, repeat=Repeat.FIRST_ANSWER
)
LIST_WORKERS = Endpoint(
    "iam", "list_workers", ListWorkers, Workers, callers=_ADMINISTRATOR, repeat=Repeat.QUERY
)
REMOVE_WORKER = Endpoint(
    "iam", "remove_worker", RemoveWorker, Recorded, callers=_OF_LEASES, repeat=Repeat.FIRST_ANSWER
)
SET_BAN = Endpoint("iam", "set_ban", SetBan, Recorded, callers=_ADMINISTRATOR, repeat=Repeat.FIRST_ANSWER)
LIFT_BAN = Endpoint("iam", "lift_ban", LiftBan, Recorded, callers=_ADMINISTRATOR, repeat=Repeat.FIRST_ANSWER)
LIST_BANS = Endpoint("iam", "list_bans", ListBans, Bans, callers=_ADMINISTRATOR, repeat=Repeat.QUERY)
REGISTER_CLIENT = Endpoint(
    "iam", "register_client", RegisterClient, Recorded, callers=_ADMINISTRATOR, repeat=Repeat.FIRST_ANSWER
)
REMOVE_CLIENT = Endpoint(
    "iam", "remove_client", RemoveClient, Recorded, callers=_ADMINISTRATOR, repeat=Repeat.FIRST_ANSWER
)
LIST_CLIENTS = Endpoint(
    "iam", "list_clients", ListClients, Clients, callers=_ADMINISTRATOR, repeat=Repeat.QUERY
)
OPEN_SESSION = Endpoint(
    "iam", "open_session", BeginSession, SessionMade, callers=_USER, repeat=Repeat.FIRST_ANSWER
)
OPEN_ANY_SESSION = Endpoint(
    "iam",
    "open_any_session",
    BeginSession,
    SessionMade,
    callers=_ADMINISTRATOR,
    repeat=Repeat.FIRST_ANSWER,
)
"""With the level ADMINISTRATOR, which one must have where one asks to put it into a token."""
ISSUE_ANY_TOKEN = Endpoint(
    "iam", "issue_any_token", IssueToken, TokenMade, callers=_ADMINISTRATOR, repeat=Repeat.HARMLESS
)
LIST_ALL_TOKENS = Endpoint(
    "iam", "list_all_tokens", ListTokens, Sessions, callers=_ADMINISTRATOR, repeat=Repeat.QUERY
)
REVOKE_ANY_TOKEN = Endpoint(
    "iam", "revoke_any_token", RevokeToken, Recorded, callers=_ADMINISTRATOR, repeat=Repeat.FIRST_ANSWER
)
ISSUE_TOKEN = Endpoint("iam", "issue_token", IssueToken, TokenMade, callers=_USER, repeat=Repeat.HARMLESS)
LIST_TOKENS = Endpoint("iam", "list_tokens", ListTokens, Sessions, callers=_USER, repeat=Repeat.QUERY)
REVOKE_TOKEN = Endpoint(
    "iam", "revoke_token", RevokeToken, Recorded, callers=_USER, repeat=Repeat.FIRST_ANSWER
)
QUERY_AUDIT = Endpoint(
    "iam", "query_audit", QueryAudit, AuditEntries, callers=_ADMINISTRATOR, repeat=Repeat.QUERY
)
WHO_AM_I = Endpoint("iam", "who_am_i", WhoAmI, Whoami, callers=_USER, repeat=Repeat.QUERY)
LEAVE = Endpoint(
    "iam", "leave", Leave, Recorded, callers=(Caller.STARTD, Caller.SCHEDD), repeat=Repeat.FIRST_ANSWER
)
