"""
Who may do what in the pool, in the shard `identity`: everything that iam decided, and what it refused.

No event holds a secret: of what somebody presents, only its SHA-256 is recorded, and of a token only its id.
`by` is who did it: a login name, or `configuration` for what the settings say.
Times are seconds since the epoch.
"""

from typing import Literal

import msgspec

from kettle_wire.events.base import Event

Joins = Literal["worker", "schedd"]
"""What a join token admits: a machine that runs jobs, or one whose people submit them."""

Misuse = Literal["unknown", "secret", "expired", "revoked", "used", "other_pool", "other_owner", "banned"]
"""
Why a join token was refused: nobody made it, its secret is wrong, it came too late, it was withdrawn, another machine has used
it, it is for another pool or another owner, its owner is banned.
"""

Ended = Literal["revoked", "expired", "reused", "banned"]
"""Why a session is over; `reused`: a refresh token that had been exchanged came again, so somebody has a copy."""


CredentialKind = Literal["token", "refresh"]
"""A stored credential: handed to jobs as it is, or exchanged for access tokens."""


class Grant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    What a person has shown who lets machines in for the own jobs: they are in the pool as long as it is good.
    """

    names: tuple[str, ...]
    """Under which the person may be banned, as `BanSet.whom` has them."""
    tokens: tuple[str, ...]
    """The ids of the token that was shown and of those from which it was made; none: the person has an account at the pool."""
    session: str = ""
    """The session that the token came of."""
    ends: float = 0.0
    """When it ends by itself, whatever else happens; 0: it does not, or the session says so."""


class IssuerAdded(Event, frozen=True, kw_only=True, tag="issuer.added/1"):
    """Tokens of an issuer are accepted from now on; stream `issuer/<URL>`."""

    issuer: str
    audiences: list[str] = []
    by: str
    at: float


class IssuerRemoved(Event, frozen=True, kw_only=True, tag="issuer.removed/1"):
    """Tokens of an issuer are not accepted any more."""

    issuer: str
    by: str
    at: float


class RulesLoaded(Event, frozen=True, kw_only=True, tag="rules.loaded/1"):
    """A file of mapping rules is in force; stream `rules/<path>`."""

    path: str
    digest: str
    """SHA-256 of the file, in hexadecimal digits."""
    lines: int
    by: str
    at: float


class BanSet(Event, frozen=True, kw_only=True, tag="ban.set/1"):
    """Somebody is not let in any more; stream `ban/<whom>`."""

    whom: str
    """`user:<login>`, `subject:<issuer>,<sub>`, `issuer:<URL>`, `client:<id>` or `worker:<name>`."""
    reason: str = ""
    until: float = 0.0
    """When the ban ends by itself; 0: never."""
    by: str
    at: float


class BanLifted(Event, frozen=True, kw_only=True, tag="ban.lifted/1"):
    """A ban is over."""

    whom: str
    by: str
    at: float


class JoinTokenCreated(Event, frozen=True, kw_only=True, tag="jointoken.created/1"):
    """A machine may join with a token from now on; stream `jointoken/<id>`."""

    token: str
    hash: str
    """SHA-256 of the secret, in hexadecimal digits."""
    joins: Joins = "worker"
    owner: str = ""
    """Whose jobs alone the machine runs; empty: everybody's."""
    expires: float
    max_uses: int = 1
    by: str
    at: float
    group: str = ""
    """The accounting group whose jobs alone it runs; empty: any."""
    machine: str = ""
    """The only name under which it admits a machine, that of a lease; empty: any."""
    life: float = 0.0
    """Seconds for which the credential of that machine is valid; 0: as long as the pool gives them for."""
    grant: Grant | None = None
    """None: it was made by an administrator or for a lease, and no person's own machines join with it."""


class JoinTokenUsed(Event, frozen=True, kw_only=True, tag="jointoken.used/1"):
    """A machine joined with it."""

    token: str
    name: str
    key: str
    """The public NKey that the machine has made."""
    address: str
    at: float


class JoinTokenExpired(Event, frozen=True, kw_only=True, tag="jointoken.expired/1"):
    """
    It cannot be used any more, because its time is over or it was used as often as it could be; nothing is
    kept of it.
    """

    token: str
    at: float


class JoinTokenRevoked(Event, frozen=True, kw_only=True, tag="jointoken.revoked/1"):
    """Somebody has withdrawn it."""

    token: str
    by: str
    at: float


