"""Who may look at a session and use it, and who may change it."""

from collections.abc import Callable
from typing import Final

from kettle.bus.ports import RefusedError
from kettle_services.sessions.domain.session import InteractiveSession
from kettle_services.sessions.engine import Engine
from kettle_wire.codes import RefusalCode
from kettle_wire.identity import Identity

_GROUP: Final = "group:"
Groups = Callable[[str], frozenset[str]]


class SessionAccess:
    """Finds sessions for people."""

    def __init__(self, engine: Engine, administers: Callable[[Identity], bool], groups: Groups) -> None:
        """
        `administers`: whether a person may see and change everybody's; `groups`: those that a person is in.
        """
        self._engine = engine
        self._administers = administers
        self._groups = groups

    def administers(self, caller: Identity) -> bool:
        """Whether somebody may see and change the sessions of all."""
        return self._administers(caller)

    def may_look(self, session: InteractiveSession, caller: Identity) -> bool:
        """Owners, those with whom it is shared, and administrators."""
        if caller.is_person(session.owner) or self._administers(caller):
            return True
        shared = session.target.shared_with
        if caller.kind != "user" or not shared:
            return False
        return caller.name in shared or any(f"{_GROUP}{each}" in shared for each in self._groups(caller.name))

    def shown(self, which: str, caller: Identity) -> InteractiveSession:
        """
        A session that somebody may look at, by its id or name.

        Raises RefusedError: there is none, or none that this caller may know of.
        """
        found = self._engine.sessions.get(which)
        if found is None or not self.may_look(found, caller):
            named = [
                each
                for each in self._engine.sessions.values()
                if each.name == which and self.may_look(each, caller)
            ]
            named.sort(key=lambda each: (bool(each.ended), each.owner != caller.name, -each.created))
            found = named[0] if named else None
        if found is None:
            raise RefusedError(
                RefusalCode.NOT_FOUND,
                f"there is no session {which} that you may see; kettle session list has yours",
            )
        return found

    def owned(self, which: str, caller: Identity) -> InteractiveSession:
        """A session that somebody may change; raises RefusedError."""
        session = self.shown(which, caller)
        if not caller.is_person(session.owner) and not self._administers(caller):
            raise RefusedError(
                RefusalCode.DENIED,
                f"session {session.name} is {session.owner}'s: it is shared with you, to be used only",
            )
        return session
