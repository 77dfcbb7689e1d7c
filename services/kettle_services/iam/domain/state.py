"""
What is true now of issuers, rules, bans, join tokens, machines, clients, sessions, withdrawn tokens, and tokens that were
requested.

Each stream of the shard has one state, or none: a name that is free again, or something that is over.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

import msgspec

from kettle_services.iam.domain.joining_states import (
    JoinToken,
    Worker,
    fold_join_token,
    fold_renewal,
    worker_of,
)
from kettle_services.iam.domain.kept_values import KeptValues, fold_values
from kettle_wire.events.iam import (
    AccessDenied,
    AdministratorActed,
    AutoApprovalEnded,
    AutoApprovalSet,
    BanLifted,
    BanSet,
    ClientRegistered,
    ClientRemoved,
    CredentialKind,
    CredentialRemoved,
    CredentialStored,
    IdentityEvent,
    IssuerAdded,
    IssuerRemoved,
    JobTokensOver,
    JoinTokenCreated,
    JoinTokenExpired,
    JoinTokenMisused,
    JoinTokenRevoked,
    JoinTokenUsed,
    RulesLoaded,
    SessionClosed,
    SessionOpened,
    SessionRenewed,
    TokenExpired,
    TokenIssued,
    TokenRequestApproved,
    TokenRequestCollected,
    TokenRequested,
    TokenRequestEnded,
    TokenRevoked,
    ValueSet,
    ValuesRemoved,
    WorkerJoined,
    WorkerLeft,
    WorkerRenewed,
)

SHARD: Final = "identity"
"""The name of the shard."""
ONCE: Final = ("jointoken", "session", "token", "tokenrequest", "jobtokens")
"""Streams of these are forgotten when they are over: their names, which iam makes, are never used again."""


EARLIER: Final = 256
"""So many refresh tokens of a session are known for what they are: at a renewal each quarter of an hour those of more than two days."""
JOB: Final = "job"
"""The grant of tokens of jobs."""


class Issuer(msgspec.Struct, frozen=True, tag=True):
    """Whose tokens are accepted."""

    audiences: tuple[str, ...]


class Rules(msgspec.Struct, frozen=True, tag=True):
    """A file of mapping rules that is in force."""

    digest: str


class Ban(msgspec.Struct, frozen=True, tag=True):
    """Somebody who is not let in."""

    whom: str
    reason: str
    until: float
    by: str
    at: float


class ClientRules(msgspec.Struct, frozen=True, tag=True):
    """A program that may ask for tokens."""

    client: str
    hash: str
    owner: str
    scopes: tuple[str, ...]
    audiences: tuple[str, ...]
    lifetime: float
    exchanges: bool
    by: str
    at: float


class Session(msgspec.Struct, frozen=True, tag=True):
    """Somebody who has a refresh token."""

    session: str
    subject: str
    hash: str
    scopes: tuple[str, ...]
    audiences: tuple[str, ...]
    note: str
    lifetime: float
    opened: float
    used: float
    ends: float
    former: str = ""
    """The hash of the refresh token before: it came again if the answer to its exchange was lost, or if somebody has a copy."""
    earlier: tuple[bytes, ...] = ()
    """Beginnings of the hashes of those before that, the newest first: who shows one has a copy."""

    @property
    def expires(self) -> float:
        """When it is over if nobody uses it."""
        return min(self.used + self.lifetime, self.ends)


class Revoked(msgspec.Struct, frozen=True, tag=True):
    """An access token that is not valid any more."""

    token: str
    expires: float


class TokenRequest(msgspec.Struct, frozen=True, tag=True):
    """A token that somebody asks for."""

    request: str
    hash: str
    client: str
    requester: str
    address: str
    identity: str
    levels: tuple[str, ...]
    wanted: int
    """The life of the token that was asked for, in seconds; 0: as long as can be."""
    made: float
    expires: float
    token: str = ""
    """The id of the token; empty: nobody has approved it."""
    key: str = ""
    lifetime: int = 0
    """Of the token, in seconds from `approved`; 0: without end."""
    approved: float = 0.0
    collected: float = 0.0


class AutoApproval(msgspec.Struct, frozen=True, tag=True):
    """A network whose daemons get what they ask for themselves."""

    netblock: str
    made: float
    expires: float
    by: str


class JobTokens(msgspec.Struct, frozen=True, tag=True):
    """The tokens that a running attempt of a job has had, until the last one has ended."""

    session: str
    subject: str
    tokens: tuple[tuple[str, float], ...]
    """The id of each, and when it ends."""


class StoredCredential(msgspec.Struct, frozen=True, tag=True):
    """A credential that is kept for somebody's jobs."""

    owner: str
    service: str
    handle: str
    kind: CredentialKind
    at: float


