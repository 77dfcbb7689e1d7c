"""
The sessions that there are: each begins, is used, and ends by its age, by idleness, or because somebody ends it.
"""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

import msgspec

from kettle_services.gateway.rest.credential import Credential
from kettle_wire.rest.browser_sessions import Way


class Lives(msgspec.Struct, frozen=True):
    """How long sessions last, in seconds."""

    whole: float
    """From the login on, whatever happens."""
    idle: float
    """Without a request."""


class Session:
    """One session; it has no text, because it holds a credential."""

    __slots__ = ("address", "agent", "began", "credential", "csrf", "id", "key", "person", "used", "way")

    def __init__(
        self,
        key: bytes,
        person: str,
        credential: Credential,
        way: Way,
        *,
        address: str,
        agent: str,
        now: float,
    ) -> None:
        """`key`: the digest of what the browser shows; `credential`: what the person has shown."""
        self.key: Final = key
        self.id: Final = secrets.token_hex(8)
        """By which its owner names it; it opens nothing."""
        self.person: Final = person
        self.credential = credential
        self.way: Final[Way] = way
        self.csrf: Final = secrets.token_urlsafe(32)
        """What a page of ours sends back with what it changes, and no page of others can know."""
        self.address: Final = address
        self.agent: Final = agent
        self.began: Final = now
        self.used = now


class SessionTable:
    """Finds a session by what its browser shows; only digests of that are kept."""

    def __init__(self, lives: Lives, *, most: int = 10_000, most_of_one: int = 20) -> None:
        """
        `most` sessions, and of one person `most_of_one`: the one that was used longest ago ends for another.
        """
        self._lives = lives
        self._most = most
        self._most_of_one = most_of_one
        self._sessions: OrderedDict[bytes, Session] = OrderedDict()
        """The one that was used longest ago is the first."""

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(
        self, person: str, credential: Credential, way: Way, *, address: str, agent: str, now: float
    ) -> tuple[str, Session]:
        """A new session, and the secret by which its browser will be known."""
        self.sweep(now)
        own = self.of(person)
        for each in own[: len(own) + 1 - self._most_of_one]:
            self.end(each)
        while len(self._sessions) >= self._most:
            self._sessions.popitem(last=False)
        shown = secrets.token_urlsafe(32)
        session = Session(_key(shown), person, credential, way, address=address, agent=agent, now=now)
        self._sessions[session.key] = session
        return shown, session

    def find(self, shown: str, now: float) -> Session | None:
        """
        The session of a browser that shows this, which counts as a use; None: there is none, or it is over.
        """
        session = self._sessions.get(_key(shown))
        if session is None:
            return None
        if self._is_over(session, now):
            self.end(session)
            return None
        session.used = now
        self._sessions.move_to_end(session.key)
        return session

    def has(self, session: Session, now: float) -> bool:
        """Whether a session goes on, which is no use of it."""
        return session.key in self._sessions and not self._is_over(session, now)

    def of(self, person: str) -> list[Session]:
        """The sessions of a person, the one that was used longest ago first."""
        return [each for each in self._sessions.values() if each.person == person]

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def end(self, session: Session) -> None:
        """End a session; nothing happens if it is over."""
        self._sessions.pop(session.key, None)

    def ends_at(self, session: Session) -> float:
        """When it ends if it is not used any more."""
        return min(session.began + self._lives.whole, session.used + self._lives.idle)

    def sweep(self, now: float) -> None:
        """Forget what is over, with the credentials in it."""
        for each in [each for each in self._sessions.values() if self._is_over(each, now)]:
            self.end(each)

    def _is_over(self, session: Session, now: float) -> bool:
        return now >= self.ends_at(session)


def _key(shown: str) -> bytes:
    return hashlib.sha256(shown.encode("utf-8", "surrogateescape")).digest()
