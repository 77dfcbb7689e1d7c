"""
Machines that people let into the pool for their own jobs: what a person asks of iam about them, and what such a machine asks.

They are in the pool as long as what the person has shown is good: a machine's credential ends after some days, and is renewed
until then (`kettle_wire.events.iam.Grant`).
"""

from typing import Annotated, Final

import msgspec

from kettle_wire.commands.iam import JoinTokenMade, JoinTokens, Login, Recorded, Sha256, Workers
from kettle_wire.endpoint import Caller, CommandId, Endpoint, Position, Repeat

LONGEST_OWN_JOIN_S: Final = 86_400.0
"""The longest life of a join token that somebody makes for machines of his own."""
SHORTEST_OWN_JOIN_S: Final = 60.0
"""The shortest: else nothing bounds how many somebody makes one after the other."""
_LARGEST_TOKEN: Final = 65_536

OwnJoinLifetime = Annotated[float, msgspec.Meta(ge=SHORTEST_OWN_JOIN_S, le=LONGEST_OWN_JOIN_S)]
OwnMachines = Annotated[int, msgspec.Meta(ge=1, le=10_000)]


class CreateOwnJoinToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Let machines join that run the caller's jobs only, with a secret that the caller has made; they stay as long as the caller is not
    banned.
    """

    id: CommandId
    hash: Sha256
    lifetime: OwnJoinLifetime = 1800.0
    max_uses: OwnMachines = 1


class CreateBearersJoinToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Let such machines join for who has come with a token: they stay as long as that is good."""

    id: CommandId
    hash: Sha256
    credential: Annotated[str, msgspec.Meta(min_length=1, max_length=_LARGEST_TOKEN)]
    """The token, which is kept nowhere."""
    lifetime: OwnJoinLifetime = 1800.0
    max_uses: OwnMachines = 1

    def __repr__(self) -> str:
        return f"CreateBearersJoinToken(id={self.id!r})"


class ListOwnJoinTokens(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The join tokens that the caller has made for machines of his own and that can be used."""


class RevokeOwnJoinToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Withdraw one of these; machines that have joined with it stay."""

    id: CommandId
    token: Annotated[str, msgspec.Meta(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]


class ListOwnWorkers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The machines that run the caller's jobs only."""


class RemoveOwnWorker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Have the credential of a machine be invalid that the caller has let in; it does not drain the machine.
    """

    id: CommandId
    worker: Login


class RenewWorker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Have a credential for the key of the machine that asks, good for some more days; one that has more than half of them gets no more.
    """


class WorkerRenewal(msgspec.Struct, frozen=True, kw_only=True):
    """It; worth nothing without the key, which the machine alone has."""

    jwt: str
    expires: float
    position: Position


_USER: Final = (Caller.USER,)

CREATE_OWN_JOIN_TOKEN: Final = Endpoint(
    "iam",
    "create_own_join_token",
    CreateOwnJoinToken,
    JoinTokenMade,
    callers=_USER,
    repeat=Repeat.FIRST_ANSWER,
)
CREATE_BEARERS_JOIN_TOKEN: Final = Endpoint(
    "iam",
    "create_bearers_join_token",
    CreateBearersJoinToken,
    JoinTokenMade,
    callers=_USER,
    repeat=Repeat.FIRST_ANSWER,
)
LIST_OWN_JOIN_TOKENS: Final = Endpoint(
    "iam", "list_own_join_tokens", ListOwnJoinTokens, JoinTokens, callers=_USER, repeat=Repeat.QUERY
)
REVOKE_OWN_JOIN_TOKEN: Final = Endpoint(
    "iam",
    "revoke_own_join_token",
    RevokeOwnJoinToken,
    Recorded,
    callers=_USER,
    repeat=Repeat.FIRST_ANSWER,
)
LIST_OWN_WORKERS: Final = Endpoint(
    "iam", "list_own_workers", ListOwnWorkers, Workers, callers=_USER, repeat=Repeat.QUERY
)
REMOVE_OWN_WORKER: Final = Endpoint(
    "iam", "remove_own_worker", RemoveOwnWorker, Recorded, callers=_USER, repeat=Repeat.FIRST_ANSWER
)
RENEW_WORKER: Final = Endpoint(
    "iam",
    "renew_worker",
    RenewWorker,
    WorkerRenewal,
    callers=(Caller.STARTD,),
    repeat=Repeat.HARMLESS,
)
