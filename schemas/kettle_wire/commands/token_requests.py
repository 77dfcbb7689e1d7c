"""
What iam is asked about the tokens of programs of HTCondor (IDTOKENS): for oneself, or for somebody else after an approval.

A token limits its bearer to the levels that it names.  One that may do more than WRITE, or that names no level, is given
only to who has the level ADMINISTRATOR where he asks, so that nobody widens by a token what another one limits.
"""

from typing import Annotated, Final

import msgspec

from kettle_wire.commands.iam import Recorded, Sha256
from kettle_wire.endpoint import Caller, CommandId, Endpoint, Position, Repeat

MOST_LEVELS: Final = 16

LevelName = Annotated[str, msgspec.Meta(min_length=1, max_length=32, pattern=r"^[A-Z_]+$")]
Levels = Annotated[list[LevelName], msgspec.Meta(max_length=MOST_LEVELS)]
TokenLifetime = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
"""Seconds; 0: as long as the pool gives tokens for."""
KeyName = Annotated[str, msgspec.Meta(max_length=128, pattern=r"^[A-Za-z0-9._-]*$")]
RequestNumber = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{7}$")]
TokenIdentity = Annotated[str, msgspec.Meta(max_length=255, pattern=r"^[!-?A-~]+@[!-?A-~]+$")]
ClientName = Annotated[str, msgspec.Meta(min_length=1, max_length=256, pattern=r"^[!-~]+$")]
Netblock = Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[0-9A-Fa-f.:/]+$")]


class FetchToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have a token for oneself.  Asked again, there is another one: no token is stored anywhere."""

    levels: Levels = []
    lifetime: TokenLifetime = 0
    key: KeyName = ""
    """Which key of the pool signs it; empty: the one that is called POOL."""


class FetchedToken(msgspec.Struct, frozen=True, kw_only=True):
    """The token."""

    token: str
    id: str
    identity: str
    expires: float
    """0: never."""


class RequestToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ask for a token of any identity, which somebody has to approve; who has the secret collects it."""

    id: CommandId
    hash: Sha256
    """SHA-256 of the secret, which the caller has made."""
    client: ClientName
    """What the program calls itself."""
    identity: TokenIdentity | None = None
    """None: `condor` of the pool, who its daemons are."""
    levels: Levels = []
    lifetime: TokenLifetime = 0


class TokenRequestMade(msgspec.Struct, frozen=True, kw_only=True):
    """It waits for its approval, unless a rule has approved it."""

    request: RequestNumber
    """What is told to who approves it."""
    expires: float
    position: Position


class CollectToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have the token of an approved request."""

    request: RequestNumber
    secret: Annotated[str, msgspec.Meta(min_length=16, max_length=256)]


class CollectedToken(msgspec.Struct, frozen=True, kw_only=True):
    """The token; empty as long as nobody has approved the request."""

    token: str = ""


class ListTokenRequests(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The requests that wait."""


class TokenRequestShown(msgspec.Struct, frozen=True, kw_only=True):
    """One of them."""

    request: str
    client: str
    address: str
    """From where it came; empty: over the bus."""
    requester: str
    """Who asked, as far as that is known."""
    identity: str
    levels: list[str]
    lifetime: int
    """Seconds; 0: as long as the pool gives tokens for."""
    made: float
    expires: float


class TokenRequests(msgspec.Struct, frozen=True, kw_only=True):
    """All of them, the oldest first."""

    requests: list[TokenRequestShown]


class ApproveTokenRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Have the token of a request be given; both are named, so that nobody approves by a slip of the pen."""

    id: CommandId
    request: RequestNumber
    client: ClientName


class AutoApprove(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Approve what daemons of new machines ask for themselves: `condor` with the levels ADVERTISE_... alone, from a network, for
    some time, and up to a minute back.
    """

    id: CommandId
    netblock: Netblock
    """Such as 192.0.2.0/24."""
    lifetime: Annotated[int, msgspec.Meta(gt=0, le=30 * 86_400)] = 3600
    """Seconds."""


class AutoApproved(msgspec.Struct, frozen=True, kw_only=True):
    """The rule is in force."""

    approved: list[str]
    """The requests that it has approved already."""
    position: Position


_ADMINISTRATOR: Final = (Caller.ADMINISTRATOR,)
_USER: Final = (Caller.USER,)

FETCH_TOKEN = Endpoint("iam", "fetch_token", FetchToken, FetchedToken, callers=_USER, repeat=Repeat.HARMLESS)
FETCH_ANY_TOKEN = Endpoint(
    "iam", "fetch_any_token", FetchToken, FetchedToken, callers=_ADMINISTRATOR, repeat=Repeat.HARMLESS
)
REQUEST_TOKEN = Endpoint(
    "iam", "request_token", RequestToken, TokenRequestMade, callers=_USER, repeat=Repeat.FIRST_ANSWER
)
COLLECT_TOKEN = Endpoint(
    "iam", "collect_token", CollectToken, CollectedToken, callers=_USER, repeat=Repeat.HARMLESS
)
LIST_OWN_TOKEN_REQUESTS = Endpoint(
    "iam", "list_own_token_requests", ListTokenRequests, TokenRequests, callers=_USER, repeat=Repeat.QUERY
)
LIST_TOKEN_REQUESTS = Endpoint(
    "iam",
    "list_token_requests",
    ListTokenRequests,
    TokenRequests,
    callers=_ADMINISTRATOR,
    repeat=Repeat.QUERY,
)
APPROVE_OWN_TOKEN_REQUEST = Endpoint(
    "iam",
    "approve_own_token_request",
    ApproveTokenRequest,
    Recorded,
    callers=_USER,
    repeat=Repeat.FIRST_ANSWER,
)
APPROVE_TOKEN_REQUEST = Endpoint(
    "iam",
    "approve_token_request",
    ApproveTokenRequest,
    Recorded,
    callers=_ADMINISTRATOR,
    repeat=Repeat.FIRST_ANSWER,
)
AUTO_APPROVE = Endpoint(
    "iam", "auto_approve", AutoApprove, AutoApproved, callers=_ADMINISTRATOR, repeat=Repeat.FIRST_ANSWER
)
