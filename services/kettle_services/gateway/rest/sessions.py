"""
Interactive sessions over HTTP: their service is asked in people's own names, so it decides itself what they may.
"""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Final

import msgspec
from aiohttp import web

from kettle.client import CommandRefusedError
from kettle.client.events.sentences import sentence
from kettle_services.gateway.rest.application import Answer, Asked, Handler
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.event_sender import EventSender, StreamCut, place_of_reader
from kettle_services.gateway.rest.idempotency import Repeats, command_id
from kettle_services.gateway.rest.streams import Streams
from kettle_wire.codes import RefusalCode
from kettle_wire.commands import sessions as wire
from kettle_wire.commands.sessions import NewSession, RecordedSessionEvent, SessionView
from kettle_wire.events import decode, tag_of
from kettle_wire.events.interactive import InteractiveStateChanged
from kettle_wire.rest import sessions as rest
from kettle_wire.rest.route import Route

_TIMES: Final = ("ends", "ended")


class SessionQuestions:
    """Answers them."""

    def __init__(self, people: PersonConnections, streams: Streams) -> None:
        """`streams`: how many there may be."""
        self._people: Final = people
        self._streams: Final = streams
        self._repeats: Final = Repeats()

    async def list(self, asked: Asked) -> Answer:
        """All that somebody may see."""
        parameters: rest.ListWorkSessions = asked.parameters
        async with self._people.of(asked.person) as client:
            found = await client.sessions.list(everybody=parameters.everybody, ended=parameters.ended)
        return Answer(rest.WorkSessions(sessions=[shown(each) for each in found]))

    async def create(self, asked: Asked) -> Answer:
        """A new one."""
        new: NewSession = asked.body
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        async with self._people.of(asked.person) as client:
            made = await client.sessions.create(new, command=command_id(asked))
        return self._repeats.answered(asked, Answer(shown(made), status=201))

    async def get(self, asked: Asked) -> Answer:
        """One."""
        parameters: rest.GetWorkSession = asked.parameters
        async with self._people.of(asked.person) as client:
            found = await client.sessions.show(parameters.id)
        return Answer(shown(found))

    async def change(self, asked: Asked) -> Answer:
        """Another size, other limits."""
        parameters: rest.ChangeWorkSession = asked.parameters
        change: rest.WorkSessionChange = asked.body
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        request = wire.ChangeInteractive(
            id=command_id(asked),
            session=parameters.id,
            workers=change.size.workers if change.size is not None else None,
            adapt=change.adapt,
            fixed=change.fixed,
            life=change.life,
            idle=change.idle,
            share=change.share,
        )
        async with self._people.of(asked.person) as client:
            told = await client.sessions.ask(wire.CHANGE_INTERACTIVE, request)
        return self._repeats.answered(asked, Answer(shown(told.session)))

    async def restart(self, asked: Asked) -> Answer:
        """Its head again."""
        parameters: rest.RestartWorkSession = asked.parameters
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        request = wire.RestartInteractive(id=command_id(asked), session=parameters.id)
        async with self._people.of(asked.person) as client:
            told = await client.sessions.ask(wire.RESTART_INTERACTIVE, request)
        return self._repeats.answered(asked, Answer(shown(told.session)))

    async def stop(self, asked: Asked) -> Answer:
        """The end of one."""
        parameters: rest.StopWorkSession = asked.parameters
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        request = wire.StopInteractive(id=command_id(asked), session=parameters.id, reason=parameters.reason)
        async with self._people.of(asked.person) as client:
            told = await client.sessions.ask(wire.STOP_INTERACTIVE, request)
        return self._repeats.answered(asked, Answer(shown(told.session)))

    async def profiles(self, asked: Asked) -> Answer:
        """What there is to be had."""
        async with self._people.of(asked.person) as client:
            return Answer(await client.sessions.profiles())

    async def certificate(self, asked: Asked) -> Answer:
        """By which members know a program of this person."""
        parameters: rest.SignSessionCertificate = asked.parameters
        body: rest.CertificateRequest = asked.body
        async with self._people.of(asked.person) as client:
            made = await client.sessions.certificate(parameters.id, body.request.encode())
        signed = rest.SignedCertificate(
            certificate=made.certificate.decode(), authority=made.authority.decode()
        )
        return Answer(signed)

    async def follow(self, asked: Asked) -> web.StreamResponse:
        """Send what happens to a session, until it is over."""
        parameters: rest.FollowWorkSession = asked.parameters
        after = place_of_reader(asked, parameters.after)
        async with self._people.of(asked.person) as client:
            found = await client.sessions.show(parameters.id)
        with self._streams.one_more(asked.person.name):
            sender = await EventSender.begun(asked)
            begins = found.events if after is None else after
            return await sender.send_all(self._events(asked, found, begins))

    async def _events(self, asked: Asked, session: SessionView, after: int) -> AsyncGenerator[bytes]:
        """Everything behind so many; raises StreamCut."""
        while True:
            if session.state == "ended" and after >= session.events:
                raise StreamCut("the session is over, and that was its last event")
            try:
                async with self._people.of(asked.person) as client:
                    news = await client.sessions.news(session.id, after)
            except CommandRefusedError as error:
                if error.code != RefusalCode.NOT_FOUND:
                    raise
                raise StreamCut("the session is not listed, or not shared with you any more") from error
            for recorded in news.events:
                after += 1
                told = _event(after, recorded)
                yield b"id: %d\ndata: %b\n\n" % (after, msgspec.json.encode(told))
            session = news.session


def session_handlers(people: PersonConnections, streams: Streams) -> dict[Route, Handler]:
    """What is asked of the service of interactive sessions."""
    asked = SessionQuestions(people, streams)
    return {
        rest.BEGIN_WORK_SESSION: asked.create,
        rest.CHANGE_WORK_SESSION: asked.change,
        rest.FOLLOW_WORK_SESSION: asked.follow,
        rest.GET_WORK_SESSION: asked.get,
        rest.LIST_SESSION_PROFILES: asked.profiles,
        rest.LIST_WORK_SESSIONS: asked.list,
        rest.RESTART_WORK_SESSION: asked.restart,
        rest.SIGN_SESSION_CERTIFICATE: asked.certificate,
        rest.STOP_WORK_SESSION: asked.stop,
    }


def shown(session: SessionView) -> rest.WorkSession:
    """A session as it is over HTTP."""
    said = msgspec.to_builtins(session)
    said["created"] = _moment(session.created)
    for name in _TIMES:
        at: float = said.pop(name, 0.0)
        if at:
            said[name] = _moment(at)
    said["members"] = [
        {**each, "since": _moment(member.since)}
        for each, member in zip(said.get("members", ()), session.members, strict=True)
    ]
    return msgspec.convert(said, rest.WorkSession)


def _event(number: int, recorded: RecordedSessionEvent) -> rest.WorkSessionEvent:
    event = decode(bytes(recorded.data))
    changed = event if isinstance(event, InteractiveStateChanged) else None
    return rest.WorkSessionEvent(
        number=number,
        time=_moment(recorded.at / 1e6),
        event=tag_of(event).partition("/")[0],
        sentence=sentence(event)[0],
        state=changed.state if changed is not None else None,
        reason=changed.reason if changed is not None else "",
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
