"""What a command says that cannot be forked after all; it costs one that is executed nothing."""

import os
from typing import TYPE_CHECKING, Final

from kettle.command_server.asking import HAND_BACK

if TYPE_CHECKING:
    from socket import socket

callers: Final["list[socket]"] = []
"""In a forked command: who waits for it."""


def needs_a_terminal() -> None:
    """
    Of a command that wants to be in the foreground of a terminal, before it does anything.

    In a forked one this does not return: its caller carries the command out.
    """
    hand_back()


def hand_back() -> None:
    """In a forked command that has done nothing yet: have its caller carry it out. Does not return there."""
    for caller in callers:
        caller.sendall(HAND_BACK)
        os._exit(0)
