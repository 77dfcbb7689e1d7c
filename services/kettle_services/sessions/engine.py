"""
What drives sessions: whatever happens to one is recorded together with what follows from it, and carried out after that.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from kettle_services.sessions.domain.ages import next_time
from kettle_services.sessions.domain.decisions import Heard, decided, silent_at
from kettle_services.sessions.domain.session import InteractiveSession, evolve
from kettle_services.sessions.domain.state import STREAM
from kettle_services.sessions.record import Record
from kettle_wire.events.interactive import InteractiveEvent, InteractiveForgotten

_NEVER: Final = float("inf")
_log: Final = logging.getLogger(__name__)


class _Looked(msgspec.Struct, frozen=True):
    """How a session was when all was decided of it, and when something may be due."""

    session: InteractiveSession
    heard: Heard
    due: float


class Engine:
    """The sessions of one record, and what their schedulers said last."""

    def __init__(self, record: Record, *, keep: float, most: int = 200) -> None:
        """`keep`: seconds for which a session that is over is listed, and so are `most` of each person."""
        self.record: Final = record
        self._keep = keep
        self._most = most
        self._heard: dict[str, Heard] = {}
        self._nothing: Final = Heard(at=time.time())
        """Of who has not spoken since this began to listen."""
        self._looked: dict[str, _Looked] = {}
        self._tick = asyncio.Event()
        self.todo: Final = asyncio.Event()
        """Set when something may have to be carried out."""
        self.begun: Final = asyncio.Event()
        """Set when there may be a session to be followed."""
        self._told = asyncio.Event()

    @property
    def sessions(self) -> dict[str, InteractiveSession]:
        """All that are listed, by their ids."""
        return self.record.state.sessions.states

    @property
    def living(self) -> dict[str, InteractiveSession]:
        """Those that are not over."""
        return {id_: each for id_, each in self.sessions.items() if not each.ended}

    def heard(self, session: str) -> Heard:
        """What the program of its head said last."""
        return self._heard.get(session, self._nothing)

    def following(
        self, session: str, facts: Sequence[InteractiveEvent]
    ) -> tuple[list[InteractiveEvent], InteractiveSession | None]:
        """
        Facts, and what follows from them, to be recorded together; and the session after them. Nothing is changed.
        """
        now, after = time.time(), self.sessions.get(session)
        for fact in facts:
            after = evolve(after, fact, now)
        if after is None:
            return list(facts), None
        events, after = decided(after, now, self.heard(session))
        return [*facts, *events], after

    def settle(self, session: str, facts: Sequence[InteractiveEvent] = ()) -> None:
        """Record facts, and what follows from them; `run` of the shard fails the process if it cannot."""
        events, _ = self.following(session, facts)
        if events:
            self.record.record([(f"{STREAM}{session}", event) for event in events])
            self.changed()

    def hear(self, session: str, said: Heard) -> None:
        """The program of the head has spoken."""
        self._heard[session] = said
        self.settle(session)

    def changed(self) -> None:
        """Something was recorded: it may have to be carried out, and other times count."""
        self.todo.set()
        self.begun.set()
        self._tick.set()
        told, self._told = self._told, asyncio.Event()
        told.set()

    async def change(self, *, within: float) -> None:
        """Wait until something has changed, but no longer than so many seconds."""
        told = self._told
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await told.wait()

    async def run(self) -> None:
        """Decide when a time has come; never returns."""
        while True:
            self._tick.clear()
            for session in self._surplus():
                self._forget(session)
            now = time.time()
            soonest = min((self._look(session, now) for session in list(self.sessions)), default=_NEVER)
            with suppress(TimeoutError):
                async with asyncio.timeout(None if soonest == _NEVER else max(0.0, soonest - now)):
                    await self._tick.wait()

    def _look(self, session: str, now: float) -> float:
        """
        Decide what is due of one, and tell when something may be due again; nothing is while it is as it was and that has not come.
        """
        each, heard = self.sessions[session], self.heard(session)
        known = self._looked.get(session)
        if known is not None and known.session is each and known.heard is heard and now < known.due:
            return known.due
        if each.ended and now >= each.ended + self._keep:
            self._forget(session)
            return _NEVER
        if not each.ended:
            self.settle(session)
        after = self.sessions[session]
        due = self._next(after) or _NEVER
        self._looked[session] = _Looked(after, heard, due)
        return due

    def _surplus(self) -> list[str]:
        """Sessions that are over, beyond so many of one person, those that ended last being kept."""
        over: dict[str, list[InteractiveSession]] = {}
        for each in self.sessions.values():
            if each.ended:
                over.setdefault(each.owner, []).append(each)
        found: list[str] = []
        for own in over.values():
            if (more := len(own) - self._most) > 0:
                found += [each.id for each in sorted(own, key=lambda each: each.ended)[:more]]
        return found

    def _forget(self, session: str) -> None:
        self._heard.pop(session, None)
        self._looked.pop(session, None)
        self.settle(session, [InteractiveForgotten()])

    def _next(self, session: InteractiveSession) -> float:
        """When something may be due; 0: never by itself."""
        if session.ended:
            return session.ended + self._keep
        times = [at for at in (next_time(session),) if at is not None]
        heard = self.heard(session.id)
        if session.target.idle and heard.idle_since:
            times.append(heard.idle_since + session.target.idle)
        if session.plan.local:
            times.append(silent_at(session, heard))
        now = time.time()
        return min((at for at in times if at > now), default=0.0)
