"""How join tokens and machines are shown to who may see them."""

from collections.abc import Iterable

import msgspec

from kettle.eventsourcing.command_pipeline import Decision
from kettle_services.iam.admissions import Pool
from kettle_services.iam.domain import join_tokens
from kettle_services.iam.domain.joining_states import JoinToken, Worker
from kettle_wire.commands.iam import JoinTokenMade, JoinTokenShown, WorkerShown
from kettle_wire.endpoint import Position
from kettle_wire.events.iam import JoinTokenCreated


def usable(tokens: Iterable[JoinToken], *, now: float) -> list[JoinToken]:
    """Those that let machines in, the first that ends first."""
    good = [
        each for each in tokens if not each.revoked and now < each.expires and len(each.uses) < each.max_uses
    ]
    return sorted(good, key=lambda each: (each.expires, each.token))


def shown_token(token: JoinToken) -> JoinTokenShown:
    """Nothing of it lets anybody in."""
    return JoinTokenShown(
        token=token.token,
        joins=token.joins,
        owner=token.owner,
        by=token.by,
        created=token.created,
        expires=token.expires,
        max_uses=token.max_uses,
        used=[use.name for use in token.uses],
        group=token.group,
        machine=token.machine,
        own=token.grant is not None,
    )


def shown_machine(worker: Worker) -> WorkerShown:
    """A machine that has joined."""
    values = msgspec.structs.asdict(worker)
    del values["grant"]
    return WorkerShown(**values, own=worker.grant is not None)


def made(event: JoinTokenCreated, pool: Pool) -> Decision[JoinTokenMade]:
    """The decision to record a join token, and to say what it consists of besides its secret."""

    def reply(position: Position) -> JoinTokenMade:
        return JoinTokenMade(
            token=event.token, pin=pool.pin, url=pool.url, expires=event.expires, position=position
        )

    return Decision(reply, [(join_tokens.stream(event.token), event)])
