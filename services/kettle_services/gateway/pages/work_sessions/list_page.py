"""The page of all interactive sessions of somebody."""

from collections.abc import Sequence
from typing import Final

import msgspec
from aiohttp import web

from kettle_services.gateway.pages.page import Link, Page, Shown
from kettle_services.gateway.pages.periodic_watch import same_or_new
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_wire.rest.route import Moment
from kettle_wire.rest.sessions import LIST_WORK_SESSIONS, ListWorkSessions, WorkSession, WorkSessions


class AskedSessions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which sessions."""

    everybody: bool = False
    """The sessions of all people, for administrators."""
    ended: bool = False
    """Also those that are over."""
    as_of: Moment | None = None


SESSIONS: Final = Page(
    "/sessions",
    "Sessions",
    template="sessions/list.html",
    parameters=AskedSessions,
    link=Link("Jobs", 4),
    live="sessions/list_live.html",
    only_now=True,
)


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A session, and what is to be said of it in a line."""

    session: WorkSession
    said: str
    """Why it is not ready, why workers wait, or how it has ended; empty: all is as it should be."""


class SessionsView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    asked: AskedSessions
    rows: Sequence[SessionRow]
    trouble: str
    """Why nobody knows; empty: it is known."""


_SHOWN_BEFORE: Final = web.RequestKey("kettle-sessions-page", Shown)


class SessionsPage:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions: Final = questions

    async def show(self, asked: Asked) -> Shown:
        """
        All that somebody may see, the oldest first; who watches is shown the same again if nothing has changed.
        """
        wanted: AskedSessions = asked.parameters
        question = ListWorkSessions(everybody=wanted.everybody, ended=wanted.ended)
        found, trouble = await self._questions.ask_or_say(asked, LIST_WORK_SESSIONS, question, WorkSessions)
        rows = [
            SessionRow(session=each, said=said_of(each))
            for each in (found.sessions if found is not None else ())
        ]
        view = SessionsView(asked=wanted, rows=rows, trouble=trouble)
        return same_or_new(asked, Shown(view), _SHOWN_BEFORE)


def said_of(session: WorkSession) -> str:
    """Why a session is not as it should be, in a line."""
    if session.state == "ended":
        return f"{session.outcome}: {session.reason}" if session.reason else session.outcome
    if session.reason:
        return session.reason
    return f"{session.waits[0].count} waiting: {session.waits[0].reason}" if session.waits else ""