State = (
    Issuer
    | Rules
    | Ban
    | JoinToken
    | Worker
    | ClientRules
    | Session
    | Revoked
    | TokenRequest
    | AutoApproval
    | JobTokens
    | StoredCredential
    | KeptValues
)

S = TypeVar("S", bound=State)
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final[Callable[[bytes], State | None]] = msgspec.msgpack.Decoder(State | None).decode


def row_of(state: State | None) -> bytes:
    """
    The row of the working set of a stream; that of a name that is free stays, because its stream may go on.
    """
    return _encode(state)


def state_of(row: bytes) -> State | None:
    """Inverse of `row_of`."""
    return _decode(row)


def forgotten(stream: str, state: State | None) -> bool:
    """Whether nothing is kept of a stream, not even its version."""
    return state is None and stream.partition("/")[0] in ONCE


def fold(state: State | None, event: IdentityEvent) -> State | None:
    """The state of a stream after an event."""
    match event:
        case (
            IssuerAdded()
            | RulesLoaded()
            | BanSet()
            | WorkerJoined()
            | ClientRegistered()
            | AutoApprovalSet()
            | CredentialStored()
        ):
            return _made(event)
        case TokenRevoked() | TokenIssued():
            return _access_token(state, event)
        case ValueSet() | ValuesRemoved():
            return fold_values(state if isinstance(state, KeptValues) else None, event)
        case (
            IssuerRemoved()
            | BanLifted()
            | WorkerLeft()
            | ClientRemoved()
            | JoinTokenExpired()
            | SessionClosed()
            | TokenExpired()
            | TokenRequestEnded()
            | JobTokensOver()
            | CredentialRemoved()
            | AutoApprovalEnded()
            | AccessDenied()
            | AdministratorActed()
            | JoinTokenMisused()
        ):
            return None
        case WorkerRenewed():
            return fold_renewal(state if isinstance(state, Worker) else None, event)
        case JoinTokenCreated() | JoinTokenUsed() | JoinTokenRevoked():
            return fold_join_token(state if isinstance(state, JoinToken) else None, event)
        case SessionOpened() | SessionRenewed():
            return _session(state, event)
        case TokenRequested() | TokenRequestApproved() | TokenRequestCollected():
            return _token_request(state, event)


def _made(
    event: IssuerAdded
    | RulesLoaded
    | BanSet
    | WorkerJoined
    | ClientRegistered
    | AutoApprovalSet
    | CredentialStored,
) -> State:
    """The state that is all in one event."""
    match event:
        case IssuerAdded():
            return Issuer(tuple(event.audiences))
        case RulesLoaded():
            return Rules(event.digest)
        case BanSet():
            return Ban(event.whom, event.reason, event.until, event.by, event.at)
        case WorkerJoined():
            return worker_of(event)
        case ClientRegistered():
            return _client(event)
        case AutoApprovalSet():
            return AutoApproval(event.netblock, event.at, event.expires, event.by)
        case CredentialStored():
            return _credential(event)


def _client(event: ClientRegistered) -> ClientRules:
    return ClientRules(
        event.client,
        event.hash,
        event.owner,
        tuple(event.scopes),
        tuple(event.audiences),
        event.lifetime,
        event.exchanges,
        event.by,
        event.at,
    )


