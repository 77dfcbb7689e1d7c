"""
What the jobs of sessions ask, by way of their shadows: the program of a head reports and hears what to do, members have certificates
and files.  A scheduler that is no job reports as its owner.

A shadow says which job asks, and the record which session that is of: what a job says of itself does not count.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from kettle.bus.ports import Asks, RefusedError
from kettle.bus.retryable import UNHEARD
from kettle.eventsourcing.command_pipeline import Decision
from kettle_services.sessions.access import SessionAccess
from kettle_services.sessions.certificates import Certificates
from kettle_services.sessions.domain.decisions import Heard
from kettle_services.sessions.domain.members import Member
from kettle_services.sessions.domain.session import InteractiveSession
from kettle_services.sessions.domain.views import view
from kettle_services.sessions.engine import Engine
from kettle_services.sessions.kept_files import KeptFiles
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.gateway import ADMIT_MEMBER, AccessMade, AdmitMember
from kettle_wire.commands.sessions import (
    AgentOrders,
    AgentReport,
    MemberAnswer,
    MemberAsks,
    ReportScheduler,
    SessionFiles,
    SignCertificate,
)
from kettle_wire.events.interactive import InteractiveSchedulerSeen
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId

_GATEWAY: Final = "gateway"
_RETIRED: Final = "retired"
_SEEN_S: Final = 1.0
"""What a head says of itself is recorded so often at most: it says it again."""
_encode: Final = msgspec.msgpack.Encoder().encode


class MemberQuestions:
    """Answers them."""

    def __init__(
        self,
        engine: Engine,
        access: SessionAccess,
        kept: KeptFiles,
        certificates: Certificates,
        bus: Asks,
        schedd: str,
    ) -> None:
        """`schedd`: whose jobs the members are."""
        self._rights = access
        self._engine = engine
        self._kept = kept
        self._certificates = certificates
        self._bus = bus
        self._schedd = schedd
        self._seen: dict[str, float] = {}
        """When something that a head said of itself was recorded last, by session."""
        self._verbs: dict[str, Callable[[InteractiveSession, Member, bytes], Awaitable[Any]]] = {
            "agent": self._agent,
            "certificate": self._certificate,
            "show": self._show,
            "files": self._files,
            "access": self._access,
        }

    async def asks(self, request: MemberAsks, caller: Identity) -> Decision[MemberAnswer]:
        """What the verb answers to this job; `denied` for one that is of no such session."""
        del caller
        session = self._engine.living.get(request.session)
        member = _member(session, str(request.job))
        if session is None or member is None:
            raise RefusedError(
                RefusalCode.DENIED, f"job {request.job} is of no session {request.session} that goes on"
            )
        answer = self._verbs.get(request.verb)
        if answer is None:
            raise RefusedError(RefusalCode.DENIED, f"a job of a session may not ask for {request.verb!r}")
        try:
            body = _encode(await answer(session, member, request.body))
        except msgspec.MsgspecError as error:
            raise RefusedError(RefusalCode.MALFORMED, f"{request.verb}: {error}") from error
        return Decision(lambda _position: MemberAnswer(body=body))

    async def _agent(self, session: InteractiveSession, member: Member, body: bytes) -> AgentOrders:
        """The head's program reports; the answer comes when there is something to do, or its time is over."""
        report = msgspec.msgpack.decode(body, type=AgentReport)
        if member.role != "head" or member.ending:
            raise RefusedError(
                RefusalCode.DENIED, f"job {member.job} is not the head of session {session.name}"
            )
        return await self._reported(session, report)

    async def report(self, request: ReportScheduler, caller: Identity) -> Decision[AgentOrders]:
        """A scheduler that is a program of its owner's reports, as those that are jobs do."""
        session = self._rights.owned(request.session, caller)
        if not session.plan.local:
            raise RefusedError(
                RefusalCode.DENIED, f"the scheduler of session {session.name} is a job: nobody speaks for it"
            )
        orders = await self._reported(session, request.report)
        return Decision(lambda _position: orders)

    async def _reported(self, session: InteractiveSession, report: AgentReport) -> AgentOrders:
        """What a scheduler has to do, when there is something, or when the time that it waits is over."""
        now = time.time()
        own = {each.job for each in session.workers.values()}
        workers = [each for each in report.workers if each.name in own]
        heard = Heard(
            workers={each.name: each.idle_s for each in workers},
            retired=frozenset(each.name for each in workers if each.state == _RETIRED),
            target=report.target,
            idle_since=now - report.idle_s if report.idle_s else 0.0,
            at=now,
        )
        said = report.contact, report.versions
        if session.ended:
            return _orders(session)
        if report.contact and said != (session.contact, session.versions) and self._may_say(session.id, now):
            seen = InteractiveSchedulerSeen(contact=report.contact, versions=report.versions)
            self._engine.settle(session.id, [seen])
        self._engine.hear(session.id, heard)
        until = asyncio.get_running_loop().time() + report.wait
        before = _orders(self._engine.sessions[session.id])
        while True:
            orders = _orders(self._engine.sessions.get(session.id))
            left = until - asyncio.get_running_loop().time()
            if orders != before or orders.retire or orders.closing or left <= 0:
                return orders
            await self._engine.change(within=left)

    def _may_say(self, session: str, now: float) -> bool:
        """Whether something may be recorded again, which it is then."""
        if 0 <= now - self._seen.get(session, 0.0) < _SEEN_S:
            return False
        self._seen = {id_: at for id_, at in self._seen.items() if id_ in self._engine.living} | {
            session: now
        }
        return True

    async def _certificate(self, session: InteractiveSession, member: Member, body: bytes) -> object:
        del member
        asked = msgspec.msgpack.decode(body, type=SignCertificate)
        return await self._certificates.sign(session.id, asked.request)

    async def _show(self, session: InteractiveSession, member: Member, body: bytes) -> object:
        del member, body
        return view(session)

    async def _files(self, session: InteractiveSession, member: Member, body: bytes) -> SessionFiles:
        del member, body
        return SessionFiles(files=await asyncio.to_thread(self._kept.of, session.id))

    async def _access(self, session: InteractiveSession, member: Member, body: bytes) -> AccessMade:
        """
        With what it reaches the services of the others through the gateway; `unavailable` while that does not answer, as when it
        starts after us.
        """
        del body
        request = AdmitMember(schedd=self._schedd, job=JobId.parse(member.job), session=session.id)
        try:
            return await self._bus.call(ADMIT_MEMBER, _GATEWAY, request)
        except UNHEARD as error:
            raise RefusedError(
                RefusalCode.UNAVAILABLE, f"the gateway does not answer at the moment: {error}"
            ) from error


def _member(session: InteractiveSession | None, job: str) -> Member | None:
    if session is None:
        return None
    return next((each for each in session.members.values() if each.job == job), None)


def _orders(session: InteractiveSession | None) -> AgentOrders:
    if session is None or session.ended:
        return AgentOrders(wanted=0, retire=[], closing=True)
    retire = [
        each.job
        for each in session.workers.values()
        if each.retiring and not each.retired and not each.ending and each.job
    ]
    return AgentOrders(wanted=session.target.workers, retire=retire, closing=bool(session.closing))
