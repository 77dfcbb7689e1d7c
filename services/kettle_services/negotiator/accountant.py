"""
The accountant's record: what submitters are charged, and what administrators command, in the negotiator's shard.

One owner writes both the matches and the usage that they lead to, so priorities follow from one log, in one order.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

import msgspec

from kettle.bus.ports import RefusedError, Served
from kettle.eventsourcing.log import Log, WorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.eventsourcing.working_set import Checkpointer
from kettle.matchmaking import ROOT, GroupShare
from kettle_services.negotiator.domain import accountant_commands
from kettle_services.negotiator.domain.accountant import Accountant, Standing
from kettle_services.negotiator.domain.accountant_commands import Unacceptable
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.principals import (
    GROUP,
    STREAM,
    Principal,
    fold_into,
    group_principal,
    principal_of,
    row_of,
)
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.negotiator import (
    DELETE_PRINCIPAL,
    QUERY_PRIORITIES,
    RESET_USAGE,
    SET_PRINCIPAL,
    Administered,
    DeletePrincipal,
    GroupStanding,
    Priorities,
    Priority,
    QueryPriorities,
    ResetUsage,
    SetPrincipal,
)
from kettle_wire.endpoint import Position
from kettle_wire.events import PrincipalCharged, PrincipalEvent, decode
from kettle_wire.frames import Frame
from kettle_wire.identity import Identity

_FRAME: Final = 1_000
"""So many charges are in one frame at most."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode_answer: Final = msgspec.msgpack.Decoder(Administered).decode
_Command = TypeVar("_Command", SetPrincipal, ResetUsage, DeletePrincipal)


