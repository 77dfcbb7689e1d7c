"""Machines that run one person's jobs only; iam is asked in that person's name."""

import asyncio
from datetime import UTC, datetime

from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_wire.commands.iam import JoinTokenShown, WorkerShown
from kettle_wire.rest.administration import JoinToken, Worker, Workers
from kettle_wire.rest.own_workers import (
    JoinTokenRevoked,
    RemoveOwnWorker,
    RevokeOwnJoinToken,
    WorkerRemoved,
)


class OwnWorkerQuestions:
    """Answers them."""

    def __init__(self, people: PersonConnections) -> None:
        self._people = people

    async def list(self, asked: Asked) -> Answer:
        """Machines and join tokens of who asks."""
        async with self._people.of(asked.person) as client:
            own = client.iam.own_machines
            workers, tokens = await asyncio.gather(own.workers(), own.join_tokens())
        return Answer(workers_shown(workers, tokens))

    async def remove(self, asked: Asked) -> Answer:
        """Have one out of the pool."""
        parameters: RemoveOwnWorker = asked.parameters
        async with self._people.of(asked.person) as client:
            await client.iam.own_machines.remove_worker(parameters.name)
        return Answer(WorkerRemoved(name=parameters.name))

    async def revoke(self, asked: Asked) -> Answer:
        """Have nobody join any more with a token of who asks."""
        parameters: RevokeOwnJoinToken = asked.parameters
        async with self._people.of(asked.person) as client:
            await client.iam.own_machines.revoke_join_token(parameters.id)
        return Answer(JoinTokenRevoked(id=parameters.id))


def workers_shown(workers: list[WorkerShown], tokens: list[JoinTokenShown]) -> Workers:
    """Machines that have joined, and what others may join with."""
    return Workers(
        workers=[
            Worker(
                name=each.worker,
                joins=each.joins,
                owner=each.owner,
                own=each.own,
                joined=_moment(each.joined),
                expires=_moment(each.expires) if each.expires else None,
            )
            for each in workers
        ],
        join_tokens=[
            JoinToken(
                id=each.token,
                joins=each.joins,
                owner=each.owner,
                by=each.by,
                created=_moment(each.created),
                expires=_moment(each.expires),
                uses=len(each.used),
                most_uses=each.max_uses,
            )
            for each in tokens
        ],
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
