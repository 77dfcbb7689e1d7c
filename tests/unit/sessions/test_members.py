"""What a job of a session asks for, and what it cannot do to others with it."""

import time
from typing import Any, cast

import msgspec
import pytest

from kettle.bus.ports import RefusedError
from kettle_services.sessions.access import SessionAccess
from kettle_services.sessions.domain.session import InteractiveSession
from kettle_services.sessions.members import MemberQuestions
from kettle_wire.commands.sessions import AgentReport, MemberAsks, ReportScheduler
from kettle_wire.events.interactive import InteractiveEvent
from kettle_wire.identity import Identity, daemon
from kettle_wire.jobs import JobId

from .one_session import OneSession, created


class Recorded:
    """An engine that keeps what was settled."""

    def __init__(self, session: InteractiveSession) -> None:
        self.sessions = self.living = {session.id: session}
        self.facts: list[InteractiveEvent] = []

    def settle(self, _session: str, facts: list[InteractiveEvent]) -> None:
        self.facts += facts

    def hear(self, _session: str, _said: object) -> None:
        """Not kept."""


def running() -> tuple[Recorded, MemberQuestions, InteractiveSession]:
    one = OneSession(created("dask", workers=1))
    one.start_all()
    one.start_all()
    engine, questions = asked(one.session)
    return engine, questions, one.session


def asked(session: InteractiveSession) -> tuple[Recorded, MemberQuestions]:
    engine, nothing = cast("Any", Recorded(session)), cast("Any", None)
    access = SessionAccess(engine, lambda _caller: False, lambda _name: frozenset())
    return engine, MemberQuestions(engine, access, nothing, nothing, nothing, "s")


def asks(session: InteractiveSession, role: str, verb: str = "agent", **said: Any) -> MemberAsks:
    [job] = [each.job for each in session.members.values() if each.role == role]
    body = msgspec.msgpack.encode(AgentReport(**said))
    return MemberAsks(session=session.id, job=JobId.parse(job), attempt=1, verb=verb, body=body)


async def test_a_head_does_not_fill_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Where it is reached it may say as often as it likes: that is recorded once a second at most, and it says it again.
    """
    engine, questions, session = running()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    for number in range(100):
        await questions.asks(asks(session, "head", contact=f"kettle://{number}.0/dask"), daemon("shadow"))
    assert len(engine.facts) == 1
    now += 1.0
    await questions.asks(asks(session, "head", contact="kettle://7.0/dask"), daemon("shadow"))
    assert len(engine.facts) == 2


async def test_only_the_head_is_a_head() -> None:
    """Neither a worker, nor a job of another session or of none."""
    engine, questions, session = running()
    worker = asks(session, "worker", contact="kettle://6.6/dask")
    stranger = msgspec.structs.replace(asks(session, "head", contact="x"), job=JobId(666, 0))
    elsewhere = msgspec.structs.replace(asks(session, "head", contact="x"), session="0000000000")
    for each in (worker, stranger, elsewhere):
        with pytest.raises(RefusedError) as refused:
            await questions.asks(each, daemon("shadow"))
        assert refused.value.code == "denied"
    assert not engine.facts


async def test_a_program_of_its_owners_speaks_for_a_session_without_a_head() -> None:
    """Nobody else does, also not who may use the session; and nobody for a scheduler that is a job."""
    one = OneSession(created("dask", workers=1))
    plan = msgspec.structs.replace(one.session.plan, local=True)
    target = msgspec.structs.replace(one.session.target, shared_with=["bob"])
    engine, questions = asked(msgspec.structs.replace(one.session, plan=plan, target=target))
    says = ReportScheduler(session=one.session.id, report=AgentReport(contact="kettle://0.0/dask"))
    for name, code in (("bob", "denied"), ("eve", "not_found")):
        with pytest.raises(RefusedError) as refused:
            await questions.report(says, Identity("user", name))
        assert code == refused.value.code
    assert not engine.facts
    await questions.report(says, Identity("user", "ann"))
    assert 1 == len(engine.facts)
    engine, questions = asked(one.session)
    with pytest.raises(RefusedError, match="is a job"):
        await questions.report(says, Identity("user", "ann"))
