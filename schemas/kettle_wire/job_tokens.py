"""Tokens that a job has in its sandbox: which it needs, and what it is given."""

from typing import Final

import msgspec

NONE_WHERE_JOINED: Final = (
    "jobs of an access point that has joined get no tokens: it vouches for its people to its own queue alone"
)
"""Why a job of one is held that asks for some."""


class NeededToken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token that a job was submitted to have."""

    service: str
    handle: str = ""
    """Tells several tokens of one service apart."""
    scopes: list[str] = []
    """Empty: what the service gives by default."""
    audiences: list[str] = []

    @property
    def name(self) -> str:
        """How its file is called, without `.use`."""
        return f"{self.service}_{self.handle}" if self.handle else self.service


class JobToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token as a job gets it."""

    name: str
    """How its file is called, without `.use`."""
    text: str
    """What the file has in it."""
    left: float
    """Seconds after which it is over, or to be asked for again."""

    def __repr__(self) -> str:
        """Without the secret."""
        return f"JobToken({self.name})"
