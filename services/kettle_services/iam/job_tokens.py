"""
Tokens for running jobs. Who asks is the shadow of an attempt; what the tokens say is asked of the job's queue, so that the
shadow's word gives nobody more than the queue has recorded.
"""

import secrets
import time
from typing import Any, Final

from kettle.bus.ports import Asks, BusError, RefusedError, Served
from kettle.eventsourcing.command_pipeline import CommandPipeline
from kettle.jobs.needed_tokens import OURS
from kettle.jobs.pool_access import session_of
from kettle_services.iam.commands.deciding import refusing
from kettle_services.iam.domain import job_tokens
from kettle_services.iam.domain.bans import require_welcome
from kettle_services.iam.domain.job_tokens import JobTokenRules
from kettle_services.iam.domain.joining_states import Worker
from kettle_services.iam.ports import TokenKeys
from kettle_services.iam.record import Record
from kettle_services.iam.stored_credentials import StoredCredentials
from kettle_wire.codes import RefusalCode
from kettle_wire.commands import job_credentials
from kettle_wire.commands.schedd import NEEDED_TOKENS, AskNeededTokens
from kettle_wire.events import TokenIssued
from kettle_wire.identity import Identity
from kettle_wire.job_tokens import NONE_WHERE_JOINED, JobToken, NeededToken

_DEADLINE_S: Final = 5.0
"""For the queue's answer; the shadow asks again."""


class JobTokenOffice:
    """Gives tokens to attempts, and withdraws them."""

    def __init__(
        self,
        record: Record,
        keys: TokenKeys,
        bus: Asks,
        rules: JobTokenRules,
        stored: StoredCredentials,
        *,
        issuer: str,
    ) -> None:
        self._record = record
        self._keys = keys
        self._bus = bus
        self._rules = rules
        self._stored = stored
        self._issuer = issuer

    def served(self, _pipeline: CommandPipeline) -> list[Served[Any, Any]]:
        """The endpoints with their handlers; what they record is said only after the answer of a queue."""
        return [
            Served(job_credentials.ISSUE_JOB_TOKENS, self.issue),
            Served(job_credentials.END_JOB_TOKENS, self.end),
        ]

    async def issue(
        self, request: job_credentials.IssueJobTokens, caller: Identity
    ) -> job_credentials.JobTokensMade:
        """All tokens of an attempt; `not_running`, `denied`, `unavailable`."""
        self._require_own(request.schedd, caller)
        asked = AskNeededTokens(job=request.job, attempt=request.attempt)
        try:
            needed = await self._bus.call(NEEDED_TOKENS, request.schedd, asked, deadline=_DEADLINE_S)
        except RefusedError:
            raise
        except BusError as error:
            raise RefusedError(
                RefusalCode.UNAVAILABLE, f"the schedd {request.schedd} does not say whose job it is: {error}"
            ) from error
        session, now = session_of(request.schedd, request.job, request.attempt), time.time()
        tokens: list[JobToken] = []
        signed: list[TokenIssued] = []
        with refusing():
            require_welcome(self._record.register, f"user:{needed.owner}", now=now)
            for each in needed.tokens:
                if each.service in OURS:
                    token, event = self._signed(each, needed.owner, session, now)
                    signed.append(event)
                else:
                    token = await self._stored.token(each, needed.owner)
                tokens.append(token)
        if signed:
            await self._record.record(job_tokens.issued(self._record.register, signed))
        return job_credentials.JobTokensMade(tokens=tokens)

    def _require_own(self, schedd: str, caller: Identity) -> None:
        """Who runs an access point that has joined can have its queue say that a job is anybody's."""
        worker = self._record.register.find(Worker, f"worker/{schedd}")
        if caller.access_point or (worker is not None and worker.joins == "schedd"):
            raise RefusedError(RefusalCode.DENIED, NONE_WHERE_JOINED)

    def _signed(
        self, needed: NeededToken, owner: str, session: str, now: float
    ) -> tuple[JobToken, TokenIssued]:
        made = job_tokens.made(
            needed,
            self._rules,
            issuer=self._issuer,
            owner=owner,
            session=session,
            token=secrets.token_urlsafe(16),
            now=now,
        )
        text = self._keys.issue(made.grant, made.event.token, now=now)
        token = JobToken(name=made.name, text=text, left=made.event.expires - now)
        return token, made.event

    async def end(
        self, request: job_credentials.EndJobTokens, caller: Identity
    ) -> job_credentials.JobTokensEnded:
        """An attempt is over; `denied`."""
        self._require_own(request.schedd, caller)
        session = session_of(request.schedd, request.job, request.attempt)
        if changes := job_tokens.ended(self._record.register, session, now=time.time()):
            await self._record.record(changes)
        return job_credentials.JobTokensEnded()
