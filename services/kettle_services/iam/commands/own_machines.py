"""Machines that people let in for their own jobs."""

import secrets
import time
from typing import Any, Final

from kettle.bus.ports import Served
from kettle.eventsourcing.command_pipeline import CommandPipeline, Decision
from kettle_services.iam.admissions import Pool
from kettle_services.iam.commands.deciding import recorded, refusing
from kettle_services.iam.commands.shown_machines import made, shown_machine, shown_token, usable
from kettle_services.iam.domain import join_tokens, machine_grants
from kettle_services.iam.domain.bans import require_welcome
from kettle_services.iam.domain.join_tokens import Lives
from kettle_services.iam.domain.joining_states import JoinToken, Worker
from kettle_services.iam.machine_removal import MachineRemoval
from kettle_services.iam.people.identification import Identification
from kettle_services.iam.ports import BusCredentials
from kettle_services.iam.record import Record
from kettle_wire.commands import own_machines as own
from kettle_wire.commands.iam import JoinTokenMade, JoinTokens, Recorded, Workers
from kettle_wire.endpoint import Position
from kettle_wire.events.iam import Grant, JoinTokenCreated
from kettle_wire.identity import Identity


class OwnMachineCommands:
    """Lets them in, renews what they show, and has people see and remove them."""

    def __init__(
        self,
        record: Record,
        pool: Pool,
        bus: BusCredentials,
        removal: MachineRemoval,
        identification: Identification,
        *,
        lives: Lives,
        most: int,
    ) -> None:
        """`most`: machines that a person may have in this way."""
        self._record: Final = record
        self._pool = pool
        self._bus = bus
        self._removal = removal
        self._identification = identification
        self._lives = lives
        self._most = most

    def served(self, pipeline: CommandPipeline) -> list[Served[Any, Any]]:
        """The endpoints with their handlers."""
        return [
            pipeline.command(own.CREATE_OWN_JOIN_TOKEN, self.create_join_token),
            pipeline.command(own.CREATE_BEARERS_JOIN_TOKEN, self.create_bearers_join_token),
            pipeline.query(own.LIST_OWN_JOIN_TOKENS, self.list_join_tokens),
            pipeline.command(own.REVOKE_OWN_JOIN_TOKEN, self.revoke_join_token),
            pipeline.query(own.LIST_OWN_WORKERS, self.list_workers),
            pipeline.command(own.REMOVE_OWN_WORKER, self.remove_worker),
            pipeline.command(own.RENEW_WORKER, self.renew_worker),
        ]

    async def create_join_token(
        self, request: own.CreateOwnJoinToken, caller: Identity
    ) -> Decision[JoinTokenMade]:
        """Let machines join for somebody whom the pool knows without a token."""
        return self._created(request, caller.name, machine_grants.of_account(caller.name))

    async def create_bearers_join_token(
        self, request: own.CreateBearersJoinToken, caller: Identity
    ) -> Decision[JoinTokenMade]:
        """
        Let machines join for somebody who shows a token; refused if that permits no submissions, or is another's.
        """
        with refusing():
            grant = await self._identification.grant_of(request.credential, caller.name)
        return self._created(request, caller.name, grant)

    def _created(
        self, request: own.CreateOwnJoinToken | own.CreateBearersJoinToken, person: str, grant: Grant
    ) -> Decision[JoinTokenMade]:
        now = time.time()
        with refusing():
            require_welcome(self._record.register, f"user:{person}", now=now)
            join_tokens.require_own_room(
                self._record.register, person, more=request.max_uses, limit=self._most, now=now
            )
            self._bus.require_open()
        event = JoinTokenCreated(
            token=secrets.token_hex(6),
            hash=request.hash,
            owner=person,
            expires=now + request.lifetime,
            max_uses=request.max_uses,
            by=person,
            at=now,
            grant=grant,
        )
        return made(event, self._pool)

    async def list_join_tokens(self, request: own.ListOwnJoinTokens, caller: Identity) -> JoinTokens:
        """Join tokens of the caller that can be used."""
        tokens = usable(self._record.register.all(JoinToken), now=time.time())
        return JoinTokens(
            tokens=[shown_token(each) for each in tokens if each.grant and each.owner == caller.name]
        )

    async def revoke_join_token(
        self, request: own.RevokeOwnJoinToken, caller: Identity
    ) -> Decision[Recorded]:
        """Withdraw one; `not_found`."""
        register, now = self._record.register, time.time()
        with refusing():
            return recorded(join_tokens.revoked_own(register, request.token, person=caller.name, now=now))

    async def list_workers(self, request: own.ListOwnWorkers, caller: Identity) -> Workers:
        """The machines that run the caller's jobs only."""
        workers = sorted(self._record.register.all(Worker), key=lambda each: each.worker)
        return Workers(workers=[shown_machine(each) for each in workers if each.owner == caller.name])

    async def remove_worker(self, request: own.RemoveOwnWorker, caller: Identity) -> Decision[Recorded]:
        """
        Have the credential of a machine be invalid that the caller has let in; `not_found`, `denied`, or `unavailable`.
        """
        with refusing():
            left = join_tokens.left_own(
                self._record.register, request.worker, person=caller.name, now=time.time()
            )
        await self._removal.cut_off(request.worker)
        return recorded(left)

    async def renew_worker(self, request: own.RenewWorker, caller: Identity) -> Decision[own.WorkerRenewal]:
        """A credential with a later end for the machine that asks; `denied`, with the reason."""
        del request
        now = time.time()
        with refusing():
            worker, changes = machine_grants.renewed(
                self._record.register, caller.name, lifetime=self._lives.of_own, now=now
            )
            jwt = self._bus.mint_worker(
                worker.worker, key=worker.key, owner=worker.owner, issued=now, expires=worker.expires
            )

        def reply(position: Position) -> own.WorkerRenewal:
            return own.WorkerRenewal(jwt=jwt, expires=worker.expires, position=position)

        return Decision(reply, changes)
