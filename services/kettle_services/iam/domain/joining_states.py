"""Join tokens, and the machines that have joined with them. Pure."""

import msgspec

from kettle_wire.events.iam import (
    Grant,
    Joins,
    JoinTokenCreated,
    JoinTokenRevoked,
    JoinTokenUsed,
    WorkerJoined,
    WorkerRenewed,
)


class Use(msgspec.Struct, frozen=True):
    """A machine that has joined with a token."""

    name: str
    key: str
    at: float


class JoinToken(msgspec.Struct, frozen=True, tag=True):
    """A token with which machines may join."""

    token: str
    hash: str
    joins: Joins
    owner: str
    created: float
    expires: float
    max_uses: int
    by: str
    uses: tuple[Use, ...] = ()
    revoked: bool = False
    group: str = ""
    machine: str = ""
    life: float = 0.0
    grant: Grant | None = None


class Worker(msgspec.Struct, frozen=True, tag=True):
    """A machine with a credential of its own."""

    worker: str
    joins: Joins
    key: str
    owner: str
    token: str
    joined: float
    expires: float
    group: str = ""
    leased: bool = False
    grant: Grant | None = None
    """Of a machine that the person has let in whose jobs it runs."""


def worker_of(event: WorkerJoined) -> Worker:
    """The machine that has just joined."""
    return Worker(
        event.worker,
        event.joins,
        event.key,
        event.owner,
        event.token,
        event.at,
        event.expires,
        event.group,
        event.leased,
        event.grant,
    )


def fold_renewal(state: Worker | None, event: WorkerRenewed) -> Worker | None:
    """The machine with a later end."""
    return None if state is None else msgspec.structs.replace(state, expires=event.expires)


def fold_join_token(
    state: JoinToken | None, event: JoinTokenCreated | JoinTokenUsed | JoinTokenRevoked
) -> JoinToken | None:
    """The token after one more event."""
    if isinstance(event, JoinTokenCreated):
        return JoinToken(
            event.token,
            event.hash,
            event.joins,
            event.owner,
            event.at,
            event.expires,
            event.max_uses,
            event.by,
            group=event.group,
            machine=event.machine,
            life=event.life,
            grant=event.grant,
        )
    if state is None:
        return None
    if isinstance(event, JoinTokenRevoked):
        return msgspec.structs.replace(state, revoked=True)
    use = Use(event.name, event.key, event.at)
    return msgspec.structs.replace(state, uses=(*state.uses, use))
