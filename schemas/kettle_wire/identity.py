"""
Who sends a command, as the last token of its subject: a daemon of the pool, the startd of a machine, a person, or another pool's
schedd.
"""

from typing import Final, Literal

import msgspec

from kettle_wire.subjects import token, untoken

Kind = Literal["daemon", "worker", "user", "visitor"]
_PREFIX: Final[dict[Kind, str]] = {"daemon": "d-", "worker": "w-", "user": "u-", "visitor": "v-"}
_BEARER: Final = "b-"
"""Of a person who has shown a token."""


class Identity(msgspec.Struct, frozen=True):
    """
    A caller as the bus authenticated it. A daemon's name is its role, with that of its access point behind a dot where there
    are several; a worker's is that of its startd, a person's the login name, a visiting schedd's the one under which it was
    admitted (see `kettle_wire.flocking`).
    """

    kind: Kind
    name: str
    bearer: bool = False
    """Of a person: who has shown a token, and may have less on the access point than the account of that name."""

    @property
    def role(self) -> str:
        """What a daemon is, wherever it runs."""
        return self.name.partition(".")[0]

    def is_person(self, name: str) -> bool:
        """Whether it is the person of this name, by whatever that person has shown."""
        return self.kind == "user" and self.name == name

    @property
    def access_point(self) -> str:
        """The access point that a daemon belongs to, which has joined; empty: it is one of the pool's own."""
        return self.name.partition(".")[2] if self.kind == "daemon" else ""

    @property
    def token(self) -> str:
        """The identity as one subject token."""
        return (_BEARER if self.bearer else _PREFIX[self.kind]) + token(self.name)

    @property
    def inbox(self) -> str:
        """How the subjects begin on which it gets its replies; nobody else may subscribe there."""
        return f"_INBOX.{self.token}"

    def inbox_at(self, access_point: str) -> str:
        """
        How they begin for a person for whom an access point that has joined vouches, whose ada is not the ada of elsewhere.
        """
        return f"_INBOX.a-{token(access_point)}.{self.token}"

    @classmethod
    def from_subject(cls, subject: str) -> "Identity":
        """
        Read the caller from the subject of a command; raises ValueError if the last token is no identity.
        """
        text = subject.rpartition(".")[2]
        for kind, prefix in _PREFIX.items():
            if text.startswith(prefix):
                return cls(kind, untoken(text.removeprefix(prefix)))
        if text.startswith(_BEARER):
            return bearer(untoken(text.removeprefix(_BEARER)))
        raise ValueError(f"the subject {subject} names no caller")


def daemon(role: str, access_point: str = "") -> Identity:
    """The identity of a service of the pool, or of one of an access point that has joined."""
    return Identity("daemon", f"{role}.{access_point}" if access_point else role)


def worker(startd: str) -> Identity:
    """The identity of the startd of one machine, which is no other's."""
    return Identity("worker", startd)


def user(name: str) -> Identity:
    """The identity of a person."""
    return Identity("user", name)


def bearer(name: str) -> Identity:
    """The identity of a person who has shown a token."""
    return Identity("user", name, bearer=True)


def visitor(name: str) -> Identity:
    """The identity of a schedd of another pool, with its shadow."""
    return Identity("visitor", name)
