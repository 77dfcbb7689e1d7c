"""Access to running jobs: who has it, and the way to the job's starter, which answers the requests."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import msgspec

from kettle.auth.job_access_proof import SHADOW, proves
from kettle.bus.ports import RefusedError, Served
from kettle.execution.attempts.job_spec import AttemptId
from kettle.execution.attempts.messages import AccessReply
from kettle_services.startd.startd import Startd
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.access import (
    CLOSE_SESSION,
    EXCHANGE,
    LONGEST_WAIT,
    OPEN_SESSION,
    PEEK,
    Access,
    OpenSession,
)
from kettle_wire.endpoint import Endpoint
from kettle_wire.identity import Identity

_log: Final = logging.getLogger(__name__)
_MOST_ASKED: Final = 128
"""The number of requests of one person, or of one job for its other nodes, that are handled at once."""
_BUSY_MS: Final = 500
_PATIENCE_S: Final = LONGEST_WAIT + 5.0
_encode: Final = msgspec.msgpack.Encoder().encode


class _Entitled(Protocol):
    """A request that comes with a right."""

    @property
    def access(self) -> Access:
        """The right."""
        ...


class JobAccess:
    """Checks the caller's permission, and passes requests on."""

    def __init__(self, startd: Startd) -> None:
        self._startd = startd
        self._asked: Counter[str] = Counter()
        """Questions in hand, by person."""

    def served(self) -> list[Served[Any, Any]]:
        """All endpoints with their handlers."""
        endpoints: tuple[Endpoint[Any, Any], ...] = (PEEK, OPEN_SESSION, EXCHANGE, CLOSE_SESSION)
        return [Served(endpoint, self._answers(endpoint)) for endpoint in endpoints]

    def _answers(self, endpoint: Endpoint[Any, Any]) -> Callable[[Any, Identity], Awaitable[msgspec.Struct]]:
        async def answer(request: Any, caller: Identity) -> msgspec.Struct:
            attempt = self._admitted(request, caller)
            if isinstance(request, OpenSession):
                _log.info(
                    "session", extra={"by": caller.name, "job": str(attempt.job), "session": request.session}
                )
            person = caller.name if caller.kind == "user" else f"job {attempt.job}"
            answer = await self._ask(attempt, endpoint.verb, _encode(request), person)
            reply: msgspec.Struct = endpoint.decode_reply(answer.body)
            return reply

        return answer

    async def _ask(self, attempt: AttemptId, verb: str, body: bytes, person: str) -> AccessReply:
        if self._asked[person] >= _MOST_ASKED:
            raise RefusedError(
                RefusalCode.BUSY,
                f"{person} has {_MOST_ASKED} questions in hand here already",
                retry_after_ms=_BUSY_MS,
            )
        self._asked[person] += 1
        try:
            async with asyncio.timeout(_PATIENCE_S):
                answer = await self._startd.ask(attempt, verb, body)
        except TimeoutError as error:
            raise RefusedError(
                RefusalCode.UNAVAILABLE, f"the starter of job {attempt.job} does not answer now"
            ) from error
        finally:
            self._asked[person] -= 1
            if not self._asked[person]:
                del self._asked[person]
        if answer is None:
            raise _gone(attempt)
        if answer.code:
            raise RefusedError(
                answer.code, answer.reason, retry_after_ms=_BUSY_MS if answer.code == RefusalCode.BUSY else 0
            )
        return answer

    def _admitted(self, request: _Entitled, caller: Identity) -> AttemptId:
        access = request.access
        attempt = AttemptId(access.claim, access.job, access.attempt)
        claim = self._startd.machine.claims.get(access.claim)
        if claim is None or claim.attempt_id() != attempt:
            raise _gone(attempt)
        if not proves(
            access.proof,
            claim.key.secret,
            claim=access.claim,
            job=access.job,
            attempt=access.attempt,
            person=caller.name if caller.kind == "user" else SHADOW,
        ):
            raise RefusedError(RefusalCode.DENIED, f"{caller.name} may not look into job {access.job}")
        return attempt


def _gone(attempt: AttemptId) -> RefusedError:
    return RefusedError(
        RefusalCode.NOT_RUNNING, f"run {attempt.attempt} of job {attempt.job} is over, or has not begun"
    )
