"""What the master and its zygote tell each other: one message is one packet of their socket."""

from collections.abc import Mapping
from typing import Final

import msgspec

LONGEST: Final = 1 << 18
"""Bytes of a message; an environment may be long."""

OWN_FILES: Final = 2
"""Files that come with each launch: for what the process writes, and that on which it waits."""

MOST_FILES: Final = 4
"""Further ones, at the most."""

GO: Final = b"+"
"""What a forked process waits for, from the master; the end of its file instead means that nobody knows of it."""


class Launch(msgspec.Struct, frozen=True):
    """
    Become `python -m module`; the packet carries the file for what the process writes, that on which it waits, and `fds`.
    """

    number: int
    module: str
    environ: Mapping[bytes, bytes]
    cwd: str
    fds: tuple[int, ...] = ()
    """The numbers that the further files have in the process."""
    is_master: bool = False
    """
    It forks services itself: all modules are loaded before it is forked, and it ends as it likes after its zygote.
    """


class Launched(msgspec.Struct, frozen=True, tag=True):
    """The process of the launch of this number; it waits until it is told to begin."""

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
