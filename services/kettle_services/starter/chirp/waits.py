"""What a conversation in the chirp protocol waits for, as it yields it."""

from collections.abc import Generator
from typing import Any

import msgspec

from kettle_wire.commands.chirp import Wish
from kettle_wire.commands.questions import Command, OnNode

Asked = Wish | Command | OnNode
"""What the submit side is asked."""


class HangUpError(Exception):
    """The connection has to be closed, because it cannot continue."""


class ReadLine(msgspec.Struct, frozen=True):
    """The next line, without its end; None if it is too long."""


class ReadBytes(msgspec.Struct, frozen=True):
    """Exactly so many of the bytes that follow."""

    count: int


class AskSubmitSide(msgspec.Struct, frozen=True):
    """What the submit side answers to a wish."""

    wish: Asked


class WaitForRoom(msgspec.Struct, frozen=True):
    """The other side has read most of the output."""


class Pause(msgspec.Struct, frozen=True):
    """Nothing, for so many seconds."""

    seconds: float


Wait = ReadLine | ReadBytes | AskSubmitSide | WaitForRoom | Pause
Talk = Generator[Wait, Any, None]
