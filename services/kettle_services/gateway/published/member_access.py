"""
What jobs of interactive sessions show here to reach the services of the other jobs of their session, and of no other.

The service of sessions says which job is of which session, and the queue whose job that is and whether it goes on, at the making and
while a connection lasts.
"""

import hashlib
import secrets
import time
from collections import OrderedDict
from typing import Final

import msgspec

from kettle.bus.ports import RefusedError, Served
from kettle.bus.retryable import UNHEARD
from kettle_services.gateway.published.job_lookup import JobLookup, QueuedJob
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.codes import JobStatus, RefusalCode
from kettle_wire.commands.gateway import ADMIT_MEMBER, AccessMade, AdmitMember
from kettle_wire.identity import Identity
from kettle_wire.jobs import JobId
from kettle_wire.rest.problem import ProblemCode

PREFIX: Final = "kettle-member."
"""How they begin, so that none is sent to anybody who checks others."""
LIFE_S: Final = 3600.0
_MOST: Final = 100_000
_RUNS: Final = frozenset({JobStatus.RUNNING, JobStatus.SUSPENDED, JobStatus.TRANSFERRING_OUTPUT})


class AdmittedMember(msgspec.Struct, frozen=True):
    """A job that was admitted."""

    job: JobId
    schedd: str
    owner: str
    session: str
    runs: int
    """At the next run it is over: that is on another machine, perhaps."""


class MemberAccess:
    """Makes what they show, and takes it; only a digest of each is kept."""

    def __init__(self, lookup: JobLookup, url: str, ca: str) -> None:
        """`url`: where machines find this gateway, whose certificate may come from `ca`."""
        self._lookup: Final = lookup
        self._url: Final = url
        self._ca: Final = ca
        self._members: OrderedDict[bytes, tuple[float, AdmittedMember]] = OrderedDict()
        """The oldest is the first."""

    def served(self) -> Served[AdmitMember, AccessMade]:
        """The endpoint with its handler."""
        return Served(ADMIT_MEMBER, self.admit)

    async def admit(self, request: AdmitMember, caller: Identity) -> AccessMade:
        """
        For a job that runs, and of which the queue says that it is of that session; else `denied`, or `unavailable` while the
        queue says nothing.
        """
        del caller
        try:
            job = await self._lookup.job(request.job, request.schedd, fresh=True)
        except RequestRefused as refusal:
            raise RefusedError(RefusalCode.DENIED, str(refusal)) from refusal
        except UNHEARD as error:
            raise RefusedError(
                RefusalCode.UNAVAILABLE, f"nobody says at the moment whose job {request.job} is: {error}"
            ) from error
        member = AdmittedMember(request.job, request.schedd, job.owner, request.session, job.runs)
        if not _is_still(job, member):
            raise RefusedError(
                RefusalCode.DENIED, f"job {request.job} is no job of session {request.session} that runs"
            )
        now = time.time()
        self._forget(now)
        while len(self._members) >= _MOST:
            self._members.popitem(last=False)
        token = PREFIX + secrets.token_urlsafe(32)
        self._members[_key(token)] = now + LIFE_S, member
        return AccessMade(url=self._url, ca=self._ca, token=token, expires=now + LIFE_S)

    def member(self, token: str) -> AdmittedMember:
        """Whose a token is; raises RequestRefused: nobody's, or it is over."""
        self._forget(time.time())
        found = self._members.get(_key(token))
        if found is None:
            raise RequestRefused(
                401,
                ProblemCode.TOKEN_UNTRUSTED,
                "this is no token of this gateway's, or is none any more: ask for another one",
            )
        return found[1]

    async def require(self, member: AdmittedMember, wanted: QueuedJob) -> None:
        """
        That it runs, and that the other job is of its session and its owner.

        Raises RequestRefused: something of that is not so, or not any more.
        """
        own = await self._lookup.job(member.job, member.schedd)
        if not _is_still(own, member) or (wanted.owner, wanted.session) != (member.owner, member.session):
            raise RequestRefused(
                403,
                ProblemCode.NOT_PERMITTED,
                f"job {member.job} reaches jobs of its own session alone, and as long as it runs",
            )

    def _forget(self, now: float) -> None:
        while self._members and next(iter(self._members.values()))[0] <= now:
            self._members.popitem(last=False)


def _is_still(job: QueuedJob, member: AdmittedMember) -> bool:
    return job.status in _RUNS and (job.owner, job.session, job.runs) == (
        member.owner,
        member.session,
        member.runs,
    )


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