class JoinTokenMisused(Event, frozen=True, kw_only=True, tag="jointoken.misused/1"):
    """An alarm: somebody tried to join with a token that does not admit them; stream `alarm/join`."""

    token: str
    """The id that was said; it may be one that nobody made."""
    why: Misuse
    name: str = ""
    address: str
    more: int = 0
    """So many further attempts came before this one and are not recorded one by one."""
    at: float


class WorkerJoined(Event, frozen=True, kw_only=True, tag="worker.joined/1"):
    """A machine has a credential of its own; stream `worker/<name>`."""

    worker: str
    joins: Joins = "worker"
    key: str
    owner: str = ""
    token: str
    """The id of the join token."""
    expires: float
    """When its credential ends; 0: never."""
    at: float
    group: str = ""
    """As of the token."""
    leased: bool = False
    """It is of a lease, and nothing is kept of it when its credential has ended."""
    grant: Grant | None = None
    """As of the token; nothing is kept of such a machine either when its credential has ended."""


class WorkerRenewed(Event, frozen=True, kw_only=True, tag="worker.renewed/1"):
    """A machine that a person has let in has a credential with a later end."""

    worker: str
    expires: float
    at: float


class WorkerLeft(Event, frozen=True, kw_only=True, tag="worker.left/1"):
    """The credential of a machine is not valid any more."""

    worker: str
    by: str
    at: float


class ClientRegistered(Event, frozen=True, kw_only=True, tag="client.registered/1"):
    """A program may ask for tokens with a secret of its own; stream `client/<id>`."""

    client: str
    hash: str
    """SHA-256 of its secret, in hexadecimal digits."""
    owner: str
    """Who its tokens are about."""
    scopes: list[str] = []
    """What its tokens may say at most."""
    audiences: list[str] = []
    """For whom its tokens may be."""
    lifetime: float
    """The longest life of its tokens, in seconds."""
    exchanges: bool = False
    """It may exchange the tokens of others for narrower ones."""
    by: str
    at: float


class ClientRemoved(Event, frozen=True, kw_only=True, tag="client.removed/1"):
    """A program gets no tokens any more."""

    client: str
    by: str
    at: float


class SessionOpened(Event, frozen=True, kw_only=True, tag="session.opened/1"):
    """Somebody has a refresh token; stream `session/<id>`."""

    session: str
    subject: str
    hash: str
    """SHA-256 of the refresh token's secret, in hexadecimal digits."""
    scopes: list[str] = []
    audiences: list[str] = []
    note: str = ""
    """What the person calls it."""
    lifetime: float
    """Seconds without use after which it is over."""
    ends: float
    """When it is over, however much it is used."""
    by: str
    at: float


class SessionRenewed(Event, frozen=True, kw_only=True, tag="session.renewed/1"):
    """A refresh token was exchanged for the next one."""

    session: str
    hash: str
    """Of the next one's secret."""
    address: str
    at: float


class SessionClosed(Event, frozen=True, kw_only=True, tag="session.closed/1"):
    """A session is over, and nothing is kept of it."""

    session: str
    why: Ended
    by: str
    at: float


class TokenIssued(Event, frozen=True, kw_only=True, tag="token.issued/1"):
    """
    Somebody got an access token, of which this is all that is kept; stream `issued/<subject>`, of a job's `jobtokens/<id of its attempt's first token>`.
    """

    token: str
    subject: str
    client: str = ""
    session: str = ""
    grant: str
    scopes: list[str] = []
    audiences: list[str] = []
    expires: float
    address: str = ""
    at: float


class TokenRevoked(Event, frozen=True, kw_only=True, tag="token.revoked/1"):
    """An access token is not valid any more; stream `token/<id>/<end>`, so that it has one each time."""

    token: str
    subject: str
    expires: float
    by: str
    at: float


class TokenExpired(Event, frozen=True, kw_only=True, tag="token.expired/1"):
    """An access token that had been revoked would have ended by now; nothing is kept of it."""

    token: str
    at: float


class TokenRequested(Event, frozen=True, kw_only=True, tag="tokenrequest.made/1"):
    """Somebody asks for a token of an identity, which has to be approved; stream `tokenrequest/<number>`."""

    request: str
    """Seven digits."""
    hash: str
    """SHA-256 of the secret of who asked, in hexadecimal digits."""
    client: str
    """What the program calls itself."""
    requester: str = ""
    """Who asked, as the bus knows him; empty: nobody whom the pool knows."""
    address: str = ""
    """From where it came; empty: over the bus."""
    identity: str
    """Whose token it is to be, `user@domain`."""
    levels: list[str] = []
    """To which it is to be limited; to none if there are none."""
    lifetime: int = 0
    """Of the token, in seconds; 0: as long as the pool gives tokens for."""
    expires: float
    """Until then it waits."""
    at: float


