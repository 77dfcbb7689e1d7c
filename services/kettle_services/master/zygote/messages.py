"""What the master and its zygote tell each other: one message is one packet of their socket."""

from collections.abc import Mapping
from typing import Final

import msgspec

LONGEST: Final = 1 << 18
"""Bytes of a message; an environment may be long."""


class Launch(msgspec.Struct, frozen=True):
    """Become `python -m module`; the packet carries the file for what the process writes."""

    number: int
    module: str
    environ: Mapping[bytes, bytes]
    cwd: str


class Launched(msgspec.Struct, frozen=True, tag=True):
    """The process of the launch of this number; it begins when this has been said."""

    number: int
    pid: int


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The launch cannot be had by a fork."""

    number: int
    why: str


class Ended(msgspec.Struct, frozen=True, tag=True):
    """A process is over: its exit status, or minus the number of the signal that killed it."""

    pid: int
    status: int


Answer = Launched | Refused | Ended
