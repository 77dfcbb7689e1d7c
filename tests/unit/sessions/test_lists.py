"""Lists of sessions: who makes one has the pool asked no more than one can look at."""

from types import SimpleNamespace
from typing import Any

import msgspec

from kettle_services.sessions.commands import SessionCommands
from kettle_services.sessions.domain.session import InteractiveSession, evolve
from kettle_wire.commands.sessions import ListInteractive, WaitingMembers
from kettle_wire.identity import user

from .one_session import created

MANY = 120


class Asked:
    """In the place of schedd and negotiator."""

    def __init__(self) -> None:
        self.about: list[str] = []

    async def of(self, session: InteractiveSession) -> list[WaitingMembers]:
        self.about.append(session.id)
        return []


async def test_the_newest_sessions_of_a_list_are_explained() -> None:
    first = evolve(None, created(), 1.0)
    assert first is not None
    sessions = {
        f"{number:012d}": msgspec.structs.replace(first, id=f"{number:012d}", created=float(number))
        for number in range(MANY)
    }
    asked, nothing = Asked(), SimpleNamespace()
    access = SimpleNamespace(may_look=lambda _session, _caller: True, administers=lambda _caller: True)
    parts: list[Any] = [SimpleNamespace(sessions=sessions), nothing, access, nothing, asked, nothing, nothing]
    commands = SessionCommands(*parts, limit=20)
    found = await commands.list_sessions(ListInteractive(everybody=True), user("ann"))
    assert list(sessions) == [each.id for each in found.sessions]
    assert list(sessions)[-50:] == asked.about
