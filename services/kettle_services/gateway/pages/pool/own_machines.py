"""
The page of somebody's own machines: those that run that person's jobs only, and what more may join with.
"""

from typing import Annotated, Final

import msgspec

from kettle_services.gateway.pages.notices import Notice
from kettle_services.gateway.pages.page import Form, FromThePast, Led, Link, Page, Shown
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_wire.rest.administration import Workers
from kettle_wire.rest.own_workers import (
    LIST_OWN_WORKERS,
    REMOVE_OWN_WORKER,
    REVOKE_OWN_JOIN_TOKEN,
    JoinTokenRevoked,
    ListOwnWorkers,
    RemoveOwnWorker,
    RevokeOwnJoinToken,
    WorkerRemoved,
)


class OwnMachinesView(msgspec.Struct, frozen=True, kw_only=True):
    """Machines and join tokens of who looks."""

    found: Workers
    trouble: str
    """Why nobody knows; empty: it is known."""


class RemovedFields(msgspec.Struct, frozen=True, kw_only=True):
    """Which machine is to leave the pool."""

    machine: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]


class RevokedFields(msgspec.Struct, frozen=True, kw_only=True):
    """Which join token is to let nobody in any more."""

    token: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


OWN_MACHINES: Final = Page(
    "/own-machines",
    "Your machines",
    template="pool/own_machines.html",
    parameters=FromThePast,
    link=Link("Pool", 12),
    only_now=True,
)
REMOVE: Final = Form(
    "/own-machines/remove", "Your machines", fields=RemovedFields, template="pool/own_machines.html"
)
REVOKE: Final = Form(
    "/own-machines/revoke", "Your machines", fields=RevokedFields, template="pool/own_machines.html"
)


class OwnMachinePages:
    """Shows them, has one leave, and has nobody join with a token any more."""

    def __init__(self, questions: Questions) -> None:
        self._questions: Final = questions

    async def machines(self, asked: Asked) -> Shown:
        """The machines of who looks; where no iam answers, why there are none."""
        found, trouble = await self._questions.ask_or_say(asked, LIST_OWN_WORKERS, ListOwnWorkers(), Workers)
        return Shown(OwnMachinesView(found=found or Workers(workers=[], join_tokens=[]), trouble=trouble))

    async def remove(self, asked: Asked) -> Led:
        """Have one out of the pool; raises RequestRefused if who asks has not let it in."""
        fields: RemovedFields = asked.body
        parameters = RemoveOwnWorker(name=fields.machine)
        removed = await self._questions.ask(asked, REMOVE_OWN_WORKER, parameters, WorkerRemoved)
        said = f"{removed.name} has left the pool: its jobs run elsewhere again."
        return Led("/own-machines", notice=Notice(said=[said]))

    async def revoke(self, asked: Asked) -> Led:
        """Withdraw a join token; raises RequestRefused if who asks has not made it."""
        fields: RevokedFields = asked.body
        parameters = RevokeOwnJoinToken(id=fields.token)
        revoked = await self._questions.ask(asked, REVOKE_OWN_JOIN_TOKEN, parameters, JoinTokenRevoked)
        return Led("/own-machines", notice=Notice(said=[f"Nobody joins with {revoked.id} any more."]))
