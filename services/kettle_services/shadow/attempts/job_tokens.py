"""
Tokens of running jobs, asked for in the moment in which their machine wants them: a shadow keeps none.

iam believes the queue, not us, about whose a job is.  Where iam does not answer at a job's start, the job waits for a time.
"""

import logging
import time
from typing import Final

import msgspec

from kettle.bus.ports import Asks, BusError, RefusedError
from kettle.jobs.needed_tokens import wants_tokens
from kettle.transfer.submit_side_paths import text
from kettle_services.shadow.settings import ShadowSettings
from kettle_wire.codes import NOT_NOW, RefusalCode
from kettle_wire.commands.attempt_reports import Attempt
from kettle_wire.commands.job_credentials import (
    END_JOB_TOKENS,
    ISSUE_JOB_TOKENS,
    EndJobTokens,
    IssueJobTokens,
)
from kettle_wire.commands.questions import JobTokens
from kettle_wire.commands.sessions import MEMBER_ASKS, MemberAsks, SessionFiles
from kettle_wire.commands.shadow import Assignment
from kettle_wire.flocking import pool_of
from kettle_wire.job_tokens import NONE_WHERE_JOINED, JobToken
from kettle_wire.session_attributes import FILES
from kettle_wire.session_attributes import ID as SESSION

_AS_LONG_AS_IT_RUNS_S: Final = 1e9
_log: Final = logging.getLogger(__name__)


class TokenRequests:
    """Asks iam for the tokens of all attempts."""

    def __init__(self, bus: Asks, settings: ShadowSettings, *, joined: bool = False) -> None:
        """`joined`: we are of an access point that has joined, which iam gives none."""
        self._joined = joined
        self._bus = bus
        self._settings = settings
        self._waiting: dict[Attempt, float] = {}
        """Since when an attempt waits for an iam that does not answer."""

    async def fetch(self, assignment: Assignment) -> JobTokens:
        """
        The tokens of an attempt, and the files of its interactive session.

        Raises:
            RefusedError: it gets none; `busy`: not now, ask again.
        """
        if not assignment.ad.get(FILES):
            return await self._issued(assignment)
        files = await self._files(assignment)
        issued = (await self._issued(assignment)).tokens if wants_tokens(assignment.ad) else []
        return JobTokens([*issued, *files])

    async def _files(self, assignment: Assignment) -> list[JobToken]:
        """What the owner of its session has given to it, which is the same as long as it runs."""
        _require_own_machine(assignment)
        asks = MemberAsks(
            session=text(assignment.ad, SESSION),
            job=assignment.job,
            attempt=assignment.attempt,
            verb="files",
            body=b"",
        )
        try:
            answer = await self._bus.call(
                MEMBER_ASKS, self._settings.schedd, asks, deadline=self._settings.call_deadline
            )
        except RefusedError as error:
            if error.code in NOT_NOW:
                raise
            raise RefusedError(RefusalCode.DENIED, str(error)) from error
        except BusError as error:
            raise RefusedError(
                RefusalCode.BUSY, f"the files of its session cannot be had at the moment: {error}"
            ) from error
        files = msgspec.msgpack.decode(answer.body, type=SessionFiles).files
        return [JobToken(name=name, text=data, left=_AS_LONG_AS_IT_RUNS_S) for name, data in files.items()]

    async def _issued(self, assignment: Assignment) -> JobTokens:
        if not wants_tokens(assignment.ad):
            raise RefusedError(
                RefusalCode.DENIED, f"job {assignment.job} was not submitted with use_oauth_services"
            )
        if self._joined:
            raise RefusedError(RefusalCode.DENIED, NONE_WHERE_JOINED)
        _require_own_machine(assignment)
        attempt = Attempt(assignment.job, assignment.attempt)
        request = IssueJobTokens(schedd=self._settings.schedd, job=assignment.job, attempt=assignment.attempt)
        try:
            made = await self._bus.call(
                ISSUE_JOB_TOKENS, self._settings.iam, request, deadline=self._settings.call_deadline
            )
        except BusError as error:
            if isinstance(error, RefusedError) and error.code not in NOT_NOW:
                self._waiting.pop(
                    attempt, None
                )  # another code might say to the machine that it is to ask again
                raise RefusedError(RefusalCode.DENIED, str(error)) from error
            return self._without(attempt, error)
        self._waiting.pop(attempt, None)
        return JobTokens(made.tokens)

    def _without(self, attempt: Attempt, error: BusError) -> JobTokens:
        """What happens while iam does not answer: the job waits, and then is held, or runs as it is."""
        since = self._waiting.setdefault(attempt, time.monotonic())
        job, limit = attempt.job, self._settings.token_wait
        if time.monotonic() - since < limit:
            sentence = f"job {job} waits for its tokens, which iam does not give at the moment: {error}"
            _log.warning("%s", sentence)
            raise RefusedError(RefusalCode.BUSY, sentence)
        del self._waiting[attempt]
        if self._settings.runs_without_tokens:
            _log.warning("job %s runs without its tokens: iam has not answered for %g s", job, limit)
            return JobTokens([])
        raise RefusedError(
            RefusalCode.DENIED,
            f"the job's tokens could not be had within {limit:g} s ({error}); when iam runs again, release the job:"
            f" condor_release {job}",
        )

    async def end(self, assignment: Assignment) -> None:
        """
        Have the tokens of an attempt that is over be invalid; where iam does not answer, they end by themselves.
        """
        if self._joined or not wants_tokens(assignment.ad):
            return
        self._waiting.pop(Attempt(assignment.job, assignment.attempt), None)
        request = EndJobTokens(schedd=self._settings.schedd, job=assignment.job, attempt=assignment.attempt)
        try:
            await self._bus.call(
                END_JOB_TOKENS, self._settings.iam, request, deadline=self._settings.call_deadline
            )
        except BusError as error:
            _log.warning(
                "the tokens of job %s were not withdrawn, and end by themselves",
                assignment.job,
                extra={"cause": str(error)},
            )


def _require_own_machine(assignment: Assignment) -> None:
    if pool := pool_of(assignment.startd):
        raise RefusedError(
            RefusalCode.DENIED,
            f"job {assignment.job} runs in the pool {pool}, which gets no tokens of ours",
        )
