"""A person's command server, from its start to its end."""

import gc
import importlib
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from kettle.command_server import asking
from kettle.command_server.forks import Forks
from kettle.command_server.order import Order

IDLE_S: Final = 60.0
"""Seconds without a command after which a server ends."""


def serve(address: str, modules: Iterable[str]) -> Sequence[str] | None:
    """
    Be the server at an address until it is not used any more: None. Returns in each forked process, too: the words it is to be.

    `modules`: those that the commands need; they are loaded before the first order is taken.

    Raises:
        OSError: there is no place for the address.
        NoServerError: nobody can be forked for a process like this one.
    """
    gc.disable()
    for name in modules:
        importlib.import_module(name)
    context, changes = asking.context(), _changes()
    gc.freeze()  # what is there now is never looked at again, so its pages stay shared
    Path(address).unlink(missing_ok=True)  # of one that was killed
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(address)
        listener.listen()

        def accepts(order: Order) -> bool:
            forks.ending = forks.ending or _changes() != changes
            return order.context == context and not forks.ending

        forks = Forks(listener, accepts)
        order = forks.serve(IDLE_S)
        if order is not None:
            return order.words
        Path(address).unlink()
        forks.turn_away()
    return None


def _changes() -> Mapping[str, int]:
    """
    When the files of our modules were last changed, ns since the epoch: after that it is another program.
    """
    changes: dict[str, int] = {}
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if path:
            with suppress(FileNotFoundError):
                changes[path] = Path(path).stat().st_mtime_ns
    return changes
