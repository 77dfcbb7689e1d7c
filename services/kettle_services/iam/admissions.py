"""Machines that join by a token."""

import time
from collections.abc import Mapping
from typing import Final

import msgspec

from kettle.bus.ports import BusError, RefusedError
from kettle_services.iam.alarms import DenialRecord
from kettle_services.iam.domain import join_tokens
from kettle_services.iam.domain.join_tokens import Joined, Joining, Lives, Misused
from kettle_services.iam.domain.joining_states import JoinToken, Worker
from kettle_services.iam.domain.refusals import Code, Denied
from kettle_services.iam.host_names import HostNames
from kettle_services.iam.machine_owners import MachineOwners
from kettle_services.iam.ports import BusCredentials, PoolMaster, TokenKeys
from kettle_services.iam.record import Record
from kettle_wire.codes import RefusalCode


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine has to know of the pool."""

    name: str
    url: str
    """Of iam; also its name as an issuer."""
    bus_url: str
    pin: str
    """By which join tokens name this pool."""
    bus_ca: str = ""
    """The certificate of the authority of the bus, in PEM; empty: connections are not encrypted, or the system knows it."""


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """
    The answer to a machine that joins; there is no secret in it, because the machine has made its own key.
    """

    token_type: str = "kettle-bus"  # noqa: S105 - a type
    pool: str
    worker: str
    joins: str
    owner: str
    jwt: str
    """What the machine shows to the bus, together with its key."""
    nats_url: str
    expires: float
    by: str = ""
    """Who made the token, and so administers the machine; empty: it is of a lease, and its provider says who does."""
    bus_ca: str = ""
    """As in `Pool`."""
    services: dict[str, str] = {}
    """What each service of an access point shows to the bus, by role; `jwt` is then the master's."""
    people_account: str = ""
    """The public key of the account of the bus in which an access point's people are."""
    statement: str = ""
    """All of this, signed with the key that join tokens name if they name no authority."""


class Admissions:
    """Admits machines."""

    def __init__(
        self,
        record: Record,
        denials: DenialRecord,
        bus: BusCredentials,
        keys: TokenKeys,
        pool: Pool,
        master: PoolMaster,
        owners: MachineOwners,
        *,
        hosts: HostNames,
        lives: Lives,
    ) -> None:
        self._record: Final = record
        self._denials = denials
        self._bus = bus
        self._keys = keys
        self._pool = pool
        self._hosts = hosts
        self._master = master
        self._owners = owners
        self._lives = lives

    async def _decided(self, joining: Joining, now: float) -> Joined:
        try:
            return join_tokens.joined(
                self._record.register, joining, pin=self._pool.pin, lives=self._lives, now=now
            )
        except Misused as refusal:
            await self._denials.misused(joining, refusal)
            raise

    def opened(self, sealed: str) -> Mapping[str, str]:
        """
        The form of a machine that knows this pool by its key, and sends over an open line what only we can read; raises Denied.
        """
        return self._keys.opened(sealed)

    async def join(self, joining: Joining) -> Admitted:
        """
        Let a machine in; a machine that asks again with the same key within a minute gets the same answer.

        Raises:
            Misused: the token does not admit it; the alarm is recorded.
            Denied: it cannot be let in.
        """
        now = time.time()
        joined = await self._decided(joining, now)
        known = self._record.register.find(Worker, f"worker/{joining.name}")
        new = not self._record.shard.version(f"worker/{joining.name}")  # none that joined has had the name
        if new or (known is not None and known.joins != joining.joins):
            await self._hosts.require_free(joining.name, joining.joins)
            joined = await self._decided(joining, now)
        worker = joined.worker
        made = self._record.register.find(JoinToken, join_tokens.stream(worker.token))
        services = self._minted(worker)
        await self._record.record(joined.changes)
        await self._tell_owner(worker)
        people = await self._people(worker, joining.people)
        admitted = Admitted(
            pool=self._pool.name,
            worker=worker.worker,
            joins=worker.joins,
            owner=worker.owner,
            jwt=services.get("master") or services["worker"],
            nats_url=self._pool.bus_url,
            expires=worker.expires,
            by=made.by if made is not None and not worker.leased else "",
            bus_ca=self._pool.bus_ca,
            services=services if worker.joins == "schedd" else {},
            people_account=people,
        )
        statement = self._keys.statement({"iat": int(worker.joined), **msgspec.structs.asdict(admitted)})
        return msgspec.structs.replace(admitted, statement=statement)

    def _minted(self, worker: Worker) -> dict[str, str]:
        """What each service of the machine shows to the bus."""
        if worker.joins == "schedd":
            return self._bus.mint_access_point(
                worker.worker, key=worker.key, issued=worker.joined, expires=worker.expires
            )
        return {
            "worker": self._bus.mint_worker(
                worker.worker,
                key=worker.key,
                owner=worker.owner,
                issued=worker.joined,
                expires=worker.expires,
            )
        }

    async def _tell_owner(self, worker: Worker) -> None:
        """Before the machine can say anything, negotiators know whose jobs it takes."""
        if worker.joins != "worker":
            return
        try:
            await self._owners.tell()
        except BusError as error:
            raise Denied(
                Code.JOIN_CLOSED,
                f"negotiators cannot be told now whose jobs the machine takes ({error}): join again with the same token within a "
                "minute",
                status=503,
            ) from error

    async def _people(self, worker: Worker, people: str) -> str:
        if worker.joins != "schedd":
            return ""
        try:
            return await self._master.admit(worker.worker, people)
        except RefusedError as refusal:
            if refusal.code != RefusalCode.UNACCEPTABLE:
                raise _closed(refusal) from refusal
            now = time.time()
            await self._record.record(
                join_tokens.left(self._record.register, worker.worker, by=worker.worker, now=now)
            )
            raise Denied(Code.JOIN_NAME_TAKEN, str(refusal), status=409) from refusal
        except BusError as error:
            raise _closed(error) from error


def _closed(error: BusError) -> Denied:
    return Denied(
        Code.JOIN_CLOSED,
        f"the pool's master does not admit access points now ({error}): join again with the same token within a minute",
        status=503,
    )
