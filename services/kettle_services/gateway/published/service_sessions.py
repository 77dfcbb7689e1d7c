"""
Browsers that look at pages of jobs, each signed in for one job, by way of the pages of the gateway.

The way is this: the job's origin gives the browser a secret and leads it to the gateway's own pages; where somebody is signed in there who may
use the job's services, they lead back with a code that is good once, for this secret.  So nobody can sign a browser in at a job's
origin but the browser itself.
"""

import hashlib
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import msgspec

from kettle_services.gateway.published.tunnels import JobKey
from kettle_services.gateway.rest.credential import Credential
from kettle_services.gateway.rest.persons import Person, Persons
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.sessions.session_table import Session, SessionTable
from kettle_wire.jobs import JobId
from kettle_wire.rest.problem import ProblemCode

CODE_LIFE_S: Final = 60.0
SECRET_S: Final = 600
"""Somebody may have to sign in on the way."""
_MOST: Final = 10_000
_MOST_CODES: Final = 1_000


class ServiceSession(msgspec.Struct, frozen=True):
    """A browser that looks at pages of one job."""

    job: JobKey
    of: Session
    """The session of the gateway's own pages, which it ends with."""

    def is_for(self, job: JobId, schedd: str) -> bool:
        """Whether it is for what an address names."""
        return self.job[1] == job and schedd in {"", self.job[0]}

    @property
    def credential(self) -> Credential:
        """By which the person is believed."""
        return self.of.credential


class ServiceSessions:
    """All of them, and the codes by which they begin; only digests of what browsers show are kept."""

    def __init__(self, table: SessionTable, persons: Persons, clock: Callable[[], float] = time.time) -> None:
        """`table`: the sessions of the gateway's own pages."""
        self._table: Final = table
        self._persons: Final = persons
        self._clock: Final = clock
        self._codes: OrderedDict[bytes, tuple[float, str, ServiceSession]] = OrderedDict()
        self._sessions: OrderedDict[bytes, ServiceSession] = OrderedDict()

    def make_code(self, session: Session, job: JobKey, state: str) -> str:
        """What the job's origin takes once, of a browser that has the secret of this state."""
        now = self._clock()
        while self._codes and (len(self._codes) >= _MOST_CODES or next(iter(self._codes.values()))[0] <= now):
            self._codes.popitem(last=False)
        made = secrets.token_urlsafe(32)
        self._codes[digest(made)] = now + CODE_LIFE_S, state, ServiceSession(job, session)
        return made

    def redeem(self, code: str, secret: str, job: JobId, schedd: str) -> tuple[str, JobKey]:
        """
        What the browser shows from now on, and for which job; `schedd`: empty: the address names none.

        Raises RequestRefused: the code is none, or not for this browser and this job; it works no more in any case.
        """
        until, state, session = self._codes.pop(digest(code), (0.0, "", None))
        if (
            session is None
            or until <= self._clock()
            or not session.is_for(job, schedd)
            or not hmac.compare_digest(state.encode("utf-8", "surrogateescape"), state_of(secret).encode())
        ):
            raise RequestRefused(
                403,
                ProblemCode.LINK_UNKNOWN,
                "this link was used already, is too old, or was made for another browser: open the page of the job again",
            )
        shown = secrets.token_urlsafe(32)
        self._sessions[digest(shown)] = session
        while len(self._sessions) > _MOST:
            self._sessions.popitem(last=False)
        return shown, session.job

    def find(self, shown: list[str], job: JobId, schedd: str) -> ServiceSession | None:
        """
        The session of a browser for a job; None: it has none. Others may have put more cookies of the name there.
        """
        for each in shown:
            key = digest(each)
            session = self._sessions.get(key)
            if session is None or not session.is_for(job, schedd):
                continue
            if self._table.has(session.of, self._clock()):
                self._sessions.move_to_end(key)
                return session
            del self._sessions[key]
        return None

    def knows(self, code: str) -> bool:
        """Whether there is such a code, for whichever job."""
        return digest(code) in self._codes

    async def holder(self, session: ServiceSession, address: str) -> Person:
        """
        Whose it is, by what is in force now.

        Raises RequestRefused: it is over, or its credential is good no more.
        """
        if not self._table.has(session.of, self._clock()):
            raise RequestRefused(
                401, ProblemCode.TOKEN_ABSENT, "you have signed out: open the page of the job again"
            )
        person = await self._persons.holding(session.credential, address)
        if person.name != session.of.person:
            raise RequestRefused(
                403, ProblemCode.NOT_PERMITTED, f"by the rules of now this credential is {person.name}'s"
            )
        return person


def digest(shown: str) -> bytes:
    """Under which something is kept that a browser shows."""
    return hashlib.sha256(shown.encode("utf-8", "surrogateescape")).digest()


def state_of(secret: str) -> str:
    """What others may see of a browser's secret."""
    return digest(secret).hex()
