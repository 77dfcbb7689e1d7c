"""
What a browser and the gateway say to each other over the connection of a terminal.

Bytes are what was typed, or what the program has written.  Everything else is text, in JSON.
"""

from typing import Annotated

import msgspec

from kettle_wire.commands.access import Terminal

LARGEST = 64 * 1024
"""Bytes of one message from a browser."""

_Lines = Annotated[int, msgspec.Meta(ge=1, le=1000)]


class Size(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How large the terminal is; the first message of a connection, and any later one that is text."""

    rows: _Lines
    columns: _Lines

    def terminal(self) -> Terminal:
        """As the machine knows it."""
        return Terminal(kind="xterm-256color", rows=self.rows, columns=self.columns)


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """The program runs."""

    slot: str


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The last message: why nothing more comes."""

    ended: str
    """A sentence."""


def read_size(text: str) -> Size:
    """What a text message says; raises `msgspec.MsgspecError`."""
    return msgspec.json.decode(text, type=Size)
