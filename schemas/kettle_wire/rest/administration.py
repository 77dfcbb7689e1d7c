"""What administrators ask over HTTP: the record of deeds, bans, sessions, machines that joined; and hosts."""

from typing import Annotated, Literal

import msgspec

from kettle_wire.commands.iam import Login, Note, Whom
from kettle_wire.rest.jobs import Filter
from kettle_wire.rest.route import Moment, Route


class ListAudit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List the record of who let whom do what, the newest first."""

    who: Login = ""
    """Who did it, or to whom it was done."""
    what: Note = ""
    """The beginning of a type of event, such as `ban` or `jointoken.misused`."""
    since: Moment | None = None
    until: Moment | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 50


class Deed(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the record."""

    at: Moment
    what: str
    who: str
    whom: str
    sentence: str
    address: str
    """From where; empty: that is not known."""
    alarm: bool
    """Somebody should look at it."""
    frame: int


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of the record."""

    deeds: list[Deed]
    more: bool
    """There are older ones that match: ask with `until`."""


class ListBans(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List who is banned."""


class Ban(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody is let in no more."""

    whom: str
    reason: str
    by: str
    since: Moment
    until: Moment | None = None
    """Absent: until it is lifted."""


class Bans(msgspec.Struct, frozen=True, kw_only=True):
    """All bans, by name."""

    bans: list[Ban]


class ChangeBans(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Let somebody in no more, or let somebody in again who is banned."""


class BanChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom to ban, or to let in again."""

    whom: Whom
    """`user:NAME`, `subject:…`, `issuer:…`, `client:…` or `worker:…`."""
    action: Literal["ban", "unban"] = "ban"
    reason: Note = ""
    lifetime: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = 0.0
    """Seconds; 0: until it is lifted."""


class ListLogins(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List the sessions of everybody, the last used first: who has a refresh token, and for what."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody can have access tokens; nothing that is shown here lets anybody in."""

    id: str
    person: str
    scopes: list[str]
    audiences: list[str]
    note: str
    opened: Moment
    used: Moment
    expires: Moment


class Logins(msgspec.Struct, frozen=True, kw_only=True):
    """All sessions."""

    sessions: list[Session]


class EndLogin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """End a session, or an access token by its id, whosever it is."""

    id: Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """It is recorded."""

    id: str


class ListWorkers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List machines that have joined by a token, and the tokens with which others may."""


class Worker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A machine that has joined by a token."""

    name: str
    joins: str
    """`worker` or `access point`, as its token said."""
    owner: str = ""
    """Whose jobs alone it takes; absent: everybody's."""
    own: bool = False
    """That person has let it in, and may remove it; its credential is renewed as long as what was shown for it is good."""
    joined: Moment
    expires: Moment | None = None


class JoinToken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Machines may join with it; its secret is nowhere."""

    id: str
    joins: str
    owner: str = ""
    by: str
    created: Moment
    expires: Moment
    uses: int
    """Machines that have joined with it."""
    most_uses: int


class Workers(msgspec.Struct, frozen=True, kw_only=True):
    """By name, and by end."""

    workers: list[Worker]
    join_tokens: list[JoinToken]


class ListHosts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List the hosts of the pool with their daemons, as their masters tell."""

    filter: Filter = ""
    """A ClassAd expression that has to be true of the master's ad."""


class Daemon(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A service or server on a host."""

    name: str
    state: str
    """As its master has it: `Running`, `Standby`, `Starting`, `Stopping`, `Waiting` or `Off`."""
    pid: int | None = None
    since: Moment | None = None
    """When it was started, or ended."""
    restarts: int = 0
    hangs: int = 0
    """How often it was ended because it said nothing any more."""
    last_exit: str = ""


class Host(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A host with a master."""

    name: str
    version: str
    new_version: str = ""
    """What is installed now and runs after a restart; absent: what runs."""
    since: Moment
    """When its master was started."""
    heard: Moment
    """When it told of itself last."""
    daemons: list[Daemon]


class Hosts(msgspec.Struct, frozen=True, kw_only=True):
    """All hosts, by name."""

    hosts: list[Host]


LIST_AUDIT = Route(
    "GET", "/audit", "list_audit", parameters=ListAudit, reply=Audit, level="ADMINISTRATOR", errors=(404,)
)
LIST_BANS = Route(
    "GET", "/bans", "list_bans", parameters=ListBans, reply=Bans, level="ADMINISTRATOR", errors=(404,)
)
CHANGE_BANS = Route(
    "POST",
    "/bans",
    "change_bans",
    parameters=ChangeBans,
    body=BanChange,
    reply=Bans,
    level="ADMINISTRATOR",
    errors=(404, 413, 415, 422),
)
LIST_LOGINS = Route(
    "GET",
    "/logins",
    "list_logins",
    parameters=ListLogins,
    reply=Logins,
    level="ADMINISTRATOR",
    errors=(404,),
)
END_LOGIN = Route(
    "POST",
    "/logins/{id}:end",
    "end_login",
    parameters=EndLogin,
    reply=Ended,
    level="ADMINISTRATOR",
    errors=(404, 422),
)
LIST_WORKERS = Route(
    "GET",
    "/workers",
    "list_workers",
    parameters=ListWorkers,
    reply=Workers,
    level="ADMINISTRATOR",
    errors=(404,),
)
LIST_HOSTS = Route("GET", "/hosts", "list_hosts", parameters=ListHosts, reply=Hosts)
