"""The pages of interactive sessions, without a browser."""

from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest

from kettle_services.gateway.pages.assets import Assets
from kettle_services.gateway.pages.frame import Frame
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.pages.work_sessions.actions import SessionActions, SessionForm, WhichSession
from kettle_services.gateway.pages.work_sessions.list_page import (
    AskedSessions,
    SessionRow,
    SessionsView,
    said_of,
)
from kettle_services.gateway.pages.work_sessions.session_page import SessionPageView
from kettle_services.gateway.rest.application import Asked
from kettle_wire.commands.sessions import WaitingMembers
from kettle_wire.rest.services import PublishedService
from kettle_wire.rest.sessions import WorkersWanted, WorkSession, WorkSessionChange, WorkSessionMember
from kettle_wire.sessions import SessionAdapt, SessionTarget

from .rendered import TEMPLATES

NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
EVIL = "<script>alert(1)</script>"


def frame(**more: Any) -> Frame:
    return Frame(title="Sessions", path="/sessions", query={}, now=NOON, assets=Assets().addresses, **more)


def session(**more: Any) -> WorkSession:
    made = WorkSession(
        id="abcdefgh",
        name="analysis",
        owner="ada",
        kind="dask",
        profile="dask",
        state="ready",
        wanted=20,
        running=3,
        waiting=17,
        summary="wanted 20, running 3, 17 waiting",
        target=SessionTarget(workers=20),
        memory=1024,
        created=NOON,
    )
    return msgspec.structs.replace(made, **more)


def seen(of: WorkSession, *services: PublishedService, is_open: bool = True) -> SessionPageView:
    return SessionPageView(
        session=of,
        said=said_of(of),
        services=services,
        no_services="",
        waits=of.waits,
        members=of.members,
        more=0,
        is_open=is_open,
        has_workers=True,
    )


def test_a_session_says_in_a_line_why_it_is_not_as_it_should_be() -> None:
    """Its own reason before that of its workers, and how it ended."""
    waits = [WaitingMembers(count=17, reason="all cores are in use")]
    assert "" == said_of(session())
    assert "17 waiting: all cores are in use" == said_of(session(waits=waits))
    assert "no machine" == said_of(session(state="queued", reason="no machine", waits=waits))
    assert "failed: it ended three times" == said_of(
        session(state="ended", outcome="failed", reason="it ended three times")
    )


def test_all_sessions_are_a_table_and_none_is_the_way_to_the_first() -> None:
    """Without a service of sessions it is said that there is none."""
    row = SessionRow(session=session(), said=EVIL)
    html = TEMPLATES.render(
        "sessions/list.html", frame(), SessionsView(asked=AskedSessions(), rows=[row], trouble="")
    )
    assert 'href="/sessions/abcdefgh"' in html
    assert "3 of 20" in html
    assert "<script>alert" not in html
    none = SessionsView(asked=AskedSessions(), rows=[], trouble="this pool has no <service>")
    html = TEMPLATES.render("sessions/list.html", frame(), none)
    assert "This pool has no &lt;service&gt;." in html
    assert "kettle dask create" in html


def test_a_session_leads_to_what_it_publishes() -> None:
    """A dashboard is a link while it is reached, a port of bytes a command, and what others wrote is text."""
    member = WorkSessionMember(
        number=1, role="head", job="12.0", status="running", since=NOON, machine=EVIL, reason=EVIL
    )
    waits = [WaitingMembers(count=17, reason=EVIL)]
    first = WorkSessionMember(number=0, role="worker", job="11.0", status="running", since=NOON)
    of = session(members=[first, member], waits=waits, image=EVIL, versions={EVIL: EVIL})
    page = PublishedService(
        name="dashboard", port=1, kind="http", up=True, path="/jobs/12.0/dashboard/", connect=""
    )
    port = PublishedService(name="dask", port=2, kind="tcp", up=True, connect="")
    html = TEMPLATES.render("sessions/session.html", frame(may_write=True), seen(of, page, port))
    assert "<script>alert" not in html
    for said in (
        'href="/jobs/12.0/dashboard/"',
        "kettle connect 12.0 dask",
        'href="/jobs/12.0"',
        'value="scale"',
        'value="stop"',
        "17 jobs: ",
    ):
        assert said in html, said
    away = msgspec.structs.replace(page, up=False)
    html = TEMPLATES.render("sessions/session.html", frame(may_write=True), seen(of, away))
    assert 'href="/jobs/12.0/dashboard/"' not in html
    assert "is not reached now" in html
    over = session(state="ended", outcome="stopped", ended=NOON)
    for who, what in (
        (frame(may_write=True), seen(over, is_open=False)),
        (frame(), seen(of)),
    ):
        assert 'value="stop"' not in TEMPLATES.render("sessions/session.html", who, what)


class Questioned:
    """Takes what is asked of the interface."""

    def __init__(self) -> None:
        self.bodies: list[object] = []

    async def ask(self, *_asked: object, body: object = None) -> None:
        self.bodies.append(body)


def sent(form: SessionForm) -> Asked:
    which = WhichSession(session="abcdefgh")
    return Asked(person=cast("Any", None), parameters=which, body=form, request=cast("Any", None))


@pytest.mark.parametrize(
    ("form", "change"),
    [
        (SessionForm(action="scale", workers=0), WorkSessionChange(size=WorkersWanted(workers=0))),
        (
            SessionForm(action="adapt", maximum=7),
            WorkSessionChange(adapt=SessionAdapt(minimum=0, maximum=7)),
        ),
    ],
)
async def test_a_form_changes_what_it_says(form: SessionForm, change: WorkSessionChange) -> None:
    asked = Questioned()
    led = await SessionActions(cast("Questions", asked)).act(sent(form))
    assert [change] == asked.bodies
    assert led.notice is not None
    assert led.notice.said


async def test_a_form_without_a_number_ends_no_worker() -> None:
    """It is refused, and the page says why."""
    asked = Questioned()
    led = await SessionActions(cast("Questions", asked)).act(sent(SessionForm(action="scale")))
    assert [] == asked.bodies
    assert led.notice is not None
    assert ["Say how many workers there are to be."] == led.notice.trouble
