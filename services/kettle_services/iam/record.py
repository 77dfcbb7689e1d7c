"""
iam's record: its shard together with what is folded from it.

What is decided is folded at once, and committed together with what others decide meanwhile; nobody is told before the commit.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from kettle.eventsourcing.command_pipeline import Recording
from kettle.eventsourcing.log import Log, WorkingSet
from kettle.eventsourcing.shard import Shard
from kettle.eventsourcing.working_set import Checkpointer
from kettle_services.iam.domain.audit import act, matches
from kettle_services.iam.domain.state import Register, State, forgotten, row_of, state_of
from kettle_wire.commands.iam import AuditEntries, AuditEntry, QueryAudit
from kettle_wire.events import IdentityEvent, decode
from kettle_wire.events.iam import BanLifted, BanSet, IssuerRemoved, RulesLoaded, SessionClosed, TokenRevoked
from kettle_wire.frames import Entry, Frame

_PAGE: Final = 500
"""So many frames are read at once, the newest first."""


_ABOUT_WELCOME: Final = frozenset(
    each.__struct_config__.tag for each in (BanSet, BanLifted, SessionClosed, IssuerRemoved, RulesLoaded)
)
"""After these somebody else may be welcome than before."""
_WITHDRAWN: Final = TokenRevoked.__struct_config__.tag
"""After it who has shown this one token is not."""


class Changes:
    """How often something has changed about who is welcome."""

    def __init__(self) -> None:
        self.count = 0
        self._more = asyncio.Event()
        self._listeners: list[Callable[[str], None]] = []

    def on_withdrawal(self, listener: Callable[[str], None]) -> None:
        """Have somebody told of each access token that is withdrawn, by its id."""
        self._listeners.append(listener)

    def withdraw(self, token: str) -> None:
        """An access token is not valid any more; that is no change about anybody else."""
        for listener in self._listeners:
            listener(token)
        self._more.set()

    def add(self) -> None:
        """Once more."""
        self.count += 1
        self._more.set()

    async def after(self, seen: int, *, within: float) -> bool:
        """
        Whether there were more than those that were seen; waits `within` seconds for the next one, or for a token that is withdrawn.
        """
        self._more.clear()
        if self.count == seen:
            with suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self._more.wait()
        return self.count != seen


class Record:
    """The register and how it is changed."""

    def __init__(self, log: Log, shard: Shard, register: Register, checkpointer: Checkpointer) -> None:
        self.shard: Final = shard
        self.register: Final = register
        self._log = log
        self._checkpointer = checkpointer
        self._folded: deque[State | None] = deque()
        """What each event that is not committed yet made of its stream, in order."""
        self.changes: Final = Changes()
        """Those that are committed."""
        shard.on_commit(self._committed)

    @classmethod
    async def recall(cls, log: Log, working_set: WorkingSet, shard: Shard) -> "Record":
        """The record as it is at the start: the working set, and the frames after it."""
        cursor, rows = await working_set.load(shard.name)
        register = Register()
        versions = {row.stream: row.version for row in rows}
        for row in rows:
            if (state := state_of(row.state)) is not None:
                register.restore(row.stream, state)
        checkpointer = Checkpointer(working_set, shard.name, epoch=shard.tenure.epoch, frame=cursor)
        async for frame in log.read(shard.name, after=cursor):
            folded = [register.apply(entry.stream, identity_event(entry)) for entry in frame.entries]
            versions.update((entry.stream, entry.version) for entry in frame.entries)
            _mark(checkpointer, frame, folded)
            for entry, state in zip(frame.entries, folded, strict=True):
                if forgotten(entry.stream, state):
                    versions.pop(entry.stream, None)
        shard.adopt(versions)
        return cls(log, shard, register, checkpointer)

    async def checkpoint(self) -> None:
        """Keep the working set near the head; never returns."""
        await self._checkpointer.run()

    def record(
        self, changes: Recording, *, command: str = "", reply: Callable[[int], bytes] | None = None
    ) -> asyncio.Future[int]:
        """Fold, record and commit, as `Shard.record` does."""
        now_us = time.time_ns() // 1000
        future = self.shard.record(changes, now_us=now_us, command=command, reply=reply)
        for stream, event in changes:
            assert isinstance(event, IdentityEvent), f"{stream} has a {type(event).__name__}"
            state = self.register.apply(stream, event)
            self._folded.append(state)
            if forgotten(stream, state):
                self.shard.retire(stream)
        return future

    def _committed(self, frame: Frame) -> None:
        _mark(self._checkpointer, frame, [self._folded.popleft() for _ in frame.entries])
        if any(entry.type in _ABOUT_WELCOME for entry in frame.entries):
            self.changes.add()
        for entry in frame.entries:
            if entry.type == _WITHDRAWN:
                event = identity_event(entry)
                assert isinstance(event, TokenRevoked)
                self.changes.withdraw(event.token)

    async def has_shard(self, name: str) -> bool:
        """Whether the log has a shard of somebody's."""
        return await self._log.tenure(name) is not None

    async def audit(self, request: QueryAudit) -> AuditEntries:
        """The newest entries that match, read backwards from the head."""
        found: list[AuditEntry] = []
        until = self.shard.frame
        while until:
            after = max(0, until - _PAGE)
            frames = [frame async for frame in self._log.read(self.shard.name, after=after, until=until)]
            found[:0] = [
                each
                for frame in frames
                if request.since <= frame.at / 1e6 and (not request.until or frame.at / 1e6 <= request.until)
                for entry in frame.entries
                for each in [act(identity_event(entry), at=frame.at / 1e6, frame=frame.number)]
                if matches(each, who=request.who, what=request.what)
            ]
            until = after
            if len(found) > request.limit or (frames and frames[0].at / 1e6 < request.since):
                break
        return AuditEntries(acts=found[-request.limit :], complete=not until and len(found) <= request.limit)


def identity_event(entry: Entry) -> IdentityEvent:
    """The event of an entry of this shard."""
    event = decode(entry.data)
    assert isinstance(event, IdentityEvent), f"{entry.stream} has a {entry.type}"
    return event


def _mark(checkpointer: Checkpointer, frame: Frame, folded: Sequence[State | None]) -> None:
    """Note what a frame made of its streams; the last event of a stream decides."""
    puts: dict[str, tuple[int, bytes]] = {}
    drops: set[str] = set()
    for entry, state in zip(frame.entries, folded, strict=True):
        if forgotten(entry.stream, state):
            puts.pop(entry.stream, None)
            drops.add(entry.stream)
        else:
            puts[entry.stream] = (entry.version, row_of(state))
            drops.discard(entry.stream)
    checkpointer.mark(frame.number, puts, drops)
