"""
The accountant's record: what submitters are charged, and what administrators command, in the negotiator's shard.

One owner writes both the matches and the usage that they lead to, so priorities follow from one log, in one order.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from kettle.bus.ports import RefusedError, Served
from kettle.eventsourcing.command_pipeline import CommandPipeline, Decision, Recording
from kettle.eventsourcing.log import Log, WorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.eventsourcing.working_set import Checkpointer
from kettle.matchmaking import GroupShare, LimitRules
from kettle_services.negotiator.domain import accountant_commands
from kettle_services.negotiator.domain.accountant import Accountant, Standing
from kettle_services.negotiator.domain.accountant_commands import Unacceptable
from kettle_services.negotiator.domain.pool import Pool
from kettle_services.negotiator.domain.principals import STREAM, Principal, fold_into, principal_of, row_of
from kettle_services.negotiator.domain.priority_list import priorities
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.negotiator import (
    DELETE_PRINCIPAL,
    QUERY_PRIORITIES,
    RESET_USAGE,
    SET_PRINCIPAL,
    Administered,
    DeletePrincipal,
    Priorities,
    QueryPriorities,
    ResetUsage,
    SetPrincipal,
)
from kettle_wire.events import PrincipalCharged, PrincipalEvent, decode
from kettle_wire.frames import Frame
from kettle_wire.identity import Identity

NO_LIMITS: Final = LimitRules()
_FRAME: Final = 1_000
"""So many charges are in one frame at most."""


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
        limits: LimitRules = NO_LIMITS,
    ) -> None:
        """`limits`: how much there is of what jobs use by concurrency limits, for those who ask."""
        self._limits = limits
        self.accountant = accountant
        self.shares: list[GroupShare] = []
        """How accounting groups stood after the last cycle."""
        self.shard = shard
        self._checkpointer = checkpointer
        self._pool = pool
        self._administrators = administrators
        self._deciding = asyncio.Lock()
        shard.on_commit(self._committed)

    def served(self) -> list[Served[Any, Any]]:
        """All endpoints with their handlers."""
        pipeline = CommandPipeline(self, around=self._settled, administrators=lambda: self._administrators)
        return [
            pipeline.query(QUERY_PRIORITIES, self.query),
            pipeline.command(SET_PRINCIPAL, self.set),
            pipeline.command(RESET_USAGE, self.reset),
            pipeline.command(DELETE_PRINCIPAL, self.delete),
        ]

    # -- usage -------------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _settled(self) -> AsyncGenerator[None]:
        """
        All decisions are committed and folded, and no other decision is made inside the context.

        So no answer, match or charge uses state that might still be lost; the lock is fair, so nobody waits for long.
        """
        async with self._deciding:
            await self.shard.committed()
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
                # Who was seen since is not among them.
                gone = accountant_commands.forgetting(self.accountant, now=now)
                await self.record(_changes([*gone, *self.accountant.charge(now)]))
            await asyncio.sleep(interval)

    def record(
        self, changes: Recording, *, command: str = "", reply: Callable[[int], bytes] | None = None
    ) -> asyncio.Future[int]:
        """Commit, which folds; the number of the last frame, with which the answer of a command is stored."""
        *earlier, last = [changes[start : start + _FRAME] for start in range(0, len(changes) or 1, _FRAME)]
        now_us = time.time_ns() // 1000
        for piece in earlier:
            self.shard.record(piece, now_us=now_us)
        return self.shard.record(last, now_us=now_us, command=command, reply=reply)

    def _committed(self, frame: Frame) -> None:
        self._checkpointer.mark(frame.number, fold_frame(self.accountant.principals, frame))

    # -- commands ----------------------------------------------------------------------------------------------------

    async def query(self, request: QueryPriorities, caller: Identity) -> Priorities:
        """How submitters stand; everybody may ask."""
        del caller
        now = time.time()
        standings = await self.standings(now, request.names)
        return priorities(
            self.accountant, standings, now=now, names=request.names, shares=self.shares, limits=self._limits
        )

    async def set(self, request: SetPrincipal, caller: Identity) -> Decision[Administered]:
        """Set something of a submitter."""
        with _refusing():
            return _administered(
                accountant_commands.setting(
                    self.accountant,
                    request.name,
                    request.setting,
                    request.value,
                    now=time.time(),
                    by=caller.name,
                )
            )

    async def reset(self, request: ResetUsage, caller: Identity) -> Decision[Administered]:
        """Set accumulated usage to nothing; `not_found`."""
        everybody = sorted(self.accountant.principals)
        names = everybody if request.name is None else [self._known(request.name)]
        with _refusing():
            return _administered(
                accountant_commands.resetting(self.accountant, names, now=time.time(), by=caller.name)
            )

    async def delete(self, request: DeletePrincipal, caller: Identity) -> Decision[Administered]:
        """Forget a submitter; `not_found`."""
        name = self._known(request.name)
        with _refusing():
            return _administered(
                accountant_commands.deleting(self.accountant, name, now=time.time(), by=caller.name)
            )

    def _known(self, name: str) -> str:
        if name in self.accountant.principals:
            return name
        raise RefusedError(
            RefusalCode.NOT_FOUND, f"the accountant knows no {name}; see whom with: kettle userprio"
        )


def _changes(events: Sequence[PrincipalEvent]) -> Recording:
    return [(f"{STREAM}{event.principal}", event) for event in events]


def _administered(events: Sequence[PrincipalEvent]) -> Decision[Administered]:
    """Those whom an administrator's command concerns are counted; what they are charged on the way is not."""
    commanded = sum(not isinstance(event, PrincipalCharged) for event in events)
    return Decision(lambda position: Administered(submitters=commanded, position=position), _changes(events))


@contextmanager
def _refusing() -> Generator[None]:
    try:
        yield
    except Unacceptable as refusal:
        raise RefusedError(RefusalCode.UNACCEPTABLE, str(refusal)) from refusal


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
