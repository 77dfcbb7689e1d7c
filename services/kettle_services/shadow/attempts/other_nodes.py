"""
Programs that one node of a job has run on another: launchers of MPI start their daemons so.

The right comes from the claim of the node that is asked, which only the schedd, its machine and this shadow know; a job can
name no node but those of its own attempt.
"""

from typing import Any, Final

import msgspec

from kettle.auth.job_access_proof import SHADOW, proof
from kettle.bus.ports import Asks, BusError, RefusedError
from kettle_services.shadow.attempts.attempt import AttemptFollower
from kettle_services.shadow.attempts.gang import GangFollower
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.access import (
    CLOSE_SESSION,
    EXCHANGE,
    OPEN_SESSION,
    Access,
    CloseSession,
    Exchange,
    OpenSession,
)
from kettle_wire.commands.questions import Commanded, OnNode
from kettle_wire.commands.shadow import Assignment
from kettle_wire.endpoint import Endpoint

_DEADLINE_S: Final = 15.0
"""How long an answer of a machine is waited for; the one that asks us waits longer."""
_OUTPUT_S: Final = 2.0
"""How long a machine waits for output of the program before it answers that there is none."""
_encode: Final = msgspec.msgpack.Encoder().encode


class OtherNodes:
    """Asks the machines of the nodes."""

    def __init__(self, bus: Asks) -> None:
        self._bus = bus

    async def carry_out(self, question: OnNode, attempt: AttemptFollower | GangFollower) -> Commanded:
        """
        The answer of the node's machine, or why there is none; `attempt` is that of the job that asks. What is asked again does
        nothing twice.
        """
        try:
            node = _node(question.node, attempt)
            return Commanded(body=_encode(await self._asked(question, node.startd, _access(node))))
        except RefusedError as refusal:
            return Commanded(code=refusal.code, reason=str(refusal), retry_after=refusal.retry_after_ms)
        except BusError as error:
            return Commanded(code=RefusalCode.UNAVAILABLE, reason=str(error))

    async def _asked(self, question: OnNode, startd: str, access: Access) -> msgspec.Struct:
        session = question.session
        match question.verb:
            case "open_session":
                command = question.command
                if not command:
                    raise RefusedError(RefusalCode.MALFORMED, "no command is given")
                opened = await self._call(
                    OPEN_SESSION, startd, OpenSession(access=access, session=session, command=command)
                )
                await self._call(EXCHANGE, startd, Exchange(access=access, session=session, ends=True))
                return opened
            case "exchange":
                request = Exchange(access=access, session=session, after=question.after, wait=_OUTPUT_S)
                return await self._call(EXCHANGE, startd, request)
            case "close_session":
                return await self._call(CLOSE_SESSION, startd, CloseSession(access=access, session=session))

    async def _call(
        self, endpoint: Endpoint[Any, Any], startd: str, request: msgspec.Struct
    ) -> msgspec.Struct:
        reply: msgspec.Struct = await self._bus.call(endpoint, startd, request, deadline=_DEADLINE_S)
        return reply


def _node(number: int, attempt: AttemptFollower | GangFollower) -> Assignment:
    """Raises RefusedError: the job has no such node, or it has ended."""
    if isinstance(attempt, GangFollower):
        return attempt.living(number)
    reason = f"job {attempt.assignment.job} has no other nodes: it is not of the parallel universe"
    raise RefusedError(RefusalCode.NOT_FOUND, reason)


def _access(node: Assignment) -> Access:
    own, attempt = node.key, node.attempt
    own_proof = proof(own.secret, claim=own.claim, job=node.job, attempt=attempt, person=SHADOW)
    return Access(claim=own.claim, job=node.job, attempt=attempt, proof=own_proof)
