"""Lists of sessions: who makes one has the pool asked no more than one can look at."""

from types import SimpleNamespace
from typing import Any

import msgspec

from kettle_services.sessions.commands import SessionCommands
from kettle_services.sessions.domain.session import InteractiveSession, evolve
from kettle_wire.commands.sessions import ListInteractive, WaitingMembers
from kettle_wire.identity import Identity, user

from .one_session import created

MANY = 120


class Asked:
    """In the place of schedd and negotiator."""

    def __init__(self) -> None:
        self.about: list[str] = []

    async def of(self, session: InteractiveSession) -> list[WaitingMembers]:
        self.about.append(session.id)
        return []


class Everybody:
    """May see all."""

    def administers(self, _caller: Identity) -> bool:
        return True

    def may_look(self, _session: InteractiveSession, _caller: Identity) -> bool:
        return True


async def test_the_newest_sessions_of_a_list_are_explained() -> None:
    first = evolve(None, created(), 1.0)
    assert first is not None
    sessions = {
        f"{number:012d}": msgspec.structs.replace(first, id=f"{number:012d}", created=float(number))
        for number in range(MANY)
    }
    asked, nothing = Asked(), SimpleNamespace()
    parts: list[Any] = [
        SimpleNamespace(sessions=sessions),
        nothing,
        Everybody(),
        nothing,
        asked,
        nothing,
        nothing,
    ]
    commands = SessionCommands(*parts, limit=20)
    found = await commands.list_sessions(ListInteractive(everybody=True), user("ann"))
    assert list(sessions) == [each.id for each in found.sessions]
    assert list(sessions)[-50:] == asked.about
