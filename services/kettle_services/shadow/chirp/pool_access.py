"""
Commands of running jobs to the pool: passed on to the queue that they are in, and what everybody may read is read.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from kettle.bus.ports import Asks, BusError, RefusedError, Served
from kettle.jobs.pool_access import wants_access
from kettle.transfer.submit_side_paths import text
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.accounting import QUERY_HISTORY
from kettle_wire.commands.collector import QUERY_ADS
from kettle_wire.commands.questions import COMMAND, Command, Commanded
from kettle_wire.commands.schedd import JOB_COMMAND, JobCommand
from kettle_wire.commands.sessions import MEMBER_ASKS, MemberAsks
from kettle_wire.commands.shadow import Assignment
from kettle_wire.commands.task_queues import TASK_WORKER, TaskWorkerAsks
from kettle_wire.endpoint import Endpoint
from kettle_wire.flocking import pool_of
from kettle_wire.identity import user
from kettle_wire.session_attributes import ID as MEMBER
from kettle_wire.session_attributes import TASK_QUEUE

_DEADLINE_S: Final = 20.0
"""How long an answer is waited for; the job's machine waits longer."""
_PUBLIC: Final[dict[tuple[str, str], Endpoint[Any, Any]]] = {
    (each.role, each.verb): each for each in (QUERY_HISTORY, QUERY_ADS)
}
"""What anybody may ask, so that it matters not who does."""
_encode: Final = msgspec.msgpack.Encoder().encode


class Commanding:
    """Asks for the jobs of one schedd."""

    def __init__(self, bus: Asks, schedd: str, served: Sequence[Served[Any, Any]]) -> None:
        """`served`: the requests of people to a shadow, which jobs may send as well."""
        self._bus = bus
        self._schedd = schedd
        self._served = {each.endpoint.verb: each for each in served}

    async def carry_out(self, command: Command, assignment: Assignment) -> Commanded:
        """The answer, or why there is none. Commands have ids, so a job may repeat what was not answered."""
        if refusal := _refusal(assignment, command.role):
            return Commanded(code=RefusalCode.DENIED, reason=refusal)
        try:
            body = await self._asked(command, assignment)
        except RefusedError as error:
            return Commanded(code=error.code, reason=str(error), retry_after=error.retry_after_ms)
        except msgspec.MsgspecError as error:
            return Commanded(code=RefusalCode.MALFORMED, reason=f"{command.verb}: {error}")
        except BusError as error:
            return Commanded(code=RefusalCode.UNAVAILABLE, reason=str(error))
        if len(body) > COMMAND:
            return Commanded(
                code=RefusalCode.TOO_LARGE,
                reason=f"an answer of {len(body):,} bytes; a job gets at most {COMMAND:,}",
            )
        return Commanded(body=body)

    async def _asked(self, command: Command, assignment: Assignment) -> bytes:
        if command.role == "schedd":
            request = JobCommand(
                job=assignment.job, attempt=assignment.attempt, verb=command.verb, body=command.body
            )
            return (await self._bus.call(JOB_COMMAND, self._schedd, request, deadline=_DEADLINE_S)).body
        if command.verb == TASK_WORKER.verb and command.role == "sessions":
            works = TaskWorkerAsks(
                queue=text(assignment.ad, TASK_QUEUE),
                owner=text(assignment.ad, "Owner"),
                job=assignment.job,
                attempt=assignment.attempt,
                body=command.body,
            )
            return (await self._bus.call(TASK_WORKER, self._schedd, works, deadline=_DEADLINE_S)).body
        if command.role == "sessions":
            asks = MemberAsks(
                session=text(assignment.ad, MEMBER),
                job=assignment.job,
                attempt=assignment.attempt,
                verb=command.verb,
                body=command.body,
            )
            return (await self._bus.call(MEMBER_ASKS, self._schedd, asks, deadline=_DEADLINE_S)).body
        if command.role == "shadow" and (own := self._served.get(command.verb)) is not None:
            owner = user(text(assignment.ad, "Owner"))
            return _encode(await own.handler(own.endpoint.decode_request(command.body), owner))
        endpoint = _PUBLIC.get((command.role, command.verb))
        if endpoint is None:
            raise RefusedError(
                RefusalCode.DENIED, f"a running job may not ask for {command.role}.{command.verb}"
            )
        said = endpoint.decode_request(command.body)
        return _encode(await self._bus.call(endpoint, command.name, said, deadline=_DEADLINE_S))


def _refusal(assignment: Assignment, role: str) -> str:
    if role == "sessions":
        if not assignment.ad.get(MEMBER) and not assignment.ad.get(TASK_QUEUE):
            return f"job {assignment.job} is of no interactive session, and works for no task queue"
    elif not wants_access(assignment.ad):
        return f"job {assignment.job} was not submitted with want_pool_access = true"
    if pool := pool_of(assignment.startd):
        return f"job {assignment.job} runs in the pool {pool}, whose machines do not speak for people of this one"
    return ""
