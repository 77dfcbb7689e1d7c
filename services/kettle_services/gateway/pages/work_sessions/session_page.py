"""The page of one interactive session: how it is and why, what it publishes, and its jobs."""

from collections.abc import Sequence
from typing import Final

import msgspec
from aiohttp import web

from kettle_services.gateway.pages.page import Page, Shown
from kettle_services.gateway.pages.periodic_watch import same_or_new
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.pages.work_sessions.list_page import said_of
from kettle_services.gateway.rest.application import Asked
from kettle_wire.commands.sessions import WaitingMembers
from kettle_wire.rest.route import Moment
from kettle_wire.rest.services import GET_SERVICES, GetServices, JobServices, PublishedService
from kettle_wire.rest.sessions import (
    GET_WORK_SESSION,
    GetWorkSession,
    SessionPlace,
    WorkSession,
    WorkSessionMember,
)

_MOST_MEMBERS: Final = 200
"""So many are shown; the interface has more."""


class AskedSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which session."""

    session: SessionPlace
    as_of: Moment | None = None


SESSION: Final = Page(
    "/sessions/{session}",
    "Session",
    template="sessions/session.html",
    parameters=AskedSession,
    live="sessions/session_live.html",
    only_now=True,
)


class SessionPageView(msgspec.Struct, frozen=True, kw_only=True):
    """The page."""

    session: WorkSession
    said: str
    services: Sequence[PublishedService]
    """Of its head."""
    no_services: str
    """Why there are none to go to; empty: there are some, or nothing is published."""
    waits: Sequence[WaitingMembers]
    """What is not in `said` already."""
    members: Sequence[WorkSessionMember]
    more: int
    """Members that are left out here."""
    is_open: bool
    """Whether something can still be asked of it."""
    has_workers: bool


_SHOWN_BEFORE: Final = web.RequestKey("kettle-session-page", Shown)


class SessionPage:
    """Shows it."""

    def __init__(self, questions: Questions) -> None:
        self._questions: Final = questions

    async def show(self, asked: Asked) -> Shown:
        """One of them; raises RequestRefused: there is none of this name that somebody may see."""
        wanted: AskedSession = asked.parameters
        question = GetWorkSession(id=wanted.session)
        session = await self._questions.ask(asked, GET_WORK_SESSION, question, WorkSession)
        services, no_services = await self._services(asked, session)
        is_open = session.state not in {"stopping", "ended"}
        said = said_of(session)
        view = SessionPageView(
            session=session,
            said=said,
            services=services,
            no_services=no_services,
            waits=[each for each in session.waits if each.reason not in said],
            members=session.members[:_MOST_MEMBERS],
            more=max(0, len(session.members) - _MOST_MEMBERS),
            is_open=is_open,
            has_workers=session.kind == "dask" or session.wanted > 0,
        )
        return same_or_new(asked, Shown(view, title=f"Session {session.name}"), _SHOWN_BEFORE)

    async def _services(self, asked: Asked, session: WorkSession) -> tuple[Sequence[PublishedService], str]:
        head = next((each for each in session.members if each.role == "head"), None)
        if head is None or head.status != "running":
            return (), ""
        question = GetServices(id=head.job)
        found, why = await self._questions.ask_or_say(asked, GET_SERVICES, question, JobServices)
        if found is None:
            return (), why
        # Who uses them, and how much, changes all the time, and is on no page.
        return [msgspec.structs.replace(each, users=[]) for each in found.services], found.why
