"""Who sends a request that comes with a cookie instead of a token."""

import logging
import time
from typing import Final

from aiohttp import web

from kettle_services.gateway.rest.admission import GOOD_NO_MORE
from kettle_services.gateway.rest.credential import Credential
from kettle_services.gateway.rest.persons import Person, Persons
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.sessions.cookies import SESSION
from kettle_services.gateway.sessions.origins import Origins, require_intended
from kettle_services.gateway.sessions.session_table import Session, SessionTable
from kettle_wire.rest.browser_sessions import Way
from kettle_wire.rest.problem import ProblemCode

_AGENT: Final = 200
"""Characters of what a browser calls itself that are kept."""

_log: Final = logging.getLogger(__name__)

HELD: Final = web.RequestKey("kettle-session", Session)
"""The session by which a request came."""


class BrowserSessions:
    """Begins sessions, and believes requests that come by one."""

    def __init__(self, table: SessionTable, origins: Origins, persons: Persons) -> None:
        self.table: Final = table
        self.origins: Final = origins
        self._persons = persons

    def begin(
        self,
        request: web.Request,
        response: web.StreamResponse,
        person: Person,
        credential: Credential,
        way: Way,
        *,
        address: str,
    ) -> None:
        """
        Let a browser come as a person from now on.

        The session that it had before ends, so a cookie that somebody else has given to the browser is worth nothing.
        """
        self.leave(request, response)
        agent = request.headers.get("User-Agent", "")[:_AGENT]
        shown, session = self.table.begin(
            person.name, credential, way, address=address, agent=agent, now=time.time()
        )
        SESSION.give(response, self.origins.own(request), shown)
        _log.info("%s has signed in by %s", person.name, way, extra={"session": session.id})

    def leave(self, request: web.Request, response: web.StreamResponse) -> None:
        """End the session of a browser, and have it forget that."""
        if (session := self._found(request)) is not None:
            self.table.end(session)
        SESSION.take(response, self.origins.own(request))

    async def held(self, request: web.Request) -> Session | None:
        """The session by whose cookie a request comes; raises RequestRefused: no page of ours has sent it."""
        session = self._found(request)
        if session is not None:
            await require_intended(request, self.origins, session.csrf)
        return session

    def _found(self, request: web.Request) -> Session | None:
        return self.table.find(SESSION.shown(request, self.origins.own(request)), time.time())

    async def believed(self, request: web.Request, address: str) -> Person | None:
        """
        Who has sent a request, by its cookie; None: it shows none of a session that there is.

        Raises RequestRefused: it came from elsewhere, or the session's credential is good no more, which ends the session.
        """
        session = await self.held(request)
        if session is None or (person := await self._holder(session, address)) is None:
            return None
        request[HELD] = session
        return person

    async def still(self, request: web.Request, address: str) -> Person | None:
        """
        Who has sent a request that was believed, which is no other use of its session; None: it came by none.

        Raises RequestRefused: the session is over.
        """
        session = request.get(HELD)
        if session is None:
            return None
        # Asked also if the session has ended: another request of it may have found why, and this one is told the same.
        person = await self._holder(session, address)
        if person is None or not self.table.has(session, time.time()):
            raise RequestRefused(401, ProblemCode.TOKEN_ABSENT, "the session is over: sign in again")
        return person

    async def _holder(self, session: Session, address: str) -> Person | None:
        """
        Whose a session is; None: its credential is another person's by now, which ends it.

        Raises RequestRefused: the credential is good no more, which ends it too, or nobody can tell.
        """
        try:
            person = await self._persons.holding(session.credential, address)
        except RequestRefused as refusal:
            if refusal.status in GOOD_NO_MORE:
                self.table.end(session)
                _log.info(
                    "the session of %s is over: %s", session.person, refusal, extra={"session": session.id}
                )
            raise
        if person.name != session.person:
            self.table.end(session)
            return None
        return person