def _access_token(state: State | None, event: TokenRevoked | TokenIssued) -> Revoked | JobTokens | None:
    """
    Of those that are valid only a job's are kept, with this one and without those that had ended when it was made.
    """
    if isinstance(event, TokenRevoked):
        return Revoked(event.token, event.expires)
    if event.grant != JOB:
        return None
    before = state.tokens if isinstance(state, JobTokens) else ()
    live = tuple((token, expires) for token, expires in before if event.at < expires)
    return JobTokens(event.session, event.subject, (*live, (event.token, event.expires)))


def _credential(event: CredentialStored) -> StoredCredential:
    return StoredCredential(event.owner, event.service, event.handle, event.kind, event.at)


def _session(state: State | None, event: SessionOpened | SessionRenewed) -> State | None:
    if isinstance(event, SessionOpened):
        return Session(
            event.session,
            event.subject,
            event.hash,
            tuple(event.scopes),
            tuple(event.audiences),
            event.note,
            event.lifetime,
            opened=event.at,
            used=event.at,
            ends=event.ends,
        )
    if not isinstance(state, Session):
        return state
    earlier = (shortened(state.former), *state.earlier)[:EARLIER] if state.former else ()
    return msgspec.structs.replace(state, hash=event.hash, former=state.hash, used=event.at, earlier=earlier)


def shortened(hash_: str) -> bytes:
    """As much of a hash as nobody finds another secret for."""
    return hash_[:16].encode("ascii")


def _token_request(
    state: State | None, event: TokenRequested | TokenRequestApproved | TokenRequestCollected
) -> State | None:
    if isinstance(event, TokenRequested):
        return TokenRequest(
            event.request,
            event.hash,
            event.client,
            event.requester,
            event.address,
            event.identity,
            tuple(event.levels),
            event.lifetime,
            event.at,
            event.expires,
        )
    if not isinstance(state, TokenRequest):
        return state
    if isinstance(event, TokenRequestCollected):
        return msgspec.structs.replace(state, collected=state.collected or event.at)
    return msgspec.structs.replace(
        state, token=event.token, key=event.key, lifetime=event.lifetime, approved=event.at
    )


class Register:
    """The states of all streams."""

    def __init__(self) -> None:
        self._states: dict[str, State] = {}
        self._revoked: dict[str, str] = {}
        """The streams of access tokens that are not valid any more, by the token."""
        self._sessions: dict[str, str] = {}
        """The streams of the tokens of attempts, by the session."""

    @property
    def states(self) -> Mapping[str, State]:
        """By stream."""
        return self._states

    def restore(self, stream: str, state: State) -> None:
        """Take a row of the working set."""
        self._states[stream] = state
        if isinstance(state, Revoked):
            self._revoked[state.token] = stream
        elif isinstance(state, JobTokens):
            self._sessions[state.session] = stream

    def apply(self, stream: str, event: IdentityEvent) -> State | None:
        """Fold an event; the state of its stream after it."""
        before = self._states.pop(stream, None)
        state = fold(before, event)
        if state is not None:
            self.restore(stream, state)
        elif isinstance(before, Revoked):
            self._revoked.pop(before.token, None)
        elif isinstance(before, JobTokens):
            self._sessions.pop(before.session, None)
        return state

    def is_revoked(self, token: str) -> bool:
        """Whether an access token was withdrawn."""
        return token in self._revoked

    def stream_of_session(self, session: str) -> str:
        """The stream of the tokens that an attempt has; empty: it has none."""
        return self._sessions.get(session, "")

    def find(self, kind: type[S], stream: str) -> S | None:
        """The state of a stream, if it has one of this kind."""
        state = self._states.get(stream)
        return state if isinstance(state, kind) else None

    def all(self, kind: type[S]) -> Iterator[S]:
        """All states of a kind."""
        return (state for state in self._states.values() if isinstance(state, kind))

    def ban_of(self, *whom: str, now: float) -> Ban | None:
        """The first ban that concerns somebody who is known under these names."""
        for name in whom:
            ban = self.find(Ban, f"ban/{name}")
            if ban is not None and (not ban.until or now < ban.until):
                return ban
        return None
