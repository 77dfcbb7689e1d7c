"""Who sends a command: a daemon of the pool or a person, as the last token of the command's subject."""

from typing import Final, Literal

import msgspec

from kettle.wire.subjects import token, untoken

_PREFIX: Final = {"daemon": "d-", "user": "u-"}


class Identity(msgspec.Struct, frozen=True):
    """A caller as the bus authenticated it. A daemon's name is its role, a person's the login name."""

    kind: Literal["daemon", "user"]
    name: str

    @property
    def token(self) -> str:
        """The identity as one subject token."""
        return _PREFIX[self.kind] + token(self.name)

    @classmethod
    def from_subject(cls, subject: str) -> "Identity":
        """Read the caller from the subject of a command; raises ValueError if the last token is no identity."""
        text = subject.rpartition(".")[2]
        for kind, prefix in _PREFIX.items():
            if text.startswith(prefix):
                return cls("daemon" if kind == "daemon" else "user", untoken(text.removeprefix(prefix)))
        raise ValueError(f"the subject {subject} names no caller")


def daemon(role: str) -> Identity:
    """The identity of a service of the pool."""
    return Identity("daemon", role)


def user(name: str) -> Identity:
    """The identity of a person."""
    return Identity("user", name)