class TokenRequestApproved(Event, frozen=True, kw_only=True, tag="tokenrequest.approved/1"):
    """Who has asked may collect the token; it is made then, of what stands here and of the key."""

    request: str
    token: str
    """The id of the token."""
    key: str
    """The name of the key that signs it."""
    lifetime: int
    """Of the token, in seconds, from `at`; 0: without end."""
    by: str
    rule: str = ""
    """The network of the rule that approved it; empty: a person did."""
    at: float


class TokenRequestCollected(Event, frozen=True, kw_only=True, tag="tokenrequest.collected/1"):
    """The token was given to who had asked for it, who for a minute may have it once more."""

    request: str
    token: str
    subject: str
    address: str = ""
    at: float


class TokenRequestEnded(Event, frozen=True, kw_only=True, tag="tokenrequest.ended/1"):
    """A request is over, and nothing is kept of it."""

    request: str
    at: float


class AutoApprovalSet(Event, frozen=True, kw_only=True, tag="autoapproval.set/1"):
    """What daemons of a network ask for is approved for some time; stream `autoapproval/<netblock>`."""

    netblock: str
    expires: float
    by: str
    at: float


class AutoApprovalEnded(Event, frozen=True, kw_only=True, tag="autoapproval.ended/1"):
    """A rule of approval is over."""

    netblock: str
    at: float


class CredentialStored(Event, frozen=True, kw_only=True, tag="credential.stored/1"):
    """
    Somebody's credential of a service is kept for his jobs, enciphered in a file; stream `credential/<owner>/<service>/<handle>`.
    """

    owner: str
    service: str
    handle: str = ""
    kind: CredentialKind
    by: str
    at: float


class CredentialRemoved(Event, frozen=True, kw_only=True, tag="credential.removed/1"):
    """It is kept no longer."""

    owner: str
    service: str
    handle: str = ""
    by: str
    at: float


class ValueSet(Event, frozen=True, kw_only=True, tag="value.set/1"):
    """Somebody's own value has this key from now on; stream `values/<owner>`."""

    owner: str
    key: str
    value: str
    """In base64."""
    at: float


class ValuesRemoved(Event, frozen=True, kw_only=True, tag="values.removed/1"):
    """These keys of somebody's own have no values any more."""

    owner: str
    keys: list[str]
    at: float


class JobTokensOver(Event, frozen=True, kw_only=True, tag="jobtokens.over/1"):
    """An attempt of a job gets no tokens any more; stream `jobtokens/<id>`, of which nothing is kept."""

    session: str
    """`<schedd>#<job>#<attempt>`."""
    at: float


class AccessDenied(Event, frozen=True, kw_only=True, tag="access.denied/1"):
    """Somebody was refused; stream `alarm/denied`."""

    who: str
    """As far as it is known; empty: nobody that is known."""
    action: str
    code: str
    message: str
    address: str
    more: int = 0
    """So many further refusals came before this one and are not recorded one by one."""
    at: float


class AdministratorActed(Event, frozen=True, kw_only=True, tag="administrator.acted/1"):
    """Somebody had a service do what is for administrators; stream `deeds/<service>`."""

    who: str
    action: str
    """The command, such as `startd.drain`."""
    where: str
    """The name of the service that was asked."""
    sentence: str
    """What was asked for."""
    by: str
    """Who says so: the role of a service, or the name of a startd."""
    at: float


IdentityEvent = (
    IssuerAdded
    | IssuerRemoved
    | RulesLoaded
    | BanSet
    | BanLifted
    | JoinTokenCreated
    | JoinTokenUsed
    | JoinTokenExpired
    | JoinTokenRevoked
    | JoinTokenMisused
    | WorkerJoined
    | WorkerRenewed
    | WorkerLeft
    | ClientRegistered
    | ClientRemoved
    | SessionOpened
    | SessionRenewed
    | SessionClosed
    | TokenIssued
    | TokenRevoked
    | TokenExpired
    | TokenRequested
    | TokenRequestApproved
    | TokenRequestCollected
    | TokenRequestEnded
    | AutoApprovalSet
    | AutoApprovalEnded
    | CredentialStored
    | CredentialRemoved
    | ValueSet
    | ValuesRemoved
    | JobTokensOver
    | AccessDenied
    | AdministratorActed
)
