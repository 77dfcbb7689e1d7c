"""Join tokens, and the machines that have joined with them."""

import secrets
import time
from collections.abc import Callable
from typing import Any, Final

from kettle.bus.ports import RefusedError, Served
from kettle.eventsourcing.command_pipeline import CommandPipeline, Decision
from kettle_services.iam.admissions import Pool
from kettle_services.iam.commands.deciding import recorded, refusing
from kettle_services.iam.commands.shown_machines import made, shown_machine, shown_token, usable
from kettle_services.iam.domain import join_tokens
from kettle_services.iam.domain.joining_states import JoinToken, Worker
from kettle_services.iam.machine_removal import MachineRemoval
from kettle_services.iam.record import Record
from kettle_wire.codes import RefusalCode
from kettle_wire.commands import iam
from kettle_wire.events.iam import JoinTokenCreated
from kettle_wire.identity import Identity


class MachineCommands:
    """Lets machines in, and out again."""

    def __init__(
        self,
        record: Record,
        pool: Pool,
        *,
        open_to_machines: Callable[[], None],
        removal: MachineRemoval,
    ) -> None:
        """`open_to_machines` raises Denied if no machine could join."""
        self._record: Final = record
        self._pool = pool
        self._open_to_machines = open_to_machines
        self._removal = removal

    def served(self, pipeline: CommandPipeline) -> list[Served[Any, Any]]:
        """The endpoints with their handlers."""
        return [
            pipeline.command(iam.CREATE_JOIN_TOKEN, self.create_join_token),
            pipeline.query(iam.LIST_JOIN_TOKENS, self.list_join_tokens),
            pipeline.command(iam.REVOKE_JOIN_TOKEN, self.revoke_join_token),
            pipeline.query(iam.LIST_WORKERS, self.list_workers),
            pipeline.command(iam.REMOVE_WORKER, self.remove_worker),
            pipeline.command(iam.LEAVE, self.leave),
        ]

    async def create_join_token(
        self, request: iam.CreateJoinToken, caller: Identity
    ) -> Decision[iam.JoinTokenMade]:
        """Let machines join, or, for a provisioner, the one of a lease."""
        _require_sense(request)
        if caller.kind == "daemon":
            _require_lease(request)
        now = time.time()
        if request.machine:
            with refusing():
                join_tokens.require_free(self._record.register, request.machine, now=now)
        event = JoinTokenCreated(
            token=secrets.token_hex(6),
            hash=request.hash,
            joins=request.joins,
            owner=request.owner,
            expires=now + request.lifetime,
            max_uses=request.max_uses,
            by=caller.name,
            at=now,
            group=request.group,
            machine=request.machine,
            life=request.life,
        )
        return self._created(event)

    def _created(self, event: JoinTokenCreated) -> Decision[iam.JoinTokenMade]:
        with refusing():
            self._open_to_machines()

        return made(event, self._pool)

    async def list_join_tokens(self, request: iam.ListJoinTokens, caller: Identity) -> iam.JoinTokens:
        """Those that can be used."""
        tokens = usable(self._record.register.all(JoinToken), now=time.time())
        return iam.JoinTokens(tokens=[shown_token(each) for each in tokens])

    async def revoke_join_token(
        self, request: iam.RevokeJoinToken, caller: Identity
    ) -> Decision[iam.Recorded]:
        """Withdraw a join token; `not_found`."""
        with refusing():
            return recorded(
                join_tokens.revoked(self._record.register, request.token, by=caller.name, now=time.time())
            )

    async def list_workers(self, request: iam.ListWorkers, caller: Identity) -> iam.Workers:
        """The machines that have joined."""
        workers = sorted(self._record.register.all(Worker), key=lambda each: each.worker)
        return iam.Workers(workers=[shown_machine(each) for each in workers])

    async def remove_worker(self, request: iam.RemoveWorker, caller: Identity) -> Decision[iam.Recorded]:
        """
        Have the credential of a machine be invalid; `not_found`, or `unavailable`: nobody could tell the server.

        Of a lease, for those who have ordered it: it is over, whether its machine has joined, may still do so, or is gone.
        """
        if caller.kind == "daemon":
            with refusing():
                changes = join_tokens.withdrawn(
                    self._record.register, request.worker, by=caller.name, now=time.time()
                )
            await self._removal.cut_off(request.worker)
            return recorded(changes)
        return await self._removed(request.worker, by=caller.name)

    async def leave(self, request: iam.Leave, caller: Identity) -> Decision[iam.Recorded]:
        """A machine leaves by itself; refused as `remove_worker` is."""
        del request
        return await self._removed(caller.access_point or caller.name, by=caller.name)

    async def _removed(self, worker: str, *, by: str) -> Decision[iam.Recorded]:
        with refusing():
            left = join_tokens.left(self._record.register, worker, by=by, now=time.time())
        await self._removal.cut_off(worker)
        return recorded(left)


def _require_sense(request: iam.CreateJoinToken) -> None:
    if request.joins == "schedd" and (request.owner or request.group or request.machine):
        raise RefusedError(
            RefusalCode.UNACCEPTABLE, "an access point is no one's: leave owner, group and machine out"
        )
    if request.owner and request.group:
        raise RefusedError(
            RefusalCode.UNACCEPTABLE,
            "a machine is for the jobs of an owner or of a group: leave one of them out",
        )
    if request.machine and request.max_uses != 1:
        raise RefusedError(
            RefusalCode.UNACCEPTABLE, f"one machine {request.machine} joins once: leave max_uses out"
        )


def _require_lease(request: iam.CreateJoinToken) -> None:
    """What is sent where others can read it is good for one machine, once, and soon."""
    if not request.machine or not request.life or request.lifetime > iam.LONGEST_LEASE_JOIN_S:
        raise RefusedError(
            RefusalCode.DENIED,
            "a provisioner may let in one machine of a lease: name it, give the life of its credential, and no more than "
            f"{iam.LONGEST_LEASE_JOIN_S:g} s for the token",
        )
