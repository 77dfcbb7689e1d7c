"""What is done to a session from its page."""

from typing import Annotated, Final, Literal

import msgspec

from kettle_services.gateway.pages.notices import Notice, refused
from kettle_services.gateway.pages.page import Form, Led
from kettle_services.gateway.pages.questions import Questions
from kettle_services.gateway.rest.application import Asked
from kettle_services.gateway.rest.refusals import RequestRefused
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.sessions import (
    CHANGE_WORK_SESSION,
    RESTART_WORK_SESSION,
    STOP_WORK_SESSION,
    ChangeWorkSession,
    RestartWorkSession,
    SessionPlace,
    StopWorkSession,
    WorkersWanted,
    WorkSession,
    WorkSessionChange,
)
from kettle_wire.sessions import MOST_WORKERS, Count, SessionAdapt

_SAID: Final = {
    "scale": "The session has that many workers as soon as there are machines for them.",
    "adapt": "The session has as many workers as its load wants, between these numbers.",
    "restart": "The session is started again.",
    "stop": "The session is being stopped.",
}


class WhichSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The session."""

    session: SessionPlace


class SessionForm(msgspec.Struct, frozen=True, kw_only=True):
    """What was sent."""

    action: Literal["scale", "adapt", "restart", "stop"]
    reason: Annotated[str, msgspec.Meta(max_length=256)] = ""
    workers: Count | None = None
    """With `scale`."""
    minimum: Count | None = None
    maximum: Count | None = None
    """With `adapt`."""


ACT_ON_SESSION: Final = Form(
    "/sessions/{session}/actions",
    "Session",
    fields=SessionForm,
    parameters=WhichSession,
    template="problem.html",
)


class SessionActions:
    """Carries them out."""

    def __init__(self, questions: Questions) -> None:
        self._questions: Final = questions

    async def act(self, asked: Asked) -> Led:
        """Do it, and go back to the page; what is wrong is said there."""
        form: SessionForm = asked.body
        which: WhichSession = asked.parameters
        place = f"/sessions/{which.session}"
        try:
            await self._done(asked, which.session, form)
        except RequestRefused as refusal:
            return Led(place, notice=refused(refusal))
        return Led(place, notice=Notice(said=[_SAID[form.action]]))

    async def _done(self, asked: Asked, session: SessionPlace, form: SessionForm) -> None:
        ask = self._questions.ask
        match form.action:
            case "stop":
                order = StopWorkSession(id=session, reason=form.reason)
                await ask(asked, STOP_WORK_SESSION, order, WorkSession)
            case "restart":
                await ask(asked, RESTART_WORK_SESSION, RestartWorkSession(id=session), WorkSession)
            case _:
                which = ChangeWorkSession(id=session)
                await ask(asked, CHANGE_WORK_SESSION, which, WorkSession, body=_change(form))


def _change(form: SessionForm) -> WorkSessionChange:
    if form.action == "scale":
        if form.workers is None:  # 0 would end them all
            raise RequestRefused(422, ProblemCode.BODY_INVALID, "say how many workers there are to be")
        return WorkSessionChange(size=WorkersWanted(workers=form.workers))
    maximum = MOST_WORKERS if form.maximum is None else form.maximum
    return WorkSessionChange(adapt=SessionAdapt(minimum=form.minimum or 0, maximum=maximum))
