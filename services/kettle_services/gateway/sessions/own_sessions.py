"""What somebody asks about the sessions of the own browsers, as part of the REST interface."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from kettle.http.requests import bearer_token
from kettle_services.gateway.rest.application import Answer, Asked, Handler
from kettle_services.gateway.rest.credential import Credential
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_services.gateway.sessions.browser_sessions import HELD
from kettle_services.gateway.sessions.links import LIFE_S, Links
from kettle_services.gateway.sessions.session_table import Session, SessionTable
from kettle_wire.rest import browser_sessions as sessions
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.route import Route


class OwnSessions:
    """Lists and ends them, and makes links by which one begins."""

    def __init__(self, table: SessionTable, links: Links) -> None:
        self._table: Final = table
        self._links: Final = links

    def handlers(self) -> Mapping[Route, Handler]:
        """By the routes that they answer."""
        return {
            sessions.LIST_BROWSER_SESSIONS: self.list,
            sessions.END_BROWSER_SESSIONS: self.end,
            sessions.MAKE_LINK: self.link,
        }

    async def list(self, asked: Asked) -> Answer:
        """See `ListBrowserSessions`."""
        now = time.time()
        self._table.sweep(now)
        current = asked.request.get(HELD)
        own = reversed(self._table.of(asked.person.name))
        return Answer(sessions.BrowserSessions(sessions=[self._shown(each, each is current) for each in own]))

    def _shown(self, session: Session, current: bool) -> sessions.BrowserSession:  # noqa: FBT001 - of a row
        return sessions.BrowserSession(
            id=session.id,
            way=session.way,
            began=_moment(session.began),
            used=_moment(session.used),
            ends=_moment(self._table.ends_at(session)),
            address=session.address,
            agent=session.agent,
            current=current,
        )

    async def end(self, asked: Asked) -> Answer:
        """See `EndSessions`; a session of somebody else's is none that there is."""
        wanted = set(asked.body.ids)
        found = [each for each in self._table.of(asked.person.name) if each.id in wanted]
        for each in found:
            self._table.end(each)
        return Answer(sessions.SessionsEnded(ended=[each.id for each in found]))

    async def link(self, asked: Asked) -> Answer:
        """See `MakeLink`; a browser has a session already, and no page needs to make others."""
        token = bearer_token(asked.request)
        if not token:
            raise RequestRefused(
                403,
                ProblemCode.NOT_PERMITTED,
                "a login link is made for who shows a token in the header Authorization: kettle web does it",
            )
        now = time.time()
        code = self._links.make(asked.person.name, Credential(token=token), now)
        return Answer(sessions.Link(path=f"/login?link={code}", expires=_moment(now + LIFE_S)))


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
