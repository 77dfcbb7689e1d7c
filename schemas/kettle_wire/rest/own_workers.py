"""
Machines that run one person's jobs only, over HTTP: that person sees them, and removes those that he has let in.
"""

import msgspec

from kettle_wire.rest.administration import Workers
from kettle_wire.rest.route import Route


class ListOwnWorkers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List the machines that run your own jobs only, and the tokens that you have made for others to join."""


class RemoveOwnWorker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Have a machine out of the pool that you have let in: its connection ends at once, and its jobs run elsewhere again.
    """

    name: str


class RevokeOwnJoinToken(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Withdraw a join token that you have made: no more machines join with it, and those that have stay."""

    id: str


class JoinTokenRevoked(msgspec.Struct, frozen=True, kw_only=True):
    """Nobody joins with it any more."""

    id: str


class WorkerRemoved(msgspec.Struct, frozen=True, kw_only=True):
    """Its credential is not good any more."""

    name: str


LIST_OWN_WORKERS = Route(
    "GET", "/own-workers", "list_own_workers", parameters=ListOwnWorkers, reply=Workers, errors=(404,)
)
REMOVE_OWN_WORKER = Route(
    "DELETE",
    "/own-workers/{name}",
    "remove_own_worker",
    parameters=RemoveOwnWorker,
    reply=WorkerRemoved,
    level="WRITE",
    errors=(404,),
)
REVOKE_OWN_JOIN_TOKEN = Route(
    "DELETE",
    "/own-join-tokens/{id}",
    "revoke_own_join_token",
    parameters=RevokeOwnJoinToken,
    reply=JoinTokenRevoked,
    level="WRITE",
    errors=(404,),
)