class Accounts:
    """Principals with their record; `charging` must be running for anybody to be charged."""

    def __init__(
        self,
        shard: Shard,
        checkpointer: Checkpointer,
        accountant: Accountant,
        pool: Pool,
        *,
        administrators: Collection[str],
    ) -> None:
        self.accountant = accountant
        self.shares: list[GroupShare] = []
        """How accounting groups stood after the last cycle."""
        self._shard = shard
        self._checkpointer = checkpointer
        self._pool = pool
        self._administrators = administrators
        self._deciding = asyncio.Lock()
        shard.on_commit(self._committed)

    def served(self) -> list[Served[Any, Any]]:
        """All endpoints with their handlers."""
        return [
            Served(QUERY_PRIORITIES, self.query),
            Served(SET_PRINCIPAL, self.set),
            Served(RESET_USAGE, self.reset),
            Served(DELETE_PRINCIPAL, self.delete),
        ]

    # -- usage -------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _settled(self) -> AsyncGenerator[None]:
        """
        All decisions are committed and folded, and no other decision is made inside the context.

        So no answer, match or charge uses state that might still be lost; the lock is fair, so nobody waits for long.
        """
        async with self._deciding:
            await self._shard.record([], now_us=time.time_ns() // 1000)
            yield

    async def standings(self, now: float, names: Collection[str] = ()) -> dict[str, Standing]:
        """How these stand, or all who are known, by what is recorded and what was used since."""
        async with self._settled():
            return self.accountant.standings(now, names)

    def observe(self) -> None:
        """Look at who uses what, according to the slots' ads."""
        self.accountant.observe(time.time(), self._pool.in_use_of_known(self.accountant.recorded()))

    async def charging(self, seen: asyncio.Event, interval: float) -> None:
        """Charge all submitters each `interval` seconds, once all ads were `seen`; never returns."""
        await seen.wait()
        while True:
            async with self._settled():
                self.observe()
                now = time.time()
                gone = accountant_commands.forgetting(
                    self.accountant, now=now
                )  # who was seen since is not among them
                await self._record([*gone, *self.accountant.charge(now)])
            await asyncio.sleep(interval)

    async def _record(self, events: Sequence[PrincipalEvent], command: str = "") -> int:
        """Commit, which folds; the number of the last frame. The answer of a command is stored with it."""
        *earlier, last = [events[start : start + _FRAME] for start in range(0, len(events) or 1, _FRAME)]
        for piece in earlier:
            self._put(piece)
        if not command:
            return await self._put(last)
        return await self._put(
            last, command=command, reply=lambda frame: _encode(self._answer(events, frame))
        )

    def _put(
        self,
        events: Sequence[PrincipalEvent],
        *,
        command: str = "",
        reply: Callable[[int], bytes] | None = None,
    ) -> "asyncio.Future[int]":
        changes = [(f"{STREAM}{event.principal}", event) for event in events]
        return self._shard.record(changes, now_us=time.time_ns() // 1000, command=command, reply=reply)

    def _committed(self, frame: Frame) -> None:
        self._checkpointer.mark(frame.number, fold_frame(self.accountant.principals, frame))

    # -- commands ----------------------------------------------------------------------------------------------------

    async def query(self, request: QueryPriorities, caller: Identity) -> Priorities:
        """How submitters stand; everybody may ask."""
        del caller
        now = time.time()
        standings = await self.standings(now, request.names)
        shown = {name: self._shown(name, standing) for name, standing in standings.items()}
        found = [one for name, one in shown.items() if request.names or not name.startswith(GROUP)]
        return Priorities(
            at=now,
            half_life=self.accountant.half_life,
            submitters=sorted(found, key=lambda each: (each.effective, each.name)),
            groups=[] if request.names else [_group(share, shown) for share in self.shares],
        )

    def _shown(self, name: str, standing: Standing) -> Priority:
        group = self.accountant.group_of(name).name
        return _shown(name, standing, "" if group == ROOT or name.startswith(GROUP) else group)

    async def set(self, request: SetPrincipal, caller: Identity) -> Administered:
        """Set something of a submitter; `denied` to who is no administrator."""

        def events(now: float) -> list[PrincipalEvent]:
            return accountant_commands.setting(
                self.accountant, request.name, request.setting, request.value, now=now, by=caller.name
            )

        return await self._carry_out(events, request, caller)

    async def reset(self, request: ResetUsage, caller: Identity) -> Administered:
        """Set accumulated usage to nothing; `denied`, or `not_found`."""

        def events(now: float) -> list[PrincipalEvent]:
            everybody = sorted(self.accountant.principals)
            names = everybody if request.name is None else [self._known(request.name)]
            return accountant_commands.resetting(self.accountant, names, now=now, by=caller.name)

        return await self._carry_out(events, request, caller)

    async def delete(self, request: DeletePrincipal, caller: Identity) -> Administered:
        """Forget a submitter; `denied`, or `not_found`."""

        def events(now: float) -> list[PrincipalEvent]:
            name = self._known(request.name)
            return accountant_commands.deleting(self.accountant, name, now=now, by=caller.name)

        return await self._carry_out(events, request, caller)

    def _first(self, request: _Command, caller: Identity) -> "asyncio.Future[bytes] | None":
        """The first answer to a command that is repeated; refuses who may not command."""
        if caller.kind != "user" or caller.name not in self._administrators:
            raise RefusedError(
                RefusalCode.DENIED,
                f"{caller.name} is no administrator of the accountant; those are: "
                f"{', '.join(sorted(self._administrators))} ([negotiator] administrators)",
            )
        return self._shard.answer(_command(request, caller))

    def _known(self, name: str) -> str:
        if name in self.accountant.principals:
            return name
        raise RefusedError(
            RefusalCode.NOT_FOUND, f"the accountant knows no {name}; see whom with: kettle userprio"
        )

    async def _carry_out(
        self, decide: Callable[[float], list[PrincipalEvent]], request: _Command, caller: Identity
    ) -> Administered:
        """Decide by what is committed, and commit that; the first answer to a command that is repeated."""
        if (first := self._first(request, caller)) is not None:
            return _decode_answer(await first)
        async with self._settled():
            if (first := self._first(request, caller)) is not None:
                return _decode_answer(await first)
            try:
                events = decide(time.time())
            except Unacceptable as refusal:
                raise RefusedError(RefusalCode.UNACCEPTABLE, str(refusal)) from refusal
            frame = await self._record(events, _command(request, caller))
        return self._answer(events, frame)

    def _answer(self, events: Sequence[PrincipalEvent], frame: int) -> Administered:
        ordered = sum(not isinstance(event, PrincipalCharged) for event in events)
        return Administered(submitters=ordered, position=Position(self._shard.name, frame))


def _command(request: _Command, caller: Identity) -> str:
    return f"{caller.token}:{type(request).__name__}:{request.id}"


def _group(share: GroupShare, standings: Mapping[str, Priority]) -> GroupStanding:
    return GroupStanding(**msgspec.structs.asdict(share), standing=standings.get(group_principal(share.name)))


def _shown(name: str, standing: Standing, group: str) -> Priority:
    principal = standing.principal
    return Priority(
        name=name,
        effective=standing.effective,
        priority=principal.priority,
        factor=standing.factor,
        factor_set=principal.factor is not None,
        slots=principal.slots,
        weight=principal.weight,
        accumulated=principal.accumulated,
        weighted_accumulated=principal.weighted_accumulated,
        begun=principal.begun,
        last=principal.last,
        floor=principal.floor,
        ceiling=principal.ceiling,
        group=group,
    )


def fold_frame(principals: dict[str, Principal], frame: Frame) -> dict[str, tuple[int, bytes]]:
    """
    Change the principals as a frame does; the rows of the working set that are different now, with their versions.
    """
    changed: dict[str, tuple[int, bytes]] = {}
    for entry in frame.entries:
        if entry.stream.startswith(STREAM):
            event = decode(entry.data)
            assert isinstance(event, PrincipalEvent), f"{entry.stream} has a {entry.type}"
            changed[entry.stream] = (entry.version, row_of(fold_into(principals, event)))
    return changed


async def recall(
    log: Log, working_set: WorkingSet, shard: Shard
) -> tuple[Checkpointer, dict[str, Principal]]:
    """What keeps the working set, and the principals as recorded so far."""
    cursor, rows = await working_set.load(shard.name)
    versions = {row.stream: row.version for row in rows}
    principals = {
        row.stream.removeprefix(STREAM): principal
        for row in rows
        if (principal := principal_of(row.state)) is not None
    }
    checkpointer = Checkpointer(working_set, shard.name, epoch=shard.tenure.epoch, frame=cursor)
    async for frame in log.read(shard.name, after=cursor):
        rows_of = fold_frame(principals, frame)
        versions.update((stream, version) for stream, (version, _) in rows_of.items())
        checkpointer.mark(frame.number, rows_of)
    shard.adopt(versions)
    return checkpointer, principals
