"""
Carries out what was decided about sessions, through the schedd: members are submitted, released and removed.

It holds nothing that matters. What is to be done follows from the state of each session, also after a restart; each command has an id
that is made of the session and the members, by which the schedd knows a repeat.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable, Iterator
from typing import Final

from kettle.bus.ports import Bus, BusError, RefusedError
from kettle.bus.retryable import retryable
from kettle.faults import fault_point
from kettle.retry.backoff import Backoff
from kettle.retry.loop import Waits
from kettle_services.sessions.domain.session import InteractiveSession
from kettle_services.sessions.engine import Engine
from kettle_wire.commands.member_jobs import (
    ACT_ON_MEMBERS,
    SUBMIT_MEMBERS,
    ActOnMembers,
    SubmitMembers,
)
from kettle_wire.events.interactive import InteractiveMembersRefused
from kettle_wire.jobs import JobId
from kettle_wire.session_attributes import SHARED_WITH

_WITHIN_S: Final = 10.0
_BETWEEN: Final = Backoff(first=0.2, longest=10.0)
_log: Final = logging.getLogger(__name__)
Done = tuple[str, str, int]
"""A session, what was done, and with which batch, member or how often."""


class Carrying:
    """One loop; what is sent for one session goes one after the other, what is for several at once."""

    def __init__(self, bus: Bus, schedd: str, engine: Engine, over: Callable[[str], None]) -> None:
        """`over`: told, in a thread, of each session that is over."""
        self._over = over
        self._living = set(engine.living)
        self._bus = bus
        self._schedd = schedd
        self._engine = engine
        self._done: set[Done] = set()
        """What the schedd has answered, of sessions that are not over."""
        self._shared: dict[str, list[str]] = {
            id_: each.target.shared_with for id_, each in engine.living.items()
        }

    async def run(self) -> None:
        """Carry out whenever there is something; never returns."""
        waits = Waits(_BETWEEN)
        while True:
            self._engine.todo.clear()
            await self._engine.record.shard.committed()
            sessions = list(self._engine.living.values())
            found = await asyncio.gather(*map(self._carry_out, sessions), return_exceptions=True)
            failed = [each for each in found if isinstance(each, BaseException)]
            for error in failed:
                if not isinstance(error, BusError):
                    raise error
            if failed:
                _log.info("something could not be carried out yet", extra={"cause": str(failed[0])})
                await waits.wait()
                continue
            waits.reset()
            await self._forget()
            await self._engine.todo.wait()

    async def _carry_out(self, session: InteractiveSession) -> None:
        for batch in _unsubmitted(session):
            await self._submit(session, batch)
        await self._release(session)
        await self._remove(session)
        await self._share(session)

    async def _submit(self, session: InteractiveSession, batch: int) -> None:
        from kettle_services.sessions.domain.member_ads import member_ad  # the language of submissions

        done = (session.id, "submitted", batch)
        if done in self._done:
            return
        members = {n: each for n, each in session.members.items() if each.batch == batch and not each.job}
        first = min(members)
        role = members[first].role
        site = session.plan.site if role == "head" else session.site
        request = SubmitMembers(
            id=f"session-{session.id}-{batch}",
            session=session.id,
            owner=session.owner,
            batch=batch,
            first=first,
            ad=member_ad(session, role, site),
            columns=[],
            rows=[[] for _ in members],
        )
        fault_point("sessions.submitting")
        try:
            await self._bus.call(SUBMIT_MEMBERS, self._schedd, request, deadline=_WITHIN_S)
        except RefusedError as error:
            if retryable(error):
                raise
            refused = InteractiveMembersRefused(batch=batch, code=error.code, reason=str(error))
            self._engine.settle(session.id, [refused])
            return
        fault_point("sessions.submitted")
        self._done.add(done)

    async def _remove(self, session: InteractiveSession) -> None:
        going = {
            number: JobId.parse(each.job)
            for number, each in session.members.items()
            if each.ending and each.job and (session.id, "removed", number) not in self._done
        }
        if not going:
            return
        reason = session.over or "the session does not need it any more"
        request = ActOnMembers(
            id=_name(session, "remove", going),
            session=session.id,
            owner=session.owner,
            action="remove",
            jobs=list(going.values()),
            reason=reason,
        )
        await self._bus.call(ACT_ON_MEMBERS, self._schedd, request, deadline=_WITHIN_S)
        self._done |= {(session.id, "removed", number) for number in going}

    async def _release(self, session: InteractiveSession) -> None:
        held = {
            number: JobId.parse(each.job)
            for number, each in session.members.items()
            if each.status == "held"
            and each.releases
            and not each.ending
            and each.job
            and (session.id, f"released {number}", each.releases) not in self._done
        }
        if not held:
            return
        times = {number: session.members[number].releases for number in held}
        request = ActOnMembers(
            id=_name(session, "release", {number * 1000 + times[number]: held[number] for number in held}),
            session=session.id,
            owner=session.owner,
            action="release",
            jobs=list(held.values()),
            reason="what held it may be gone",
        )
        await self._bus.call(ACT_ON_MEMBERS, self._schedd, request, deadline=_WITHIN_S)
        self._done |= {(session.id, f"released {number}", times[number]) for number in held}

    async def _share(self, session: InteractiveSession) -> None:
        shared = session.target.shared_with
        if self._shared.setdefault(session.id, shared) == shared:
            return
        jobs = [JobId.parse(each.job) for each in session.members.values() if each.job and not each.ending]
        if jobs:
            text = ", ".join(shared)
            request = ActOnMembers(
                id=f"session-{session.id}-share-{session.events}",
                session=session.id,
                owner=session.owner,
                action="edit",
                jobs=jobs,
                attributes={SHARED_WITH: text},
            )
            try:
                await self._bus.call(ACT_ON_MEMBERS, self._schedd, request, deadline=_WITHIN_S)
            except RefusedError as error:
                if retryable(error):
                    raise
                _log.error("jobs of session %s are shared as before: %s", session.id, error)
        self._shared[session.id] = shared

    async def _forget(self) -> None:
        living = self._engine.living
        for session in self._living - living.keys():
            await asyncio.to_thread(self._over, session)
        self._living = set(living)
        self._done = {each for each in self._done if each[0] in living}
        self._shared = {id_: shared for id_, shared in self._shared.items() if id_ in living}


def _unsubmitted(session: InteractiveSession) -> Iterator[int]:
    yield from sorted({each.batch for each in session.members.values() if not each.job})


def _name(session: InteractiveSession, what: str, numbers: dict[int, JobId]) -> str:
    """The id of a command about these members: that of a repeat is the same."""
    known = hashlib.sha256(repr(sorted(numbers)).encode()).hexdigest()[:16]
    return f"session-{session.id}-{what}-{known}"
