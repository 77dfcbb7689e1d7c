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
        A session that somebody may look at, by its id; an own one by its name, too.

        Anybody may share one with anybody, and give it any name: what somebody calls by a name is never that of somebody else.

        Raises RefusedError: there is none, or none that this caller may know of.
        """
        found = self._engine.sessions.get(which)
        if found is not None and self.may_look(found, caller):
            return found
        named = [each for each in self._engine.sessions.values() if each.name == which]
        own = [each for each in named if caller.is_person(each.owner)]
        if own:
            return min(own, key=lambda each: (bool(each.ended), -each.created))
        others = [f"{each.id} of {each.owner}" for each in named if self.may_look(each, caller)]
        sentence = f"there is no session {which} that you may see; kettle session list has yours"
        if others:
            sentence = f"you have no session {which}; those of others are named by their ids: {', '.join(others[:5])}"
        raise RefusedError(RefusalCode.NOT_FOUND, sentence)

    def owned(self, which: str, caller: Identity) -> InteractiveSession:
        """A session that somebody may change; raises RefusedError."""
        session = self.shown(which, caller)
        if not caller.is_person(session.owner) and not self._administers(caller):
            raise RefusedError(
                RefusalCode.DENIED,
                f"session {session.name} is {session.owner}'s: it is shared with you, to be used only",
            )
        return session
