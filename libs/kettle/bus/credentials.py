"""
What a client shows to the server: a key, and where the server believes statements about keys (operator mode), the
statement about it.  Both are in one file: an NKey seed alone, or a file of NATS credentials (`.creds`).
"""

from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Final

import msgspec

from kettle_wire.identity import Identity, daemon
from kettle_wire.subjects import untoken

_JWT: Final = "-----BEGIN NATS USER JWT-----"
GUEST: Final = "guest"
ACCESS_POINT: Final = "access-point"
"""The tag of services of an access point that has joined: the name is that of the access point."""
PERSON_AT: Final = "person-at:"
"""How the tag of a person begins for whom an access point that has joined vouches; its name follows."""
_SEED: Final = "-----BEGIN USER NKEY SEED-----"


class _User(msgspec.Struct, frozen=True):
    tags: list[str] = []
    issuer_account: str = ""


class _Statement(msgspec.Struct, frozen=True):
    nats: _User
    name: str = ""
    iss: str = ""
    iat: int = 0
    exp: int = 0


class Credential(msgspec.Struct, frozen=True):
    """The content of such a file; a secret."""

    seed: str
    jwt: str = ""
    """Empty: the server knows the key itself."""

    @classmethod
    def read(cls, path: str | Path) -> "Credential":
        """Raises OSError, and ValueError for a file that is none."""
        text = Path(path).read_text(encoding="ascii")
        if _JWT not in text:
            return cls(text.strip())
        return cls(_after(_SEED, text), _after(_JWT, text))

    @property
    def guest(self) -> bool:
        """
        Whether its holder is in another account than the pool's services: the statement says so by a tag.
        """
        return GUEST in self.tags

    @property
    def of_access_point(self) -> bool:
        """Whether it is that of a service of an access point that has joined."""
        return ACCESS_POINT in self.tags

    @property
    def of_machine(self) -> bool:
        """Whether a master that shows it is that of a machine, which shares what its startd has."""
        return self.guest and not self.of_access_point

    @property
    def tags(self) -> list[str]:
        """What the statement says of its holder besides the name."""
        return self._stated().nats.tags if self.jwt else []

    @property
    def name(self) -> str:
        """The name that the statement gives, as a token of a subject; empty: there is none."""
        return self._stated().name if self.jwt else ""

    def inbox_of(self, identity: Identity) -> str:
        """How the subjects begin on which its holder, who speaks as `identity`, gets replies."""
        for tag in self.tags if identity.kind == "user" else ():
            if tag.startswith(PERSON_AT):
                return identity.inbox_at(tag.removeprefix(PERSON_AT))
        return identity.inbox

    @property
    def account(self) -> str:
        """
        The public key of the account of the bus that its holder is in; empty: the server knows the holder itself.
        """
        if not self.jwt:
            return ""
        stated = self._stated()
        return stated.nats.issuer_account or stated.iss

    @property
    def life(self) -> tuple[int, int]:
        """
        From when to when the statement is good, in seconds since the epoch; the second is 0 if it does not end.
        """
        if not self.jwt:
            return 0, 0
        stated = self._stated()
        return stated.iat, stated.exp

    def _stated(self) -> _Statement:
        body = self.jwt.split(".")[1]
        return _statement.decode(urlsafe_b64decode(body + "=" * (-len(body) % 4)))

    def text(self) -> str:
        """The content of the file."""
        if not self.jwt:
            return f"{self.seed}\n"
        return f"""\
{_JWT}
{self.jwt}
------END NATS USER JWT------

{_SEED}
{self.seed}
------END USER NKEY SEED------
"""

    def __repr__(self) -> str:
        return "Credential()"


def service_identity(role: str, credentials: str) -> Identity:
    """
    As whom a service speaks that shows this file: for the pool, or for the access point that the statement names. One that cannot
    be read is told of when it is shown.
    """
    try:
        shown = Credential.read(credentials) if credentials else Credential("")
        return daemon(role, untoken(shown.name) if ACCESS_POINT in shown.tags else "")
    except (OSError, ValueError):
        return daemon(role)


_statement: Final = msgspec.json.Decoder(_Statement)


def _after(mark: str, text: str) -> str:
    _, found, rest = text.partition(mark)
    lines = rest.split()
    if not found or not lines:
        raise ValueError("no credentials of NATS: a statement or a seed is missing")
    return lines[0]
