"""What members of a session ask, of a service whose own questions may have no answer."""

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from kettle.bus.ports import BusUnavailableError, NoResponderError, RefusedError, ReplyTimeoutError
from kettle_services.sessions.domain.members import Member
from kettle_services.sessions.members import MemberQuestions
from kettle_wire.commands.sessions import MemberAsks
from kettle_wire.identity import daemon
from kettle_wire.jobs import JobId

from .one_session import OneSession, created


class Silence:
    """A bus on which nobody answers."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def call(self, *_asked: object, **_options: object) -> Any:
        """As nobody does."""
        raise self._error


@pytest.mark.parametrize(
    "error", [NoResponderError("nobody"), ReplyTimeoutError("too late"), BusUnavailableError("away")]
)
async def test_a_gateway_that_does_not_answer_is_no_failure_of_the_service(error: Exception) -> None:
    """
    A member that wants access while the gateway starts is told to ask again: an error of any other kind would end the
    service, and with it the answers to everybody.
    """
    head = Member(role="head", batch=1, place=0, since=0.0, job="7.0", status="running")
    session = msgspec.structs.replace(OneSession(created()).session, members={1: head})
    engine = SimpleNamespace(living={session.id: session})
    nothing = cast("Any", None)
    silence = cast("Any", Silence(error))
    members = MemberQuestions(cast("Any", engine), nothing, nothing, nothing, silence, "schedd")
    asks = MemberAsks(session=session.id, job=JobId(7, 0), attempt=1, verb="access", body=b"")
    with pytest.raises(RefusedError, match="the gateway does not answer") as refused:
        await members.asks(asks, daemon("shadow"))
    assert "unavailable" == refused.value.code
